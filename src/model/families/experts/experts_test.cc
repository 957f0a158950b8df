// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts in files: the same numbers in every form, and refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "model/families/registry.h"
#include "model/load/expert_loader.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::golden_directory;
using test::GoldenModel;
using test::json_of;
using test::Rows;

Rows logits_of(const fs::path& path, const std::vector<TokenId>& tokens) {
  const auto model = test::load_f32(path);
  const auto sequence = model->open({});
  return test::run_block(*model, *sequence, tokens);
}

test::TinyModel tiny_mixtral() {
  test::TinyShape shape;
  shape.n_layers = 1;
  shape.n_experts = 3;
  shape.n_experts_used = 2;
  return test::make_tiny_model(shape);
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string load_error(const test::TinyModel& model) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(model, directory.path());
  return error_of([&] { (void)load_model(directory.path()); });
}

// Mixtral's first GGUF files name every expert's matrices; later ones stack them.
TEST(ExpertFiles, OfBothKindsOfGgufHaveTheBitsOfTheDirectory) {
  const test::TinyModel model = tiny_mixtral();
  const test::TemporaryDirectory directory;
  test::write_hugging_face(model, directory.path());
  test::write_gguf(model, directory.path() / "stacked.gguf");
  test::TinyModel each = model;
  for (test::TinyTensor& tensor : each.tensors) {
    for (const auto& [from, to] : {std::pair{"w1", "gate"}, {"w3", "up"}, {"w2", "down"}}) {
      for (int expert = 0; expert < 3; ++expert) {
        if (tensor.name.ends_with("experts." + std::to_string(expert) + "." + from + ".weight")) {
          tensor.name =
              std::string("model.layers.0.ffn_") + to + "." + std::to_string(expert) + ".weight";
        }
      }
    }
  }
  test::write_gguf(each, directory.path() / "each.gguf");
  const std::vector<TokenId> tokens = {5, 9, 200, 31, 7};
  const Rows expected = logits_of(directory.path(), tokens);
  test::expect_same_bits(expected, 0, logits_of(directory.path() / "stacked.gguf", tokens));
  test::expect_same_bits(expected, 0, logits_of(directory.path() / "each.gguf", tokens));
}

// Routers are f32 under every --weights, so that it does not change a row's experts.
TEST(ExpertFiles, KeepTheRouterInF32) {
  const test::TinyModel model = tiny_mixtral();
  const test::TemporaryDirectory directory;
  test::write_hugging_face(model, directory.path(), ElementType::bf16);
  for (const auto kind : {WeightKind::bf16, WeightKind::int8, WeightKind::int4}) {
    const auto loaded = load_model(directory.path(), {.weights = kind});
    std::int64_t n_f32 = 0;
    for (const Footprint::Share& share : loaded->footprint().shares) {
      if (std::string(share.kind) == "f32") n_f32 += share.n_weights;
    }
    EXPECT_EQ(n_f32, 3 * 64);
  }
}

TEST(ExpertFiles, WithOtherNumbersOfExpertsAreRefused) {
  EXPECT_EQ(load_error(tiny_mixtral()), "");
  test::TinyModel fewer = tiny_mixtral();
  std::erase_if(fewer.tensors, [](const test::TinyTensor& tensor) {
    return tensor.name.find("experts.2.w3") != std::string::npos;
  });
  EXPECT_NE(load_error(fewer).find("a tensor model.layers.0.block_sparse_moe.experts.2.w3.weight"),
            std::string::npos)
      << load_error(fewer);
  test::TinyModel more = tiny_mixtral();
  more.tensors.push_back(
      {"model.layers.0.block_sparse_moe.experts.3.w1.weight", {96, 64}, std::vector<float>(6144)});
  EXPECT_NE(load_error(more).find("experts.3.w1"), std::string::npos) << load_error(more);
  test::TinyModel router = tiny_mixtral();
  test::TinyTensor& gate = router.at("model.layers.0.block_sparse_moe.gate.weight");
  gate.shape[0] = 4;
  gate.values.resize(256);
  EXPECT_NE(load_error(router).find("shape (3, 64)"), std::string::npos) << load_error(router);
  // Each stacked tensor has its own count.
  test::TinyModel stacked = tiny_mixtral();
  const test::TemporaryDirectory directory;
  test::write_gguf(stacked, directory.path() / "right.gguf");
  EXPECT_EQ(error_of([&] { (void)load_model(directory.path() / "right.gguf"); }), "");
  stacked.shape.n_experts = 2;  // the metadata's number, and the number of stacked experts
  test::write_gguf(stacked, directory.path() / "router.gguf");
  const std::string error = error_of([&] { (void)load_model(directory.path() / "router.gguf"); });
  EXPECT_NE(error.find("blk.0.ffn_gate_inp.weight of shape (2, 64)"), std::string::npos) << error;
}

