// SPDX-License-Identifier: Apache-2.0
// Particulars of Gemma 4's files: two kinds of heads, keys shared by several layers, a second
// embedding, and refused variants.
#include "model/families/gemma/gemma4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"
#include "io/safetensors/safetensors_writer.h"
#include "model/decoder_model.h"
#include "model/load_model.h"
#include "model/pass/blocks.h"
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
using test::kNoKey;
using test::logits_of;
using test::read_changed;

// The golden's rope_parameters with these changes for one kind of layers.
json rope_of(const char* golden, const char* layers, const json& changes) {
  json rope = json_of(golden_directory(golden) / "config.json")["rope_parameters"];
  rope[layers].update(changes);
  return rope;
}

TEST(Gemma4Config, HasTheShapesOfBothFormats) {
  for (const char* file : {"", "model.gguf"}) {
    const ModelConfig shared = test::load_f32(golden_directory("gemma4_shared") / file)->config();
    EXPECT_EQ(shared.head_dim, 8);
    EXPECT_EQ(shared.n_kv_heads, 1);
    EXPECT_EQ(shared.whole_head_dim, 16);
    EXPECT_EQ(shared.whole_n_kv_heads, 1);
    EXPECT_EQ(shared.hidden_dim, 28);
    EXPECT_EQ(shared.lenders, (std::vector<int>{kOwnKeys, kOwnKeys, kOwnKeys, kOwnKeys, 2, 2, 3}));
    EXPECT_EQ(shared.layer_input_dim, 6);
    EXPECT_EQ(shared.n_experts, 0);
    const ModelConfig moe = test::load_f32(golden_directory("gemma4_moe") / file)->config();
    EXPECT_EQ(moe.n_kv_heads, 2);
    EXPECT_EQ(moe.whole_n_kv_heads, 1);
    EXPECT_EQ(moe.whole_head_dim, 12);
    EXPECT_EQ(moe.layer_input_dim, 0);
    EXPECT_EQ(moe.n_experts, 6);
    EXPECT_EQ(moe.n_experts_used, 2);
    EXPECT_EQ(moe.expert_dim, 12);
  }
}

// Two of 8 pairs rotate, with the frequencies that they have among eight.
TEST(Gemma4Config, LeavesPairsStill) {
  for (const char* file : {"", "model.gguf"}) {
    const auto model = test::load_f32(golden_directory("gemma4_shared") / file);
    const auto& ropes = dynamic_cast<const DecoderModel&>(*model).pass().list().ropes;
    ASSERT_EQ(ropes.size(), 2U);
    const std::vector<double>& whole = ropes[0].frequencies;
    ASSERT_EQ(whole.size(), 8U);
    EXPECT_EQ(whole[0], 1);
    EXPECT_NEAR(whole[1], std::pow(1e6, -2.0 / 16), 1e-12);
    for (std::size_t pair = 2; pair < whole.size(); ++pair) EXPECT_EQ(whole[pair], 0);
    ASSERT_EQ(ropes[1].frequencies.size(), 4U);
    EXPECT_NEAR(ropes[1].frequencies[3], std::pow(1e4, -6.0 / 8), 1e-12);
  }
}

// Layers 4, 5 and 6 store nothing: they read the keys of layers 2 and 3.
TEST(Gemma4Cache, IsSharedByTheLastLayers) {
  const auto model = test::load_f32(golden_directory("gemma4_shared"));
  const PassList& list = dynamic_cast<const DecoderModel&>(*model).pass().list();
  EXPECT_EQ(list.caches.size(), 4U);
  std::vector<int> read;
  for (const Op& op : list.ops) {
    if (const auto* attend = std::get_if<op::Attend>(&op.what)) read.push_back(attend->cache_layer);
  }
  EXPECT_EQ(read, (std::vector<int>{0, 1, 2, 3, 2, 2, 3}));
}

