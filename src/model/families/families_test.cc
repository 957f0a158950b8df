// SPDX-License-Identifier: Apache-2.0
// Every family: compared with Hugging Face transformers (tests/golden/make/make_family_models.py),
// its two file formats with each other, its bits for different ways of computing a row, and unknown
// keys.
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

#include "io/gguf/gguf.h"
#include "model/families/registry.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using kernels::KvKind;
using test::golden_directory;
using test::GoldenModel;
using test::json_of;
using test::Row;
using test::Rows;

class FamilyGolden : public ::testing::TestWithParam<std::string> {};

// The other engine also computes in f32, in other orders: logits of a few units differ by about
// 1e-5. 2e-4 is far below the effect of a wrong window, base, norm or scale (the script asserts
// 1e-2).
TEST_P(FamilyGolden, HasTheLogitsOfTransformers) {
  const GoldenModel golden(GetParam());
  const auto model = test::load_f32(golden.directory);
  const auto sequence = model->open(
      {.encoder_tokens = golden.encoder_ids, .n_tokens = static_cast<int>(golden.ids.size())});
  const Rows rows = test::run_block(*model, *sequence, golden.ids);
  ASSERT_EQ(rows.size(), golden.logits.size());
  double largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const double difference = std::fabs(rows[i][j] - golden.logits[i][j]);
      if (!(difference <= largest)) largest = difference;  // NaN is kept
    }
  }
  EXPECT_LE(largest, 2e-4);
}

TEST_P(FamilyGolden, ChoosesTheTokensOfTransformers) {
  const GoldenModel golden(GetParam());
  const auto model = test::load_f32(golden.directory);
  std::vector<TokenId> text = golden.ids;
  std::unique_ptr<Sequence> sequence;
  for (std::size_t step = 0; step < golden.greedy.size(); ++step) {
    const auto n_tokens = static_cast<int>(text.size());
    if (sequence == nullptr || n_tokens > model->context_of(*sequence)) {
      sequence = model->open({.encoder_tokens = golden.encoder_ids, .n_tokens = n_tokens});
    }
    const auto n_kept = static_cast<std::size_t>(sequence->n_kept());
    const Row row = test::run_and_keep(*model, *sequence, std::span(text).subspan(n_kept)).back();
    text.push_back(static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(golden.ids.size()));
  EXPECT_EQ(text, golden.greedy);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGolden, ::testing::ValuesIn(test::golden_names()),
                         [](const auto& info) { return info.param; });

// The GGUF file of the same numbers: the family handles permuted rows, folded norms and other keys.
class FamilyGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(FamilyGguf, HasTheBitsOfTheDirectory) {
  const GoldenModel golden(GetParam());
  const auto file = test::load_f32(golden.directory / "model.gguf");
  const auto directory = test::load_f32(golden.directory);
  EXPECT_EQ(file->config().architecture, directory->config().architecture);
  const auto left = file->open({.encoder_tokens = golden.encoder_ids});
  const auto right = directory->open({.encoder_tokens = golden.encoder_ids});
  test::expect_same_bits(test::run_block(*directory, *right, golden.ids), 0,
                         test::run_block(*file, *left, golden.ids));
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGguf, ::testing::ValuesIn(test::golden_names("model.gguf")),
                         [](const auto& info) { return info.param; });

// Windows, head norms, GELU, caps and two RoPE tables keep the promise: a row's bits do not depend
// on how it was computed.
class FamilyBits : public ::testing::TestWithParam<
                       std::tuple<std::string, test::NamedTable, KvKind, WeightKind>> {};

TEST_P(FamilyBits, AreThoseOfOneTokenAPass) {
  const auto& [name, table, kv, weights] = GetParam();
  const GoldenModel golden(name);
  std::vector<TokenId> tokens = golden.ids;
  // Far beyond one window, across chunk and page boundaries.
  for (int copy = 0; copy < 2; ++copy) {
    tokens.insert(tokens.end(), golden.ids.begin(), golden.ids.end());
  }
  const int context = test::load_f32(golden.directory)->config().context_length;
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(context)));
  const auto one = test::load_on(golden.directory, *table.table, weights, kv, 1);
  const auto two = test::load_on(golden.directory, *table.table, weights, kv, 2);
  const auto slow = one->open({.encoder_tokens = golden.encoder_ids});
  const Rows expected = test::decode_one_by_one(*one, *slow, tokens);
  ASSERT_FALSE(test::same_bits(expected[0], expected[1]));
  const auto fast = two->open({.encoder_tokens = golden.encoder_ids});
  test::expect_same_bits(expected, 0, test::run_block(*two, *fast, tokens));
  // A tree after a prefix that ends within a chunk: wrong siblings first, then the right path.
  const auto drafted = two->open({.encoder_tokens = golden.encoder_ids});
  constexpr std::size_t kStart = 75;
  test::run_and_keep(*two, *drafted, test::part(tokens, 0, kStart));
  const std::vector<TokenId> nodes = {1, tokens[kStart], 2, tokens[kStart + 1], tokens[kStart + 2]};
  const std::vector<int> parents = {-1, -1, 0, 1, 3};
  const Rows rows = test::run_block(*two, *drafted, nodes, parents);
  EXPECT_TRUE(test::same_bits(rows[1], expected[kStart]));
  EXPECT_TRUE(test::same_bits(rows[3], expected[kStart + 1]));
  EXPECT_TRUE(test::same_bits(rows[4], expected[kStart + 2]));
  drafted->keep(std::vector<int>{1, 3, 4});
  test::expect_same_bits(expected, kStart + 3,
                         test::run_block(*two, *drafted, test::part(tokens, kStart + 3, 40)));
}

