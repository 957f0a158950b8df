// SPDX-License-Identifier: Apache-2.0
// gpt-oss in files: experts in MXFP4 of both formats, configurations, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "model/families/registry.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::golden_directory;
using test::GoldenModel;
using test::json_of;
using test::Rows;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Rows logits_of(const fs::path& path, const std::vector<TokenId>& tokens,
               const LoadOptions& options) {
  const auto model = load_model(path, options);
  const auto sequence = model->open({});
  return test::run_block(*model, *sequence, tokens);
}

std::string bytes_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A copy of a golden directory with some keys of config.json changed (null: removed).
class Changed {
 public:
  Changed(const std::string& name, const nlohmann::json& changes) {
    fs::copy(golden_directory(name), path(), fs::copy_options::recursive);
    nlohmann::json json = json_of(path() / "config.json");
    for (const auto& [key, value] : changes.items()) {
      json.erase(key);
      if (!value.is_null()) json[key] = value;
    }
    std::ofstream(path() / "config.json") << json.dump();
  }
  const fs::path& path() const { return directory_.path(); }

  // Replaces a text by another one of the same length everywhere in the file.
  void replace(const char* file, const std::string& from, const std::string& to) const {
    std::string bytes = bytes_of(path() / file);
    ASSERT_EQ(from.size(), to.size());
    ASSERT_NE(bytes.find(from), std::string::npos) << from;
    for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos;) {
      bytes.replace(at, from.size(), to);
    }
    std::ofstream(path() / file, std::ios::binary) << bytes;
  }

 private:
  test::TemporaryDirectory directory_;
};

auto fails(const std::string& text) { return ThrowsMessage<Error>(HasSubstr(text)); }

auto loading(const fs::path& path) {
  return [path] { (void)load_model(path); };
}

auto reading(const nlohmann::json& changes) {
  return [changes] { (void)read_family(Changed("gpt_oss_plain", changes).path()); };
}

// Held with the same bits from either format: codes and scales are the same numbers.
TEST(GptOssFiles, BlocksOfMxfp4HaveTheSameBitsInBothFormats) {
  const GoldenModel golden("gpt_oss_mxfp4");
  Rows expected;
  for (const auto& [name, table] : test::runnable_tables()) {
    SCOPED_TRACE(name);
    LoadOptions options;
    options.table = table;
    options.n_threads = 2;
    // The other tensors are f32 in the GGUF file, and bf16 in the directory, which is widened.
    const Rows rows = logits_of(golden.directory, golden.ids, options);
    if (expected.empty()) expected = rows;
    test::expect_same_bits(expected, 0, rows);
    test::expect_same_bits(expected, 0,
                           logits_of(golden.directory / "model.gguf", golden.ids, options));
  }
  for (const fs::path& path : {golden.directory, golden.directory / "model.gguf"}) {
    const Footprint footprint = load_model(path)->footprint();
    std::set<std::string> kinds;
    for (const Footprint::Share& share : footprint.shares) {
      kinds.insert(share.kind);
      if (std::string(share.kind) != "mxfp4") continue;
      EXPECT_EQ(share.n_weights, 2 * 4 * 3 * 32 * 64);
    }
    EXPECT_EQ(kinds, (std::set<std::string>{"f32", "mxfp4"}));
  }
}

// With --weights they are decoded exactly and rounded like any other matrix: the numbers of the
// golden's GGUF file in f32, which the other test compares, in three more formats.
TEST(GptOssFiles, BlocksOfMxfp4BecomeOtherKinds) {
  const GoldenModel golden("gpt_oss_mxfp4");
  for (const WeightKind kind : {WeightKind::bf16, WeightKind::int8, WeightKind::int4}) {
    LoadOptions options;
    options.weights = kind;
    options.n_threads = 1;
    test::expect_same_bits(logits_of(golden.directory, golden.ids, options), 0,
                           logits_of(golden.directory / "model.gguf", golden.ids, options));
  }
}