// A layer can be skipped only together with all layers that read its keys.
TEST(Gemma4Cache, IsNotReadWhereItsLayerIsLeftOut) {
  const auto model = test::load_f32(golden_directory("gemma4_shared"));
  const std::vector<TokenId> ids = {5, 9, 33, 12};
  const auto run = [&](const std::vector<int>& skipped) -> std::string {
    const auto sequence = model->open({});
    ForwardOutput output;
    const TokenBlock block{sequence.get(), ids, {}};
    try {
      model->forward({&block, 1}, {.logits = {}, .skip_layers = skipped}, output);
    } catch (const Error& error) {
      EXPECT_EQ(sequence->n_pending(), 0);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(run({2}).find("layer 2 only with layer 4"), std::string::npos) << run({2});
  EXPECT_NE(run({2, 4}).find("layer 2 only with layer 5"), std::string::npos);
  EXPECT_NE(run({0, 3}).find("layer 3 only with layer 6"), std::string::npos);
  EXPECT_EQ(run({2, 4, 5}), "");
  EXPECT_EQ(run({0, 1, 6}), "");
  EXPECT_EQ(run({3, 4, 5, 6}), "");
}

// Every number of the file belongs to the model, except for each layer's scale.
TEST(Gemma4Weights, AreAllOfTheFile) {
  for (const char* name : {"gemma4_shared", "gemma4_keys", "gemma4_moe"}) {
    const auto source = open_safetensors(golden_directory(name) / "model.safetensors");
    std::int64_t n = 0;
    for (const TensorView& tensor : source->tensors()) {
      if (!tensor.name.ends_with("layer_scalar")) n += tensor.n_elements();
    }
    EXPECT_EQ(test::load_f32(golden_directory(name))->footprint().n_parameters, n) << name;
  }
}

// Published files hold keys and values of layers that do not use them. Other unused tensors of
// these layers are refused.
TEST(Gemma4Weights, LeaveOutKeysThatNobodyReads) {
  const GoldenModel golden("gemma4_shared");
  const auto source = open_safetensors(golden.directory / "model.safetensors");
  const auto write = [&](const std::vector<std::string>& more, const fs::path& directory) {
    std::vector<std::vector<float>> values;
    values.reserve(source->tensors().size() + more.size());
    std::vector<NamedValues> named;
    for (const TensorView& tensor : source->tensors()) {
      values.emplace_back(static_cast<std::size_t>(tensor.n_elements()));
      decode_rows(tensor, 0, tensor.n_elements() / tensor.shape.back(), values.back());
      named.push_back({.name = tensor.name, .shape = tensor.shape, .values = values.back()});
    }
    for (const std::string& name : more) {
      values.emplace_back(std::size_t{8} * 24, 1.0F);
      named.push_back({.name = name, .shape = {8, 24}, .values = values.back()});
    }
    write_safetensors(directory / "model.safetensors", named, ElementType::bf16);
    fs::copy_file(golden.directory / "config.json", directory / "config.json");
  };
  const test::TemporaryDirectory with_keys;
  write({"model.layers.4.self_attn.k_proj.weight", "model.layers.4.self_attn.v_proj.weight",
         "model.layers.4.self_attn.k_norm.weight"},
        with_keys.path());
  test::expect_same_bits(logits_of(golden.directory, golden.ids), 0,
                         logits_of(with_keys.path(), golden.ids));
  const test::TemporaryDirectory with_another;
  write({"model.layers.4.self_attn.sinks.weight"}, with_another.path());
  EXPECT_THROW(test::load_f32(with_another.path()), Error);
}

// Missing keys have transformers' defaults.
TEST(Gemma4Config, HasTheDefaultsOfTransformers) {
  json changes = {{"num_hidden_layers", 14}};
  for (const char* key : {"layer_types", "rope_parameters", "global_head_dim", "attention_k_eq_v",
                          "num_global_key_value_heads", "hidden_size_per_layer_input",
                          "vocab_size_per_layer_input"}) {
    changes[key] = kNoKey;
  }
  const test::ReadConfig read = read_changed("gemma4_keys", changes);
  ASSERT_NE(read.family, nullptr) << read.refusal;
  const ModelConfig& config = read.family->config();
  EXPECT_EQ(config.whole_head_dim, 512);
  EXPECT_EQ(config.whole_n_kv_heads, config.n_kv_heads);
  EXPECT_EQ(config.layer_input_dim, 256);
  const std::vector<double> whole = read.family->ropes()[0].frequencies;
  ASSERT_EQ(whole.size(), 256U);
  EXPECT_GT(whole[63], 0);
  EXPECT_EQ(whole[64], 0);
}

TEST(Gemma4Config, RefusesWhatIsNotDone) {
  const json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  const auto whole = [](const json& changes) -> json {
    return {{"rope_parameters", rope_of("gemma4_shared", "full_attention", changes)}};
  };
  const auto local = [](const json& changes) -> json {
    return {{"rope_parameters", rope_of("gemma4_shared", "sliding_attention", changes)}};
  };
  struct Case {
    const char* golden;
    json changes;
    const char* named;
  };
  const std::vector<Case> cases = {
      {"gemma4_shared", {{"attention_bias", true}}, "attention_bias"},
      {"gemma4_shared", {{"use_bidirectional_attention", "all"}}, "use_bidirectional_attention"},
      {"gemma4_shared", {{"hidden_activation", "silu"}}, "hidden_activation"},
      {"gemma4_shared", {{"num_kv_shared_layers", 7}}, "num_kv_shared_layers"},
      {"gemma4_shared", {{"num_kv_shared_layers", -1}}, "num_kv_shared_layers"},
      {"gemma4_shared", {{"num_kv_shared_layers", 6}}, "num_kv_shared_layers"},
      {"gemma4_shared", {{"vocab_size_per_layer_input", 96}}, "vocab_size_per_layer_input"},
      {"gemma4_shared", {{"hidden_size_per_layer_input", -1}}, "hidden_size_per_layer_input"},
      {"gemma4_shared", {{"hidden_size_per_layer_input", 5000}}, "hidden_size_per_layer_input"},
      {"gemma4_shared", {{"global_head_dim", 15}}, "head dimension"},
      {"gemma4_shared", {{"sliding_window", 0}}, "sliding_window"},
      {"gemma4_shared", {{"layer_types", {"full_attention"}}}, "layer_types"},
      {"gemma4_shared", {{"final_logit_softcapping", -1.0}}, "final_logit_softcapping"},
      {"gemma4_shared", {{"per_layer_config", {{"0", {{"head_dim", 8}}}}}}, "per_layer_config"},
      {"gemma4_shared", whole(linear), "proportional"},
      {"gemma4_shared", local(linear), "sliding_attention"},
      {"gemma4_shared", local({{"partial_rotary_factor", 0.5}}), "partial_rotary_factor"},
      {"gemma4_shared", whole({{"partial_rotary_factor", 0}}), "partial_rotary_factor"},
      {"gemma4_shared", whole({{"partial_rotary_factor", 0.05}}), "pairs that turn"},
      {"gemma4_shared", {{"rope_scaling", linear}}, "proportional"},
      {"gemma4_keys", {{"num_global_key_value_heads", kNoKey}}, "num_global_key_value_heads"},
      {"gemma4_keys", {{"num_global_key_value_heads", 3}}, "key-value heads"},
      {"gemma4_moe", {{"top_k_experts", 7}}, "top_k_experts"},
      {"gemma4_moe", {{"top_k_experts", kNoKey}}, "top_k_experts"},
      {"gemma4_moe", {{"num_experts", 5000}}, "num_experts"},
      {"gemma4_moe", {{"moe_intermediate_size", 0}}, "moe_intermediate_size"}};
  for (const auto& [golden, changes, named] : cases) {
    const std::string refusal = read_changed(golden, changes).refusal;
    EXPECT_NE(refusal.find(named), std::string::npos) << changes << ": " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  EXPECT_EQ(read_changed("gemma4_shared", {{"use_bidirectional_attention", "vision"}}).refusal, "");
  EXPECT_EQ(read_changed("gemma4_moe", {{"enable_moe_block", false}}).refusal, "");
}

}  // namespace
}  // namespace outrider