std::string case_name(const ::testing::TestParamInfo<FamilyBits::ParamType>& info) {
  std::string name =
      fmt::format("{}_{}_kv{}_{}", std::get<0>(info.param), std::get<1>(info.param).name,
                  name_of(std::get<2>(info.param)), kernels::name_of(std::get<3>(info.param)));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, FamilyBits,
    ::testing::ValuesIn(test::product_of_the_day(
        test::names("qwen2_tied", "qwen3_untied", "gemma2_capped", "gemma3_one_in_three",
                    "smollm3_window", "olmo2_grouped", "granite_biased", "gpt2_odd",
                    "gpt_neox_parallel", "gpt_neox_sequential", "phi3_crossing", "ministral3_tied",
                    "mixtral_window", "qwen3_moe_mixed", "olmoe_grouped", "lfm2_tied",
                    "gpt_oss_plain", "gpt_oss_mxfp4", "qwen3_next_mixed", "qwen3_5_grouped",
                    "qwen3_5_moe_grouped", "qwen3_5_wide", "granite_hybrid_mixed", "nemotron_h_moe",
                    "nemotron_h_mixed", "deepseek_v2_grouped", "deepseek_v2_yarn",
                    "deepseek_v3_plain", "deepseek_v3_stacked", "glm4_moe_plain", "glm4_moe_air",
                    "glm4_moe_lite_listed", "gemma4_shared", "gemma4_keys", "gemma4_moe",
                    "t5_plain", "t5_tied", "t5_far"),
        test::tables_of_the_day(), std::vector{KvKind::f32, KvKind::bf16, KvKind::int8},
        std::vector{WeightKind::int8, WeightKind::bf16})),
    case_name);

INSTANTIATE_TEST_SUITE_P(Tiles, FamilyBits,
                         ::testing::Combine(::testing::Values("gemma2_capped", "mixtral_window",
                                                              "deepseek_v3_plain", "gemma4_moe",
                                                              "t5_plain"),
                                            ::testing::ValuesIn(test::emulated_tiles_of_the_day()),
                                            ::testing::Values(KvKind::bf16),
                                            ::testing::Values(WeightKind::int8, WeightKind::bf16)),
                         case_name);

// Early files of Phi-3 name longrope "su", or "yarn" with longrope's factors; transformers reads
// both.
TEST(PhiConfig, KnowsLongropeByItsEarlyNames) {
  const GoldenModel golden("phi3_long");
  const auto named = [&](const char* kind) {
    const test::TemporaryDirectory directory;
    fs::copy(golden.directory, directory.path(), fs::copy_options::recursive);
    nlohmann::json json = json_of(golden.directory / "config.json");
    json["rope_scaling"]["type"] = kind;
    std::ofstream(directory.path() / "config.json") << json.dump();
    return rope_table(read_family(directory.path())->config());
  };
  const RopeTable expected = named("longrope");
  EXPECT_FALSE(expected.long_frequencies.empty());
  for (const char* kind : {"su", "yarn"}) {
    EXPECT_EQ(named(kind).long_frequencies, expected.long_frequencies) << kind;
    EXPECT_EQ(named(kind).magnitude, expected.magnitude) << kind;
  }
}

