// SPDX-License-Identifier: Apache-2.0
// Particulars of Qwen3-Next's and Qwen3.5's files: which layers attend, shapes of states, GGUF's
// order of value heads, modules after the layers, and keys of other models.
#include "model/families/recurrent/qwen_hybrid.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/test_files.h"
#include "model/families/registry.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::golden_directory;
using test::GoldenModel;
using test::json_of;
using test::Rows;

TEST(QwenHybridConfig, SaysWhichLayersAttend) {
  const auto n_recurrent = [](const char* name, const json& changes) {
    const test::ReadConfig read = test::read_changed(name, changes);
    EXPECT_EQ(read.refusal, "");
    return read.family == nullptr ? -1 : read.family->recurrent_layers().n;
  };
  EXPECT_EQ(n_recurrent("qwen3_next_plain", {}), 3);
  EXPECT_EQ(n_recurrent("qwen3_next_plain", {{"full_attention_interval", 2}}), 2);
  EXPECT_EQ(n_recurrent("qwen3_next_plain", {{"full_attention_interval", "(none)"}}), 3);
  EXPECT_EQ(n_recurrent("qwen3_next_plain", {{"full_attention_interval", 1}}), 0);
  // The list of types counts, if present.
  EXPECT_EQ(n_recurrent("qwen3_5_grouped", {}), 4);
  EXPECT_EQ(n_recurrent("qwen3_5_grouped", {{"full_attention_interval", 1}}), 4);
  for (const auto& [key, value, named] :
       {std::tuple{"full_attention_interval", json(0), "full_attention_interval"},
        std::tuple{"layer_types", json({"linear_attention"}), "layer_types"},
        std::tuple{
            "layer_types",
            json({"full_attention", "conv", "full_attention", "full_attention", "full_attention"}),
            "full_attention or linear_attention"}}) {
    const std::string refusal = test::read_changed("qwen3_5_grouped", {{key, value}}).refusal;
    EXPECT_NE(refusal.find(named), std::string::npos) << refusal;
  }
}

