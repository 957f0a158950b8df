// Every family against Hugging Face transformers (tests/golden/make_family_models.py), its two file
// forms against one another, its bits against how a row came, and keys that it does not know.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/gguf.h"
#include "model/families/registry.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/golden_models.h"
#include "tests/support/identity_model.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using kernels::KvKind;
using testing::golden_directory;
using testing::GoldenModel;
using testing::json_of;
using testing::Row;
using testing::Rows;

const std::vector<std::string> kGoldens = {
    "qwen2_linear",   "qwen2_tied",     "qwen2_untied",           "qwen3_linear",
    "qwen3_tied",     "qwen3_untied",   "gemma3_mixed",           "gemma3_scaled",
    "gemma3_capped",  "gemma2_capped",  "gemma2_uncapped_scores", "gemma2_wide",
    "qwen2_yarn",     "mistral_window", "gemma3_one_in_three",    "mistral_whole",
    "mistral_yarn",   "smollm3_fourth", "smollm3_listed",         "smollm3_window",
    "olmo2_plain",    "olmo2_grouped",  "olmo2_biased",           "granite_tied",
    "granite_untied", "granite_biased"};

class FamilyGolden : public ::testing::TestWithParam<std::string> {};

// The other engine computes in f32 as well, in other orders: logits of a few units differ by some
// 1e-5; 2e-4 is far below what a wrong window, base, norm or scale does (the script asserts 1e-2).
TEST_P(FamilyGolden, HasTheLogitsOfTransformers) {
  const GoldenModel golden(GetParam());
  const auto model = testing::load_f32(golden.directory);
  const auto sequence = model->open({});
  const Rows rows = testing::run_block(*model, *sequence, golden.ids);
  ASSERT_EQ(rows.size(), golden.logits.size());
  double largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const double difference = std::fabs(rows[i][j] - golden.logits[i][j]);
      if (!(difference <= largest)) largest = difference;  // NaN stays
    }
  }
  EXPECT_LE(largest, 2e-4);
}

TEST_P(FamilyGolden, ChoosesTheTokensOfTransformers) {
  const GoldenModel golden(GetParam());
  const auto model = testing::load_f32(golden.directory);
  const auto sequence = model->open({});
  std::vector<TokenId> said;
  std::vector<TokenId> next = golden.ids;
  for (std::size_t step = 0; step < golden.greedy.size(); ++step) {
    const Row row = testing::run_and_keep(*model, *sequence, next).back();
    said.push_back(static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()));
    next = {said.back()};
  }
  EXPECT_EQ(said, golden.greedy);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGolden, ::testing::ValuesIn(kGoldens),
                         [](const auto& info) { return info.param; });

// The GGUF of the same numbers: permuted rows, folded norms and keys are the family's to know.
class FamilyGguf : public ::testing::TestWithParam<const char*> {};

TEST_P(FamilyGguf, HasTheBitsOfTheDirectory) {
  const GoldenModel golden(GetParam());
  const auto file = testing::load_f32(golden.directory / "model.gguf");
  const auto directory = testing::load_f32(golden.directory);
  EXPECT_EQ(file->config().architecture, directory->config().architecture);
  const auto left = file->open({});
  const auto right = directory->open({});
  testing::expect_same_bits(testing::run_block(*directory, *right, golden.ids), 0,
                            testing::run_block(*file, *left, golden.ids));
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGguf,
                         ::testing::Values("qwen2_tied", "qwen3_tied", "gemma2_capped",
                                           "gemma3_scaled", "qwen2_yarn", "smollm3_fourth",
                                           "olmo2_plain", "granite_tied"),
                         [](const auto& info) { return std::string(info.param); });

// Windows, head norms, GELU, caps and two RoPE tables keep the promise: a row's bits do not depend
// on how it came.
class FamilyBits
    : public ::testing::TestWithParam<std::tuple<std::string, test_support::NamedTable, KvKind>> {};

