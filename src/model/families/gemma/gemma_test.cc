// SPDX-License-Identifier: Apache-2.0
// Gemma's own keys: windows, scales and caps, defaults of missing keys, and what drafting heads get
// from its output matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "model/families/registry.h"
#include "model/load/layer_loader.h"
#include "model/load_model.h"
#include "model/shared_output.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::golden_directory;
using test::GoldenModel;
using test::json_of;
using test::Rows;

bool same_bits(const Rows& left, const Rows& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), test::same_bits);
}

// Impossible numbers are refused by their key before they size or divide anything.
TEST(GemmaConfig, RefusesHostileNumbers) {
  const std::vector<std::pair<const char*, json>> of_both = {
      {"sliding_window", 2147483647},      {"sliding_window", 0},
      {"sliding_window", nullptr},         {"sliding_window_size", 5},
      {"query_pre_attn_scalar", 1e-300},   {"attn_logit_softcapping", -50.0},
      {"attn_logit_softcapping", 1e-300},  {"attn_logit_softcapping", 1e300},
      {"attn_logit_softcapping", "fifty"}, {"final_logit_softcapping", -1},
      {"final_logit_softcapping", 1e-4},   {"final_logit_softcapping", 1e7}};
  const std::vector<std::pair<const char*, json>> of_gemma2 = {
      {"sliding_window_pattern", 2}, {"hidden_act", "silu"}, {"use_bidirectional_attention", true}};
  const std::vector<std::pair<const char*, json>> of_gemma3 = {
      {"sliding_window_pattern", -1},
      {"rope_local_base_freq", 0.0},
      {"attn_logit_softcapping", 50.0}};  // transformers ignores it
  for (const char* name : {"gemma2_capped", "gemma3_scaled"}) {
    auto all = of_both;
    const auto& own = std::string(name) == "gemma2_capped" ? of_gemma2 : of_gemma3;
    all.insert(all.end(), own.begin(), own.end());
    for (const auto& [key, value] : all) {
      const test::TemporaryDirectory directory;
      json config = json_of(golden_directory(name) / "config.json");
      config.erase("layer_types");
      config[key] = value;
      std::ofstream(directory.path() / "config.json") << config.dump();
      try {
        (void)read_family(directory.path());
        ADD_FAILURE() << name << " was read with " << key << " " << value;
      } catch (const Error& error) {
        // The error names a RoPE base as such.
        const std::string named = std::string(key).starts_with("rope") ? "rope theta" : key;
        EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
      }
    }
  }
}

// A window far beyond the kept tokens frees nothing; one of a single token frees all but the last
// pages.
TEST(GemmaConfig, AnyWindowRuns) {
  for (const char* name : {"gemma2_capped", "gemma3_one_in_three"}) {
    const GoldenModel golden(name);
    for (const int window : {1, 1 << 24}) {
      const test::TemporaryDirectory directory;
      test::copy_changed(name, {{"sliding_window_size", test::kNoKey}, {"sliding_window", window}},
                         directory.path());
      const auto model = test::load_f32(directory.path());
      const auto slow = model->open({});
      const auto fast = model->open({});
      test::expect_same_bits(test::decode_one_by_one(*model, *slow, golden.ids), 0,
                             test::run_block(*model, *fast, golden.ids));
    }
  }
}

constexpr const char* kCaps[] = {"attn_logit_softcapping", "final_logit_softcapping"};

// null and 0 mean no cap. A missing key means Gemma 2's own cap, and none in Gemma 3.
TEST(GemmaCaps, AreTheFamilysWhereAFileIsSilent) {
  const auto with = [](const char* name, const json& of_scores, const json& of_logits) {
    return test::logits_of_changed(name, {{kCaps[0], of_scores}, {kCaps[1], of_logits}});
  };
  const auto without = [](const char* name) {
    return test::logits_of_changed(name, {{kCaps[0], test::kNoKey}, {kCaps[1], test::kNoKey}});
  };
  for (const char* name : {"gemma2_capped", "gemma3_capped"}) {
    const bool is_gemma2 = std::string(name) == "gemma2_capped";
    const Rows none = with(name, nullptr, nullptr);
    EXPECT_TRUE(same_bits(none, with(name, 0, 0.0))) << name;
    EXPECT_FALSE(same_bits(none, with(name, nullptr, 30))) << name;
    if (is_gemma2) {
      EXPECT_FALSE(same_bits(none, with(name, 50, nullptr)));
    }
    EXPECT_TRUE(same_bits(is_gemma2 ? with(name, 50, 30) : none, without(name))) << name;
  }
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {(std::istreambuf_iterator<char>(stream)), {}};
}

