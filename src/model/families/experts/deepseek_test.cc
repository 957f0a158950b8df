// SPDX-License-Identifier: Apache-2.0
// Particulars of DeepSeek-V2's and V3's files: widths of latents and heads, routing, the cache's
// contents, and refused variants.
#include "model/families/experts/deepseek.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "model/families/registry.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::golden_directory;
using test::json_of;
using test::Rows;

TEST(DeepSeekConfig, HasTheWidthsOfBothFormats) {
  for (const char* file : {"", "model.gguf"}) {
    const ModelConfig v2 = test::load_f32(golden_directory("deepseek_v2_plain") / file)->config();
    EXPECT_EQ(v2.latent_dim, 20);
    EXPECT_EQ(v2.rotated_dim(), 8);
    EXPECT_EQ(v2.head_dim, 20);
    EXPECT_EQ(v2.n_kv_heads, 1);
    EXPECT_EQ(v2.n_experts, 6);
    EXPECT_EQ(v2.n_expert_layers, 1);
    const ModelConfig v3 = test::load_f32(golden_directory("deepseek_v3_plain") / file)->config();
    EXPECT_EQ(v3.latent_dim, 20);
    EXPECT_EQ(v3.head_dim, 20);
    EXPECT_EQ(v3.n_experts, 8);
    EXPECT_EQ(v3.rope.magnitude, 1);
  }
  const ModelConfig stacked = read_config_json(golden_directory("deepseek_v3_stacked"));
  const double log_factor = std::log(4.0);
  EXPECT_NEAR(stacked.rope.magnitude, (0.1 * log_factor + 1) / (0.04 * log_factor + 1), 1e-6);
}

// A token keeps its latent and one rotated part: 28 elements, in rows of 32.
TEST(DeepSeekCache, KeepsNothingForHeads) {
  const auto model = test::load_f32(golden_directory("deepseek_v3_plain"));
  EXPECT_EQ(model->footprint().kv_bytes_per_token, 2 * 32 * 4);
}

// The halves of kv_b_proj are f32 in an integer model, whatever --weights says.
TEST(DeepSeekWeights, KeepWhatIsTurnedInFloats) {
  for (const auto kind : {WeightKind::int8, WeightKind::int4}) {
    const auto model = load_model(golden_directory("deepseek_v3_plain"), {.weights = kind});
    std::int64_t n_f32 = 0;
    for (const Footprint::Share& share : model->footprint().shares) {
      if (std::string(share.kind) == "f32") n_f32 += share.n_weights;
    }
    // Two layers' halves, (12 + 12) * 20 of each of four heads; and a router.
    EXPECT_EQ(n_f32, 2 * 4 * 24 * 20 + 8 * 32);
  }
}

TEST(DeepSeekConfig, MeansWhatItSays) {
  const auto logits_with = [](const json& changes) {
    return test::logits_of_changed("deepseek_v3_plain", changes);
  };
  const Rows right = logits_with(json::object());
  for (const json& change : {json{{"topk_group", 4}}, json{{"norm_topk_prob", false}},
                             json{{"routed_scaling_factor", 1.0}}}) {
    EXPECT_FALSE(test::same_bits(right.back(), logits_with(change).back())) << change;
  }
  // A greedy choice ignores groups.
  test::expect_same_bits(
      test::logits_of_changed("deepseek_v2_plain", json::object()), 0,
      test::logits_of_changed("deepseek_v2_plain", {{"n_group", 3}, {"topk_group", 1}}));
}

TEST(DeepSeekConfig, RefusesWhatIsAnotherModel) {
  EXPECT_EQ(test::read_changed("deepseek_v3_plain", json::object()).refusal, "");
  for (const auto& [name, key, value] :
       {std::tuple{"deepseek_v3_plain", "scoring_func", json("softmax")},
        std::tuple{"deepseek_v3_plain", "topk_method", json("greedy")},
        std::tuple{"deepseek_v3_plain", "rope_interleave", json(false)},
        std::tuple{"deepseek_v3_plain", "attention_bias", json(true)},
        std::tuple{"deepseek_v3_plain", "moe_layer_freq", json(2)},
        std::tuple{"deepseek_v3_plain", "n_group", json(5)},
        std::tuple{"deepseek_v3_plain", "n_group", json(8)},
        std::tuple{"deepseek_v3_plain", "topk_group", json(5)},
        std::tuple{"deepseek_v3_plain", "topk_group", json(0)},
        std::tuple{"deepseek_v3_plain", "num_experts_per_tok", json(7)},
        std::tuple{"deepseek_v3_plain", "n_routed_experts", json(0)},
        std::tuple{"deepseek_v3_plain", "n_shared_experts", json(-1)},
        std::tuple{"deepseek_v3_plain", "first_k_dense_replace", json(-1)},
        std::tuple{"deepseek_v3_plain", "kv_lora_rank", json(0)},
        std::tuple{"deepseek_v3_plain", "kv_lora_rank", json(test::kNoKey)},
        std::tuple{"deepseek_v3_plain", "q_lora_rank", json(-1)},
        std::tuple{"deepseek_v3_plain", "qk_rope_head_dim", json(test::kNoKey)},
        std::tuple{"deepseek_v3_plain", "qk_nope_head_dim", json(0)},
        std::tuple{"deepseek_v3_plain", "v_head_dim", json(5000)},
        std::tuple{"deepseek_v3_plain", "num_key_value_heads", json(2)},
        std::tuple{"deepseek_v3_plain", "index_topk", json(2048)},
        std::tuple{"deepseek_v2_plain", "scoring_func", json("sigmoid")},
        std::tuple{"deepseek_v2_plain", "topk_method", json("noaux_tc")},
        std::tuple{"deepseek_v2_plain", "norm_topk_prob", json(true)},
        std::tuple{"deepseek_v2_plain", "mlp_bias", json(true)},
        std::tuple{"deepseek_v2_grouped", "n_group", json(3)}}) {
    const std::string error = test::read_changed(name, {{key, value}}).refusal;
    const bool is_of_choice = std::string(key) == "num_experts_per_tok";
    EXPECT_NE(error.find(is_of_choice ? "topk_group" : key), std::string::npos)
        << name << ", " << key << ": " << error;
  }
}

}  // namespace
}  // namespace outrider