// For a GGUF file with these layers, flags of recurrent ones (or none) and modules: describes which
// layers attend.
std::string layers_of_gguf(unsigned n_layers, const std::vector<std::uint8_t>& recurrent,
                           unsigned n_modules) {
  const test::TemporaryDirectory directory;
  test::Gguf file;
  file.text("general.architecture", "qwen35")
      .value("qwen35.vocab_size", test::kU32, 300U)
      .value("qwen35.context_length", test::kU32, 64U)
      .value("qwen35.block_count", test::kU32, n_layers)
      .value("qwen35.embedding_length", test::kU32, 64U)
      .value("qwen35.feed_forward_length", test::kU32, 96U)
      .value("qwen35.attention.head_count", test::kU32, 4U)
      .value("qwen35.attention.key_length", test::kU32, 16U)
      .value("qwen35.attention.value_length", test::kU32, 16U)
      .value("qwen35.attention.layer_norm_rms_epsilon", test::kF32, 1e-6F)
      .value("qwen35.rope.dimension_count", test::kU32, 4U)
      .value("qwen35.ssm.conv_kernel", test::kU32, 4U)
      .value("qwen35.ssm.state_size", test::kU32, 8U)
      .value("qwen35.ssm.group_count", test::kU32, 2U)
      .value("qwen35.ssm.time_step_rank", test::kU32, 2U)
      .value("qwen35.ssm.inner_size", test::kU32, 16U)
      .value("qwen35.nextn_predict_layers", test::kU32, n_modules);
  if (!recurrent.empty()) {
    file.array("qwen35.attention.recurrent_layers", test::kBool, recurrent);
  }
  const test::Bytes bytes = file.bytes();
  std::ofstream(directory.path() / "model.gguf", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  try {
    const auto family = read_family(*open_gguf(directory.path() / "model.gguf"));
    return fmt::format("{} layers, {} recurrent", family->config().n_layers,
                       family->recurrent_layers().n);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(QwenHybridConfig, ReadsFlagsAndModulesOfGguf) {
  EXPECT_EQ(layers_of_gguf(8, {}, 0), "8 layers, 6 recurrent");
  EXPECT_EQ(layers_of_gguf(9, {}, 1), "8 layers, 6 recurrent");
  EXPECT_EQ(layers_of_gguf(3, {1, 0, 0}, 0), "3 layers, 1 recurrent");
  // A module's flag may be in the list, or not.
  EXPECT_EQ(layers_of_gguf(4, {1, 0, 0, 1}, 1), "3 layers, 1 recurrent");
  EXPECT_EQ(layers_of_gguf(4, {1, 0, 0}, 1), "3 layers, 1 recurrent");
  for (const auto& [text, key] :
       {std::pair{layers_of_gguf(4, {1, 0, 0}, 0), "attention.recurrent_layers"},
        std::pair{layers_of_gguf(3, {1, 0, 0, 1, 1}, 1), "attention.recurrent_layers"},
        std::pair{layers_of_gguf(3, {}, 3), "nextn_predict_layers"}}) {
    EXPECT_NE(text.find(key), std::string::npos) << text;
  }
}

// transformers has no other weights in Qwen3.5, and llama.cpp in no file of these families.
TEST(QwenHybridConfig, MakesWeightsOfExpertsAddUp) {
  const json off = {{"norm_topk_prob", false}};
  EXPECT_EQ(test::read_changed("qwen3_next_plain", off).refusal, "");
  const std::string refusal = test::read_changed("qwen3_5_moe_plain", off).refusal;
  EXPECT_NE(refusal.find("norm_topk_prob"), std::string::npos) << refusal;
}

TEST(QwenHybridConfig, HasNoExpertsWhereNoLayerHasThem) {
  const test::ReadConfig read =
      test::read_changed("qwen3_next_plain", {{"decoder_sparse_step", 9}});
  ASSERT_NE(read.family, nullptr) << read.refusal;
  EXPECT_EQ(read.family->config().n_experts, 0);
}

TEST(QwenHybridConfig, HasTheShapeOfStates) {
  const test::ReadConfig read = test::read_changed("qwen3_5_grouped", {});
  ASSERT_NE(read.family, nullptr) << read.refusal;
  const RecurrentShape& shape = read.family->recurrent_layers().shape;
  EXPECT_EQ(shape.delta.convolved_width(), 2 * 2 * 12 + 4 * 12);
  EXPECT_EQ(shape.state_width, 3 * 96 + 4 * 12 * 12);
  EXPECT_EQ(shape.input_width, 96 + 2 * 12 + 4 * 12 + 2 * 4);
  EXPECT_FALSE(shape.delta.is_tiled);
  const auto file = open_gguf(golden_directory("qwen3_5_grouped") / "tiled.gguf");
  const auto tiled = read_family(*file);
  RecurrentShape other = tiled->recurrent_layers().shape;
  EXPECT_TRUE(other.delta.is_tiled);
  other.delta.is_tiled = false;
  EXPECT_EQ(other, shape);
  // transformers' defaults.
  const test::ReadConfig defaults =
      test::read_changed("qwen3_5_grouped", {{"linear_num_key_heads", "(none)"},
                                             {"linear_num_value_heads", "(none)"},
                                             {"linear_key_head_dim", "(none)"},
                                             {"linear_value_head_dim", "(none)"},
                                             {"linear_conv_kernel_dim", "(none)"}});
  ASSERT_NE(defaults.family, nullptr) << defaults.refusal;
  EXPECT_EQ(defaults.family->recurrent_layers().shape.state_width, 3 * 8192 + 32 * 128 * 128);
}

TEST(QwenHybridConfig, RefusesWhatIsAnotherModel) {
  for (const auto& [key, value] :
       {std::pair{"linear_num_value_heads", json(3)}, std::pair{"linear_num_key_heads", json(0)},
        std::pair{"linear_key_head_dim", json(513)}, std::pair{"linear_value_head_dim", json(-1)},
        std::pair{"linear_conv_kernel_dim", json(1)}, std::pair{"attn_output_gate", json(false)},
        std::pair{"output_gate_type", json("sigmoid")}, std::pair{"use_sliding_window", json(true)},
        std::pair{"hidden_act", json("gelu")}}) {
    const std::string refusal = test::read_changed("qwen3_5_grouped", {{key, value}}).refusal;
    EXPECT_NE(refusal.find(key), std::string::npos) << refusal;
  }
  // Keys that published files have as well.
  EXPECT_EQ(test::read_changed("qwen3_5_grouped", {{"attn_output_gate", true},
                                                   {"output_gate_type", "swish"},
                                                   {"mamba_ssm_dtype", "float32"},
                                                   {"mtp_num_hidden_layers", 1},
                                                   {"mtp_use_dedicated_embeddings", false}})
                .refusal,
            "");
  // RoPE sections belong to Qwen3.5.
  json rope = json_of(golden_directory("qwen3_5_grouped") / "config.json").at("rope_parameters");
  rope.erase("mrope_interleaved");
  const std::string refusal =
      test::read_changed("qwen3_next_mixed", {{"rope_parameters", rope}}).refusal;
  EXPECT_NE(refusal.find("mrope_section"), std::string::npos) << refusal;
}

// A weight of the other kind of layer is refused by name, and so is a missing one.
TEST(QwenHybridWeights, AreThoseOfTheConfiguration) {
  const std::string kind =
      test::refusal_to_load("qwen3_next_plain", {{"full_attention_interval", 2}});
  EXPECT_NE(kind.find("layers.1.self_attn.q_proj"), std::string::npos) << kind;
  const std::string taps =
      test::refusal_to_load("qwen3_5_grouped", {{"linear_conv_kernel_dim", 3}});
  EXPECT_NE(taps.find("linear_attn.conv1d"), std::string::npos) << taps;
  const std::string shared =
      test::refusal_to_load("qwen3_next_plain", {{"shared_expert_intermediate_size", 20}});
  EXPECT_NE(shared.find("shared_expert.gate_proj"), std::string::npos) << shared;
}

// If a key head has several value heads, Qwen3.5's GGUF files order these differently, and the
// output product sums them in that order. The bits differ from the directory's, but are as close to
// transformers.
class TiledGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(TiledGguf, HasTheLogitsOfTransformers) {
  const GoldenModel golden(GetParam());
  const auto model = test::load_f32(golden.directory / "tiled.gguf");
  const auto sequence = model->open({});
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
  EXPECT_GT(largest, 0);
}

INSTANTIATE_TEST_SUITE_P(All, TiledGguf, ::testing::ValuesIn(test::golden_names("tiled.gguf")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace outrider