TEST(GemmaCaps, AreTheFamilysInSilentGgufFiles) {
  const GoldenModel golden("gemma2_capped");
  std::string bytes = bytes_of(golden.directory / "model.gguf");
  for (const char* cap : kCaps) {
    // A key with another prefix is unknown.
    const std::string key = std::string("gemma2.") + cap;
    const std::size_t at = bytes.find(key);
    ASSERT_NE(at, std::string::npos);
    bytes[at] = 'G';
  }
  const test::TemporaryDirectory directory;
  const fs::path file = directory.path() / "silent.gguf";
  std::ofstream(file, std::ios::binary) << bytes;
  test::expect_same_bits(test::logits_of_changed("gemma2_capped", {{kCaps[0], 50}, {kCaps[1], 30}}),
                         0, test::logits_of(file, golden.ids));
}

// No logit exceeds the cap, and some come near it.
TEST(GemmaCaps, BoundTheLogits) {
  const GoldenModel golden("gemma2_capped");
  float largest = 0;
  for (const auto& row : test::logits_of(golden.directory, golden.ids)) {
    for (const float logit : row) largest = std::max(largest, std::fabs(logit));
  }
  EXPECT_LE(largest, 4.0F);
  EXPECT_GE(largest, 3.9F);
}

// The scale of scores, which GGUF files omit: by the head dimension, except for models with as many
// layers as those of 27B.
TEST(GemmaConfig, ScoresOf27BAreScaledByTheWidthOfEvenHeads) {
  for (const auto& [name, n_layers_of_27b] : {std::pair{"gemma2", 46}, std::pair{"gemma3", 62}}) {
    const fs::path golden =
        golden_directory(std::string(name) == "gemma2" ? "gemma2_capped" : "gemma3_scaled");
    std::string bytes = bytes_of(golden / "model.gguf");
    const std::string key = std::string(name) + ".block_count";
    // After the key come its type and its value.
    const std::size_t at = bytes.find(key) + key.size() + sizeof(std::uint32_t);
    std::uint32_t n_layers = 0;
    std::memcpy(&n_layers, bytes.data() + at, sizeof n_layers);
    const auto own = static_cast<int>(n_layers);
    for (const int n : {own, n_layers_of_27b}) {
      n_layers = static_cast<std::uint32_t>(n);
      std::memcpy(bytes.data() + at, &n_layers, sizeof n_layers);
      const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "changed.gguf");
      const auto family = read_family(*file);
      ASSERT_EQ(family->config().n_layers, n);
      WeightOptions options = make_weight_options({.weights = WeightKind::f32, .n_threads = 1});
      options.names = NamingScheme::gguf;
      WeightLoader loader(*file, options);
      const DecoderLayer layer = loader.run([&](WeightLoader& walk) {
        LayerLoader from(walk, "blk.0.");
        return family->load_layer(from, 0);
      });
      // Both goldens: width 24, 4 heads of 8.
      EXPECT_FLOAT_EQ(layer.attention.scale, 1 / std::sqrt(n == own ? 8.0F : 6.0F)) << name;
    }
  }
}

// Heads draft with the output matrix and the cap after it: the target's own, and a copy in fewer
// bits.
TEST(GemmaCaps, HoldForHeadsThatShareTheOutputMatrix) {
  const GoldenModel golden("gemma2_capped");
  const auto load = [&](WeightKind kind) {
    return load_model(golden.directory, {.weights = kind, .n_threads = 2});
  };
  const auto target = load(WeightKind::f32);
  const auto sequence = target->open({});
  const TokenBlock block{sequence.get(), golden.ids, {}};
  const int last[] = {target->config().n_layers};
  ForwardOutput output;
  target->forward({&block, 1}, {.feature_layers = last}, output);
  const std::vector<float> features(
      output.features.begin(),
      output.features.begin() +
          static_cast<std::ptrdiff_t>(golden.ids.size()) * target->config().dim);
  const auto projected = [&](auto& lender) {
    ForwardOutput logits;
    lender.project(features, logits);
    return test::rows_of(logits);
  };
  test::expect_same_bits(test::rows_of(output), 0, projected(*target));

  SharedOutput copy(*target, make_weight_options({.weights = WeightKind::int8, .n_threads = 1}));
  ASSERT_TRUE(copy.is_copy());
  const Rows of_copy = projected(copy);
  test::expect_same_bits(projected(*load(WeightKind::int8)), 0, of_copy);
  EXPECT_FALSE(same_bits(projected(*target), of_copy));
}

}  // namespace
}  // namespace outrider
