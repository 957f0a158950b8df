// SPDX-License-Identifier: Apache-2.0
// Particulars of GLM-4.5's and GLM-4.7-Flash's files: heads, biases and norms, layers without
// experts, routing, modules, and refused variants.
#include "model/families/experts/glm4_moe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>

#include "io/gguf/gguf.h"
#include "model/families/registry.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"

namespace outrider {
namespace {

using nlohmann::json;
using test::golden_directory;
using test::kNoKey;
using test::Rows;
using ::testing::HasSubstr;

TEST(Glm4MoeConfig, HasTheNumbersOfBothFormats) {
  for (const char* file : {"", "model.gguf"}) {
    const ModelConfig config = test::load_f32(golden_directory("glm4_moe_plain") / file)->config();
    EXPECT_EQ(config.architecture, "glm4_moe");
    EXPECT_EQ(config.n_layers, 2);
    EXPECT_EQ(config.head_dim, 12);
    EXPECT_EQ(config.rotated_dim(), 6);
    EXPECT_TRUE(config.attention_bias);
    EXPECT_EQ(config.n_experts, 6);
    EXPECT_EQ(config.n_experts_used, 2);
    EXPECT_EQ(config.expert_dim, 8);
    EXPECT_EQ(config.n_expert_layers, 1);
    const ModelConfig lite =
        test::load_f32(golden_directory("glm4_moe_lite_plain") / file)->config();
    EXPECT_EQ(lite.latent_dim, 16);
    EXPECT_EQ(lite.rotated_dim(), 6);
    EXPECT_EQ(lite.head_dim, 16);
    EXPECT_EQ(lite.n_experts, 6);
    EXPECT_EQ(lite.n_expert_layers, 1);
  }
  EXPECT_EQ(read_config_json(golden_directory("glm4_moe_lite_listed")).n_expert_layers, 1);
  EXPECT_EQ(read_config_json(golden_directory("glm4_moe_lite_stacked")).n_expert_layers, 2);
  EXPECT_EQ(read_config_json(golden_directory("glm4_moe_stacked")).rotated_dim(), 6);
}

TEST(Glm4MoeConfig, MeansWhatItSays) {
  for (const auto& [name, change] :
       {std::tuple{"glm4_moe_air", json{{"topk_group", 4}}},
        std::tuple{"glm4_moe_air", json{{"norm_topk_prob", false}}},
        std::tuple{"glm4_moe_plain", json{{"routed_scaling_factor", 1.0}}},
        std::tuple{"glm4_moe_plain", json{{"partial_rotary_factor", 1.0}}},
        std::tuple{"glm4_moe_lite_listed", json{{"topk_group", 3}}},
        std::tuple{"glm4_moe_lite_listed", json{{"norm_topk_prob", true}}}}) {
    const Rows right = test::logits_of_changed(name, json::object());
    const Rows other = test::logits_of_changed(name, change);
    // If only the last layer has experts, a row may happen to choose the same ones.
    EXPECT_FALSE(std::equal(right.begin(), right.end(), other.begin(), test::same_bits))
        << name << " " << change;
  }
}

// transformers' defaults for missing keys.
TEST(Glm4MoeConfig, HasTheDefaultsOfTransformers) {
  for (const auto& [name, keys] :
       {std::tuple{"glm4_moe_plain", json{{"partial_rotary_factor", kNoKey},
                                          {"first_k_dense_replace", kNoKey},
                                          {"n_shared_experts", kNoKey},
                                          {"norm_topk_prob", kNoKey},
                                          {"n_group", kNoKey},
                                          {"topk_group", kNoKey}}},
        std::tuple{"glm4_moe_lite_plain", json{{"partial_rotary_factor", kNoKey},
                                               {"first_k_dense_replace", kNoKey},
                                               {"topk_method", kNoKey},
                                               {"n_shared_experts", kNoKey},
                                               {"norm_topk_prob", kNoKey},
                                               {"n_group", kNoKey},
                                               {"topk_group", kNoKey},
                                               {"routed_scaling_factor", kNoKey}}}}) {
    test::expect_same_bits(test::logits_of_changed(name, json::object()), 0,
                           test::logits_of_changed(name, keys));
  }
}

// The file's norms and biases must be those that its configuration names.
TEST(Glm4MoeWeights, AreThoseOfTheConfiguration) {
  EXPECT_THAT(test::refusal_to_load("glm4_moe_plain", {{"use_qk_norm", false}}),
              HasSubstr("_norm.weight"));
  EXPECT_THAT(test::refusal_to_load("glm4_moe_air", {{"use_qk_norm", true}}), HasSubstr("q_norm"));
  EXPECT_THAT(test::refusal_to_load("glm4_moe_plain", {{"attention_bias", false}}),
              HasSubstr("_proj.bias"));
  EXPECT_THAT(test::refusal_to_load("glm4_moe_plain", {{"first_k_dense_replace", 0}}),
              HasSubstr("mlp.gate.weight"));
}

TEST(Glm4MoeConfig, RefusesWhatIsAnotherModel) {
  EXPECT_EQ(test::read_changed("glm4_moe_plain", json::object()).refusal, "");
  EXPECT_EQ(test::read_changed("glm4_moe_lite_plain", json::object()).refusal, "");
  for (const auto& [name, key, value] :
       {std::tuple{"glm4_moe_plain", "scoring_func", json("softmax")},
        std::tuple{"glm4_moe_plain", "topk_method", json("greedy")},
        std::tuple{"glm4_moe_plain", "n_group", json(4)},
        std::tuple{"glm4_moe_plain", "n_group", json(6)},
        std::tuple{"glm4_moe_air", "topk_group", json(5)},
        std::tuple{"glm4_moe_plain", "n_routed_experts", json(kNoKey)},
        std::tuple{"glm4_moe_plain", "partial_rotary_factor", json(1.5)},
        std::tuple{"glm4_moe_plain", "hidden_act", json("gelu")},
        std::tuple{"glm4_moe_plain", "mlp_layer_types", json({"dense", "sparse"})},
        std::tuple{"glm4_moe_plain", "moe_layer_freq", json(2)},
        std::tuple{"glm4_moe_lite_plain", "partial_rotary_factor", json(0.5)},
        std::tuple{"glm4_moe_lite_plain", "attention_bias", json(true)},
        std::tuple{"glm4_moe_lite_plain", "rope_interleave", json(false)},
        std::tuple{"glm4_moe_lite_plain", "num_key_value_heads", json(1)},
        std::tuple{"glm4_moe_lite_plain", "mlp_layer_types", json({"sparse", "sparse"})},
        std::tuple{"glm4_moe_lite_listed", "mlp_layer_types", json({"dense", "sparse"})},
        std::tuple{"glm4_moe_lite_listed", "mlp_layer_types", json({"dense", "sparse", "dense"})},
        std::tuple{"glm4_moe_lite_listed", "mlp_layer_types", json({"dense", "linear", "sparse"})},
        std::tuple{"glm4_moe_lite_listed", "first_k_dense_replace", json(1)}}) {
    const std::string error = test::read_changed(name, {{key, value}}).refusal;
    const bool is_of_list = std::string(key) == "first_k_dense_replace";
    EXPECT_THAT(error, HasSubstr(is_of_list ? "mlp_layer_types" : key)) << name << " " << value;
  }
}

// The golden's GGUF file with one metadata key renamed to an unknown one, or with another value of
// the same length.
std::string changed_gguf(const char* name, const std::string& from, const std::string& to) {
  std::ifstream stream(golden_directory(name) / "model.gguf", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_EQ(from.size(), to.size());
  const std::size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  bytes.replace(at, from.size(), to);
  return bytes;
}

std::string refusal_of(const std::string& bytes) {
  try {
    (void)read_family(*parse_gguf(std::as_bytes(std::span(bytes)), "changed.gguf"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// GLM-4.7-Flash's files have DeepSeek-V2's architecture and do not say how scores are computed: the
// choice bias implies sigmoids. With a softmax, weights would have to sum to 1, and no file says
// so.
TEST(Glm4MoeGguf, KnowsSigmoidsByTheBiasOfChoices) {
  EXPECT_EQ(refusal_of(changed_gguf("glm4_moe_lite_plain", "deepseek2.expert_weights_norm",
                                    "deepseek2.expert_weights_norm")),
            "");
  EXPECT_THAT(refusal_of(changed_gguf("glm4_moe_lite_plain", "blk.1.exp_probs_b.bias",
                                      "blk.1.exp_probs_b.bios")),
              HasSubstr("expert_weights_norm"));
}

// Here sigmoids are the default, as in llama.cpp.
TEST(Glm4MoeGguf, HasSigmoidsUnlessItSaysOtherwise) {
  const std::string key = "glm4moe.expert_gating_func";
  std::string bytes = changed_gguf("glm4_moe_plain", key, "general.expert_gating_func");
  const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "changed.gguf");
  EXPECT_NO_THROW((void)read_family(*file));
  bytes = changed_gguf("glm4_moe_plain", key, key);
  // After the key come its type, four bytes, and the number.
  bytes[bytes.find(key) + key.size() + 4] = 1;
  EXPECT_THAT(refusal_of(bytes), HasSubstr("expert_weights_norm"));
}

}  // namespace
}  // namespace outrider