TEST(ExpertConfig, NumbersOutOfBoundsAreNamed) {
  EXPECT_EQ(test::read_changed("mixtral_plain", nlohmann::json::object()).refusal, "");
  for (const auto& [name, key, value] :
       {std::tuple{"mixtral_plain", "num_local_experts", nlohmann::json(0)},
        std::tuple{"mixtral_plain", "num_local_experts", nlohmann::json(5000)},
        std::tuple{"mixtral_plain", "num_local_experts", nlohmann::json(test::kNoKey)},
        std::tuple{"mixtral_plain", "num_experts_per_tok", nlohmann::json(5)},
        std::tuple{"mixtral_plain", "num_experts_per_tok", nlohmann::json(0)},
        std::tuple{"mixtral_plain", "num_experts_per_tok", nlohmann::json(test::kNoKey)},
        std::tuple{"mixtral_plain", "num_experts_per_tok", nlohmann::json("x")},
        std::tuple{"qwen3_moe_plain", "num_experts", nlohmann::json(-1)},
        std::tuple{"qwen3_moe_plain", "num_local_experts", nlohmann::json(9)},
        std::tuple{"qwen3_moe_plain", "moe_intermediate_size", nlohmann::json(0)},
        std::tuple{"qwen3_moe_plain", "decoder_sparse_step", nlohmann::json(0)},
        std::tuple{"qwen3_moe_plain", "mlp_only_layers", nlohmann::json(3)},
        std::tuple{"gpt_oss_plain", "num_local_experts", nlohmann::json(0)},
        std::tuple{"gpt_oss_plain", "num_experts_per_tok", nlohmann::json(7)}}) {
    const std::string error = test::read_changed(name, {{key, value}}).refusal;
    EXPECT_NE(error.find(key), std::string::npos) << key << ": " << error;
  }
}

// Keys of other mixtures, which these families do not know.
TEST(ExpertConfig, UnknownVariantsAreNamed) {
  for (const char* name : {"mixtral_plain", "qwen3_moe_plain", "olmoe_plain", "gpt_oss_plain"}) {
    for (const auto& [key, value] :
         {std::pair{"shared_expert_intermediate_size", nlohmann::json(16)},
          std::pair{"n_shared_experts", nlohmann::json(1)}, std::pair{"n_group", nlohmann::json(2)},
          std::pair{"scoring_func", nlohmann::json("sigmoid")},
          std::pair{"routed_scaling_factor", nlohmann::json(2.5)},
          std::pair{"clip_qkv", nlohmann::json(8.0)},
          std::pair{"hidden_act", nlohmann::json("gelu")}}) {
      const std::string error = test::read_changed(name, {{key, value}}).refusal;
      EXPECT_NE(error.find(key), std::string::npos) << name << ", " << key << ": " << error;
    }
  }
}

// Which layers have experts, and how weights are computed, change the logits.
TEST(ExpertConfig, MeansWhatItSays) {
  const auto logits = [](bool sums_to_one) {
    return test::logits_of_changed("qwen3_moe_plain", {{"norm_topk_prob", sums_to_one}});
  };
  EXPECT_FALSE(test::same_bits(logits(true).back(), logits(false).back()));
  const ModelConfig mixed = read_config_json(golden_directory("qwen3_moe_mixed"));
  EXPECT_EQ(mixed.n_expert_layers, 1);
  EXPECT_EQ(mixed.n_experts, 4);
  EXPECT_EQ(mixed.n_experts_used, 2);
  EXPECT_EQ(mixed.expert_dim, 14);
  EXPECT_EQ(mixed.hidden_dim, 28);
}

// If no layer has experts, the model does not report any.
TEST(ExpertConfig, OfDenseLayersAloneIsThatOfADenseModel) {
  const test::TemporaryDirectory directory;
  test::write_changed_config("qwen3_moe_mixed", {{"decoder_sparse_step", 99}}, directory.path());
  const ModelConfig config = read_config_json(directory.path());
  EXPECT_EQ(config.n_expert_layers, 0);
  EXPECT_EQ(config.n_experts, 0);
  EXPECT_EQ(config.n_experts_used, 0);
  EXPECT_EQ(config.expert_dim, 0);
}

TEST(ExpertNames, AreKnownInEveryForm) {
  for (const char* name : {"model.layers.0.block_sparse_moe.experts.7.w1.weight",
                           "model.layers.0.mlp.experts.gate_up_proj", "blk.3.ffn_down_exps.weight",
                           "blk.3.ffn_gate.5.weight", "blk.3.ffn_up_exps.bias",
                           "model.layers.0.mlp.experts.down_proj_blocks",
                           "model.layers.0.block_sparse_moe.input_linear.weight",
                           "model.layers.0.block_sparse_moe.output_linear.weight"}) {
    EXPECT_TRUE(is_of_expert(name)) << name;
  }
  for (const char* name :
       {"model.layers.0.block_sparse_moe.gate.weight", "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.block_sparse_moe.router.layer.weight",
        "model.layers.0.shared_mlp.input_linear.weight", "blk.3.ffn_gate_inp.weight",
        "blk.3.ffn_gate_inp.bias", "model.layers.0.mlp.router.bias", "blk.3.ffn_gate.weight",
        "token_embd.weight"}) {
    EXPECT_FALSE(is_of_expert(name)) << name;
  }
}

}  // namespace
}  // namespace outrider