TEST_P(FamilyBits, AreThoseOfOneTokenAPass) {
  const auto& [name, table, kv] = GetParam();
  const GoldenModel golden(name);
  std::vector<TokenId> tokens = golden.ids;
  // Far beyond one window, over chunk and page borders.
  for (int copy = 0; copy < 2; ++copy) {
    tokens.insert(tokens.end(), golden.ids.begin(), golden.ids.end());
  }
  for (const WeightKind weights : {WeightKind::int8, WeightKind::bf16}) {
    const auto one = testing::load_on(golden.directory, *table.table, weights, kv, 1);
    const auto two = testing::load_on(golden.directory, *table.table, weights, kv, 2);
    const auto slow = one->open({});
    const Rows expected = testing::decode_one_by_one(*one, *slow, tokens);
    ASSERT_FALSE(testing::same_bits(expected[0], expected[1]));
    const auto fast = two->open({});
    testing::expect_same_bits(expected, 0, testing::run_block(*two, *fast, tokens));
    // A tree behind a prefix that ends within a chunk: wrong siblings, then the right path.
    const auto drafted = two->open({});
    constexpr std::size_t kStart = 75;
    testing::run_and_keep(*two, *drafted, testing::part(tokens, 0, kStart));
    const std::vector<TokenId> nodes = {1, tokens[kStart], 2, tokens[kStart + 1],
                                        tokens[kStart + 2]};
    const std::vector<int> parents = {-1, -1, 0, 1, 3};
    const Rows rows = testing::run_block(*two, *drafted, nodes, parents);
    EXPECT_TRUE(testing::same_bits(rows[1], expected[kStart]));
    EXPECT_TRUE(testing::same_bits(rows[3], expected[kStart + 1]));
    EXPECT_TRUE(testing::same_bits(rows[4], expected[kStart + 2]));
    drafted->keep(std::vector<int>{1, 3, 4});
    testing::expect_same_bits(
        expected, kStart + 3,
        testing::run_block(*two, *drafted, testing::part(tokens, kStart + 3, 40)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FamilyBits,
    ::testing::Combine(::testing::Values("qwen2_tied", "qwen3_untied", "gemma2_capped",
                                         "gemma3_one_in_three", "smollm3_window", "olmo2_grouped",
                                         "granite_biased"),
                       ::testing::ValuesIn(test_support::runnable_tables()),
                       ::testing::Values(KvKind::f32, KvKind::bf16, KvKind::int8)),
    [](const auto& info) {
      std::string name =
          fmt::format("{}_{}_{}", std::get<0>(info.param), std::get<1>(info.param).name,
                      name_of(std::get<2>(info.param)));
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

// Nothing of meaning is ignored in silence: each family names the field it does not know.
class UnknownField : public ::testing::TestWithParam<std::string> {
 protected:
  // read_family() of the golden's config.json with one more key.
  static std::string message(const std::string& name, const char* key,
                             const nlohmann::json& value) {
    const testing::TemporaryDirectory directory;
    nlohmann::json json = json_of(golden_directory(name) / "config.json");
    json[key] = value;
    std::ofstream(directory.path() / "config.json") << json.dump();
    try {
      (void)read_family(directory.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_P(UnknownField, IsNamed) {
  EXPECT_EQ(message(GetParam(), "initializer_range", 0.5), "");
  for (const auto& [key, value] :
       {std::pair{"clip_qkv", nlohmann::json(8.0)}, std::pair{"use_alibi", nlohmann::json(true)},
        std::pair{"norm_type", nlohmann::json("layernorm")}}) {
    const std::string error = message(GetParam(), key, value);
    EXPECT_NE(error.find(key), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_EQ(message(GetParam(), "use_alibi", false), "");  // off
  const std::string rope = message(
      GetParam(), "rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"mrope_section", {8}}});
  EXPECT_NE(rope.find("mrope_section"), std::string::npos) << rope;
  const std::string type = message(GetParam(), "rope_scaling", {{"rope_type", "longrope"}});
  EXPECT_NE(type.find("default, linear, llama3, yarn"), std::string::npos) << type;
}

INSTANTIATE_TEST_SUITE_P(All, UnknownField,
                         ::testing::Values("llama_linear_tied", "qwen2_tied", "qwen3_tied",
                                           "gemma2_capped", "gemma3_scaled", "mistral_window",
                                           "smollm3_fourth", "olmo2_plain", "granite_tied"),
                         [](const auto& info) { return info.param; });

// Qwen's windows as transformers reads them: from max_window_layers on, where they are in use.
TEST(QwenConfig, WindowsBeginAtTheirLayer) {
  const GoldenModel golden("qwen2_untied");
  const auto logits = [&](bool used, int first) {
    const testing::TemporaryDirectory directory;
    fs::copy(golden.directory, directory.path(), fs::copy_options::recursive);
    nlohmann::json json = json_of(golden.directory / "config.json");
    json.erase("layer_types");
    json["use_sliding_window"] = used;
    json["sliding_window"] = 8;
    json["max_window_layers"] = first;
    std::ofstream(directory.path() / "config.json") << json.dump();
    const auto model = testing::load_f32(directory.path());
    const auto sequence = model->open({});
    return testing::run_block(*model, *sequence, golden.ids);
  };
  const Rows whole = logits(false, 0);
  testing::expect_same_bits(whole, 0, logits(true, 100));
  const Rows second = logits(true, 1);
  const Rows both = logits(true, -5);
  EXPECT_TRUE(testing::same_bits(whole[7], both[7]));  // within the window
  EXPECT_FALSE(testing::same_bits(whole.back(), second.back()));
  EXPECT_FALSE(testing::same_bits(second.back(), both.back()));
}

// As above, of GGUF: a metadata entry in place of another one of the same length.
TEST(UnknownField, IsNamedInGguf) {
  constexpr const char* kRope = "rope.freq_base";
  for (const auto& [name, key] :
       {std::pair{"qwen2_tied", kRope}, std::pair{"qwen3_tied", kRope},
        std::pair{"gemma2_capped", "attention.sliding_window"}, std::pair{"gemma3_scaled", kRope},
        std::pair{"smollm3_fourth", kRope}, std::pair{"olmo2_plain", kRope},
        std::pair{"granite_tied", kRope}}) {
    std::ifstream stream(golden_directory(name) / "model.gguf", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    const std::string known = key;
    std::string unknown = known;
    unknown.back() = 'x';
    const std::size_t at = bytes.find(known);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, known.size(), unknown);
    const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "changed.gguf");
    try {
      (void)read_family(*file);
      FAIL() << "was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(unknown), std::string::npos) << error.what();
    }
  }
}

TEST(Families, UnknownOnesAreNamedBesideTheKnownOnes) {
  const testing::TemporaryDirectory directory;
  nlohmann::json json = json_of(golden_directory("qwen2_tied") / "config.json");
  json["model_type"] = "hymba";
  std::ofstream(directory.path() / "config.json") << json.dump();
  try {
    (void)read_family(directory.path());
    FAIL() << "was read";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const char* named : {"hymba", "llama", "qwen2", "qwen3", "gemma3_text"}) {
      EXPECT_NE(message.find(named), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace outrider