TEST(GptOssFiles, WithoutAPartAreRefused) {
  const auto with = [](const std::string& name, const std::string& from, const std::string& to) {
    return [name, from, to] {
      const Changed changed(name, {});
      changed.replace("model.safetensors", from, to);
      loading(changed.path())();
    };
  };
  EXPECT_THAT(with("gpt_oss_mxfp4", "down_proj_scales", "down_proj_scalez"),
              fails("a tensor model.layers.0.mlp.experts.down_proj_scales"));
  EXPECT_THAT(with("gpt_oss_mxfp4", "\"U8\"", "\"I8\""), fails("of type u8"));
  EXPECT_THAT(with("gpt_oss_mxfp4", "down_proj_blocks", "down_proj_blockz"),
              fails("a tensor model.layers.0.mlp.experts.down_proj"));
  EXPECT_THAT(with("gpt_oss_mxfp4", "gate_up_proj_bias", "gate_up_proj_bios"),
              fails("experts.gate_up_proj_bias"));
  EXPECT_THAT(with("gpt_oss_plain", "self_attn.sinks", "self_attn.sunks"),
              fails("a tensor model.layers.0.self_attn.sinks"));
  EXPECT_THAT(with("gpt_oss_plain", "router.bias", "router.bios"), fails("mlp.router.bias"));
  // Another number of experts, or of rows.
  EXPECT_THAT(loading(Changed("gpt_oss_mxfp4", {{"num_local_experts", 3}}).path()),
              fails("shape (3, "));
  EXPECT_THAT(
      [] {
        loading(Changed("gpt_oss_mxfp4", {{"intermediate_size", 40}}).path())();
      },
      fails("shape (4, 80, 1, 16)"));
}

// If the file does not list its layers, windows alternate; GGUF never lists them.
TEST(GptOssConfig, ListsItsLayersOrNot) {
  const GoldenModel golden("gpt_oss_mxfp4");
  const LoadOptions options = {.n_threads = 1};
  const Rows expected = logits_of(golden.directory, golden.ids, options);
  const Changed unlisted("gpt_oss_mxfp4", {{"layer_types", nullptr}});
  test::expect_same_bits(expected, 0, logits_of(unlisted.path(), golden.ids, options));
  const Changed others("gpt_oss_mxfp4", {{"layer_types", {"full_attention", "sliding_attention"}}});
  EXPECT_FALSE(
      test::same_bits(expected.back(), logits_of(others.path(), golden.ids, options).back()));
}

TEST(GptOssConfig, LimitsItsExperts) {
  const GoldenModel golden("gpt_oss_plain");
  const LoadOptions options = {.n_threads = 1};
  const auto last = [&](const nlohmann::json& limit) {
    const Changed changed("gpt_oss_plain", {{"swiglu_limit", limit}});
    return logits_of(changed.path(), golden.ids, options).back();
  };
  EXPECT_FALSE(test::same_bits(last(1), last(1.5)));
  EXPECT_TRUE(test::same_bits(last(7), last(nullptr)));  // transformers' constant
}

// The first converters wrote nothing about yarn's bounds. A "false" under another name has no
// meaning, so renaming the key removes it.
TEST(GptOssConfig, BoundsAreNotWholeWhereGgufDoesNotSay) {
  const Changed changed("gpt_oss_plain", {});
  const auto frequencies = [&] {
    return rope_frequencies(read_config_gguf(*open_gguf(changed.path() / "model.gguf")));
  };
  const auto expected = frequencies();
  changed.replace("model.gguf", "rope.scaling.yarn_truncate", "rope.scaling.yarn_trunkate");
  EXPECT_EQ(frequencies(), expected);
  EXPECT_EQ(rope_frequencies(read_config_json(changed.path())), expected);
  nlohmann::json scaling = json_of(changed.path() / "config.json")["rope_scaling"];
  scaling["truncate"] = true;
  EXPECT_NE(rope_frequencies(
                read_config_json(Changed("gpt_oss_plain", {{"rope_scaling", scaling}}).path())),
            expected);
}

TEST(GptOssConfig, WhatContradictsIsNamed) {
  EXPECT_NO_THROW(reading({})());
  for (const auto& [key, value] : {std::pair{"experts_per_token", nlohmann::json(3)},
                                   std::pair{"initial_context_length", nlohmann::json(64)},
                                   std::pair{"swiglu_limit", nlohmann::json(0)},
                                   std::pair{"swiglu_limit", nlohmann::json("x")},
                                   std::pair{"sliding_window", nlohmann::json(0)},
                                   std::pair{"layer_types", nlohmann::json::array({"full"})}}) {
    EXPECT_THAT(reading({{key, value}}), fails(key));
  }
  EXPECT_THAT(reading({{"rope_scaling", nullptr}}), fails("rope_parameters to be yarn"));
  EXPECT_THAT(
      reading({{"attention_bias", false}, {"quantization_config", {{"quant_method", "mxfp8"}}}}),
      fails("none, awq, gptq, compressed-tensors, fp8 or mxfp4"));
}

}  // namespace
}  // namespace outrider