// No meaningful key is silently ignored: each family names the field that it does not know.
class UnknownField : public ::testing::TestWithParam<std::string> {
 protected:
  // The error of read_family() for the golden's config.json with one more key.
  static std::string message(const std::string& name, const char* key,
                             const nlohmann::json& value) {
    return test::read_changed(name, {{key, value}}).refusal;
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
  EXPECT_EQ(message(GetParam(), "use_alibi", false), "");  // switched off
}

class UnknownRope : public UnknownField {};

TEST_P(UnknownRope, IsNamed) {
  const std::string rope = message(
      GetParam(), "rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"mrope_section", {8}}});
  EXPECT_NE(rope.find("mrope_section"), std::string::npos) << rope;
  const std::string type = message(GetParam(), "rope_scaling", {{"rope_type", "spiral"}});
  EXPECT_NE(type.find("default, linear, llama3, yarn, longrope"), std::string::npos) << type;
}

const std::vector<std::string> kOneOfEachWithRope = {
    "llama_linear_tied", "qwen2_tied",        "qwen3_tied",           "gemma2_capped",
    "gemma3_scaled",     "mistral_window",    "smollm3_fourth",       "olmo2_plain",
    "granite_tied",      "gpt_neox_parallel", "phi3_crossing",        "ministral3_scaled",
    "mixtral_plain",     "qwen3_moe_plain",   "olmoe_plain",          "lfm2_tied",
    "gpt_oss_plain",     "qwen3_next_plain",  "granite_hybrid_plain", "deepseek_v2_plain",
    "deepseek_v3_plain", "kimi_k2_plain",     "glm4_moe_plain",       "glm4_moe_lite_plain"};
INSTANTIATE_TEST_SUITE_P(All, UnknownField, ::testing::ValuesIn(kOneOfEachWithRope),
                         [](const auto& info) { return info.param; });
// Without RoPE, or with another kind of it.
INSTANTIATE_TEST_SUITE_P(OtherRope, UnknownField,
                         ::testing::Values("gpt2_plain", "gemma4_shared", "t5_plain",
                                           "nemotron_h_plain", "nemotron_h_moe"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, UnknownRope, ::testing::ValuesIn(kOneOfEachWithRope),
                         [](const auto& info) { return info.param; });

// Scaled queries belong to Ministral 3. Another family's file with that scale is refused, and so is
// one of Ministral 3 without it, which transformers would fill in.
TEST(MinistralConfig, ScalesQueriesOfItsOwnFamily) {
  const auto read_with = [](const std::string& name, const nlohmann::json& rope) {
    const test::TemporaryDirectory directory;
    nlohmann::json json = json_of(golden_directory(name) / "config.json");
    json["rope_parameters"] = rope;
    std::ofstream(directory.path() / "config.json") << json.dump();
    return read_family(directory.path())->config().rope;
  };
  const auto message = [&](const std::string& name, const nlohmann::json& rope) -> std::string {
    try {
      (void)read_with(name, rope);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  nlohmann::json rope =
      json_of(golden_directory("ministral3_scaled") / "config.json").at("rope_parameters");
  EXPECT_EQ(read_with("ministral3_scaled", rope).query_beta, 0.25);
  EXPECT_EQ(read_with("ministral3_scaled", rope).attention_factor, 1);  // both weights are 1
  EXPECT_NE(message("mistral_yarn", rope).find("llama_4_scaling_beta"), std::string::npos);
  const std::string missing = message("ministral3_scaled", nullptr);
  EXPECT_NE(missing.find("rope_parameters to be there"), std::string::npos) << missing;
  for (const auto& [key, value, named] :
       {std::tuple{"llama_4_scaling_beta", nlohmann::json(-1), "scale of queries"},
        std::tuple{"llama_4_scaling_beta", nlohmann::json("x"), "llama_4_scaling_beta"},
        std::tuple{"original_max_position_embeddings", nlohmann::json(24.5), "a whole number"},
        std::tuple{"original_max_position_embeddings", nlohmann::json(0), "original context"},
        std::tuple{"max_position_embeddings", nlohmann::json(64), "max_position_embeddings"}}) {
    nlohmann::json changed = rope;
    changed[key] = value;
    const std::string error = message("ministral3_scaled", changed);
    EXPECT_NE(error.find(named), std::string::npos) << error;
  }
}

// Qwen's windows as transformers reads them: from max_window_layers on, if enabled.
TEST(QwenConfig, WindowsBeginAtTheirLayer) {
  const auto logits = [](bool used, int first) {
    return test::logits_of_changed("qwen2_untied", {{"layer_types", test::kNoKey},
                                                    {"use_sliding_window", used},
                                                    {"sliding_window", 8},
                                                    {"max_window_layers", first}});
  };
  const Rows whole = logits(false, 0);
  test::expect_same_bits(whole, 0, logits(true, 100));
  const Rows second = logits(true, 1);
  const Rows both = logits(true, -5);
  EXPECT_TRUE(test::same_bits(whole[7], both[7]));  // within the window
  EXPECT_FALSE(test::same_bits(whole.back(), second.back()));
  EXPECT_FALSE(test::same_bits(second.back(), both.back()));
}

// The same for GGUF: a metadata entry replaces another one of the same length.
TEST(UnknownField, IsNamedInGguf) {
  struct Change {
    const char* name;
    std::string known = "rope.freq_base";
    std::string unknown = "rope.freq_babe";
  };
  const std::string token = "tokenizer.ggml.bos_token_id";
  for (const auto& [name, known, unknown] :
       {Change{"llama_plain"},
        Change{"qwen2_tied"},
        Change{"qwen3_tied"},
        Change{"gemma2_capped", "attention.sliding_window", "attention.sliding_windox"},
        Change{"gemma3_scaled"},
        Change{"gemma4_shared"},
        Change{"gemma4_moe", "attention.sliding_window", "attention.sliding_windox"},
        Change{"smollm3_fourth"},
        Change{"olmo2_plain"},
        Change{"granite_tied"},
        Change{"phi3_crossing"},
        Change{"ministral3_scaled"},
        Change{"ministral3_scaled", "attention.temperature_scale", "attention.temperature_scald"},
        Change{"mixtral_plain"},
        Change{"qwen3_moe_plain"},
        Change{"olmoe_plain"},
        Change{"lfm2_tied"},
        Change{"gpt_oss_plain"},
        Change{"qwen3_next_plain"},
        Change{"qwen3_5_plain"},
        Change{"qwen3_5_moe_plain"},
        Change{"granite_hybrid_plain"},
        Change{"nemotron_h_plain"},
        Change{"nemotron_h_moe"},
        Change{"nemotron_h_latent", "moe_latent_size", "moe_latent_sizf"},
        Change{"deepseek_v2_plain"},
        Change{"deepseek_v3_plain"},
        Change{"deepseek_v3_plain", "expert_group_count", "expert_groud_count"},
        Change{"kimi_k2_plain", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_fasd"},
        Change{"glm4_moe_plain"},
        Change{"glm4_moe_lite_plain"},
        Change{"gpt2_plain", token, "gpt2.attention.clamp_kqvmax"},
        Change{"gpt_neox_parallel", token, "gptneox.attention.max_alibi"},
        Change{"t5_plain", "attention.relative_buckets_count",
               "attention.relative_buckets_cound"}}) {
    std::ifstream stream(golden_directory(name) / "model.gguf", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    ASSERT_EQ(known.size(), unknown.size());
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
  const test::TemporaryDirectory directory;
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

// One class may belong to several model types. The type decides; without a type, the class does.
TEST(Families, AreKnownByTypeAndClassTogether) {
  const auto refusal = [](const char* golden, const nlohmann::json& changes) {
    return test::read_changed(golden, changes).refusal;
  };
  EXPECT_EQ(refusal("kimi_k2_plain", nlohmann::json::object()), "");
  EXPECT_EQ(refusal("kimi_k2_plain", {{"model_type", test::kNoKey}}), "");
  EXPECT_EQ(refusal("kimi_k2_plain", {{"model_type", "deepseek_v3"}}), "");
  EXPECT_EQ(refusal("kimi_k2_plain", {{"architectures", test::kNoKey}}), "");
  EXPECT_EQ(
      refusal("kimi_k2_plain", {{"architectures", {"KimiForCausalLM", "DeepseekV3ForCausalLM"}}}),
      "");
  for (const char* wrong : {"Glm4MoeForCausalLM", "DeepseekV2ForCausalLM", "KimiForCausalLM"}) {
    const std::string error = refusal("kimi_k2_plain", {{"architectures", {wrong}}});
    EXPECT_NE(error.find("architectures to be DeepseekV3ForCausalLM"), std::string::npos) << error;
  }
  const std::string error =
      refusal("glm4_moe_plain", {{"architectures", {"DeepseekV3ForCausalLM"}}});
  EXPECT_NE(error.find("architectures to be Glm4MoeForCausalLM"), std::string::npos) << error;
}

}  // namespace
}  // namespace outrider
