// What is particular to the files of Gemma 4: heads of two kinds, keys that several layers read, a
// second embedding, and which variants are refused.
#include "model/families/gemma4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "io/gguf.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/decoder_model.h"
#include "model/families/registry.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/golden_models.h"
#include "tests/support/identity_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::golden_directory;
using testing::GoldenModel;
using testing::json_of;
using testing::Rows;

// The error of reading the configuration changed by a patch (RFC 7386: null takes a key out).
std::string refusal(const char* name, const json& patch) {
  const testing::TemporaryDirectory directory;
  json config = json_of(golden_directory(name) / "config.json");
  config.merge_patch(patch);
  std::ofstream(directory.path() / "config.json") << config.dump();
  try {
    (void)read_family(directory.path());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Rows logits_of(const fs::path& path, const std::vector<TokenId>& ids) {
  const auto model = testing::load_f32(path);
  const auto sequence = model->open({});
  return testing::run_block(*model, *sequence, ids);
}

TEST(Gemma4Config, HasTheShapesOfBothFormats) {
  for (const char* file : {"", "model.gguf"}) {
    const ModelConfig shared =
        testing::load_f32(golden_directory("gemma4_shared") / file)->config();
    EXPECT_EQ(shared.head_dim, 8);
    EXPECT_EQ(shared.n_kv_heads, 1);
    EXPECT_EQ(shared.whole_head_dim, 16);
    EXPECT_EQ(shared.whole_n_kv_heads, 1);
    EXPECT_EQ(shared.hidden_dim, 28);
    EXPECT_EQ(shared.n_borrowing_layers, 3);
    EXPECT_EQ(shared.layer_input_dim, 6);
    EXPECT_EQ(shared.n_experts, 0);
    const ModelConfig moe = testing::load_f32(golden_directory("gemma4_moe") / file)->config();
    EXPECT_EQ(moe.n_kv_heads, 2);
    EXPECT_EQ(moe.whole_n_kv_heads, 1);
    EXPECT_EQ(moe.whole_head_dim, 12);
    EXPECT_EQ(moe.layer_input_dim, 0);
    EXPECT_EQ(moe.n_experts, 6);
    EXPECT_EQ(moe.n_experts_used, 2);
    EXPECT_EQ(moe.expert_dim, 12);
  }
}

// Of 8 pairs two turn, by the frequencies that they have among eight.
TEST(Gemma4Config, LeavesPairsStill) {
  for (const char* file : {"", "model.gguf"}) {
    const auto model = testing::load_f32(golden_directory("gemma4_shared") / file);
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

// Layers 4, 5 and 6 keep nothing: they read what layers 2 and 3 have stored.
TEST(Gemma4Cache, IsSharedByTheLastLayers) {
  const auto model = testing::load_f32(golden_directory("gemma4_shared"));
  const PassList& list = dynamic_cast<const DecoderModel&>(*model).pass().list();
  EXPECT_EQ(list.caches.size(), 4U);
  std::vector<int> read;
  for (const Op& op : list.ops) {
    if (const auto* attend = std::get_if<op::Attend>(&op.what)) read.push_back(attend->cache_layer);
  }
  EXPECT_EQ(read, (std::vector<int>{0, 1, 2, 3, 2, 2, 3}));
}

// A lender is left out with all of its readers, or not at all.
TEST(Gemma4Cache, IsNotReadWhereItsLayerIsLeftOut) {
  const auto model = testing::load_f32(golden_directory("gemma4_shared"));
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

// Every number of the file is one of the model's, but the scale of each layer.
TEST(Gemma4Weights, AreAllOfTheFile) {
  for (const char* name : {"gemma4_shared", "gemma4_keys", "gemma4_moe"}) {
    const auto source = open_safetensors(golden_directory(name) / "model.safetensors");
    std::int64_t n = 0;
    for (const TensorView& tensor : source->tensors()) {
      if (!tensor.name.ends_with("layer_scalar")) n += tensor.n_elements();
    }
    EXPECT_EQ(testing::load_f32(golden_directory(name))->footprint().n_parameters, n) << name;
  }
}

// Files with keys and values of layers that read those of others, as the published ones have them;
// others of that layer are none that the family knows.
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
  const testing::TemporaryDirectory with_keys;
  write({"model.layers.4.self_attn.k_proj.weight", "model.layers.4.self_attn.v_proj.weight",
         "model.layers.4.self_attn.k_norm.weight"},
        with_keys.path());
  testing::expect_same_bits(logits_of(golden.directory, golden.ids), 0,
                            logits_of(with_keys.path(), golden.ids));
  const testing::TemporaryDirectory with_another;
  write({"model.layers.4.self_attn.sinks.weight"}, with_another.path());
  EXPECT_THROW(testing::load_f32(with_another.path()), Error);
}

// What a file leaves out is what transformers takes.
TEST(Gemma4Config, HasTheDefaultsOfTransformers) {
  const testing::TemporaryDirectory directory;
  json config = json_of(golden_directory("gemma4_keys") / "config.json");
  for (const char* key : {"layer_types", "rope_parameters", "global_head_dim", "attention_k_eq_v",
                          "num_global_key_value_heads", "hidden_size_per_layer_input",
                          "vocab_size_per_layer_input"}) {
    config.erase(key);
  }
  config["num_hidden_layers"] = 14;
  std::ofstream(directory.path() / "config.json") << config.dump();
  const auto family = read_family(directory.path());
  EXPECT_EQ(family->config().whole_head_dim, 512);
  EXPECT_EQ(family->config().whole_n_kv_heads, family->config().n_kv_heads);
  EXPECT_EQ(family->config().layer_input_dim, 256);
  const std::vector<double> whole = family->ropes()[0].frequencies;
  ASSERT_EQ(whole.size(), 256U);
  EXPECT_GT(whole[63], 0);
  EXPECT_EQ(whole[64], 0);
}

TEST(Gemma4Config, RefusesWhatIsNotDone) {
  const json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  for (const auto& [name, patch, named] :
       {std::tuple{"gemma4_shared", json{{"attention_bias", true}}, "attention_bias"},
        std::tuple{"gemma4_shared", json{{"use_bidirectional_attention", "all"}},
                   "use_bidirectional_attention"},
        std::tuple{"gemma4_shared", json{{"hidden_activation", "silu"}}, "hidden_activation"},
        std::tuple{"gemma4_shared", json{{"num_kv_shared_layers", 7}}, "num_kv_shared_layers"},
        std::tuple{"gemma4_shared", json{{"num_kv_shared_layers", -1}}, "num_kv_shared_layers"},
        std::tuple{"gemma4_shared", json{{"num_kv_shared_layers", 6}}, "num_kv_shared_layers"},
        std::tuple{"gemma4_shared", json{{"vocab_size_per_layer_input", 96}},
                   "vocab_size_per_layer_input"},
        std::tuple{"gemma4_shared", json{{"hidden_size_per_layer_input", -1}},
                   "hidden_size_per_layer_input"},
        std::tuple{"gemma4_shared", json{{"hidden_size_per_layer_input", 5000}},
                   "hidden_size_per_layer_input"},
        std::tuple{"gemma4_shared", json{{"global_head_dim", 15}}, "head dimension"},
        std::tuple{"gemma4_shared", json{{"sliding_window", 0}}, "sliding_window"},
        std::tuple{"gemma4_shared", json{{"layer_types", {"full_attention"}}}, "layer_types"},
        std::tuple{"gemma4_shared", json{{"final_logit_softcapping", -1.0}},
                   "final_logit_softcapping"},
        std::tuple{"gemma4_shared", json{{"per_layer_config", {{"0", {{"head_dim", 8}}}}}},
                   "per_layer_config"},
        std::tuple{"gemma4_shared", json{{"rope_parameters", {{"full_attention", linear}}}},
                   "proportional"},
        std::tuple{"gemma4_shared", json{{"rope_parameters", {{"sliding_attention", linear}}}},
                   "sliding_attention"},
        std::tuple{
            "gemma4_shared",
            json{{"rope_parameters", {{"sliding_attention", {{"partial_rotary_factor", 0.5}}}}}},
            "partial_rotary_factor"},
        std::tuple{"gemma4_shared",
                   json{{"rope_parameters", {{"full_attention", {{"partial_rotary_factor", 0}}}}}},
                   "partial_rotary_factor"},
        std::tuple{
            "gemma4_shared",
            json{{"rope_parameters", {{"full_attention", {{"partial_rotary_factor", 0.05}}}}}},
            "pairs that turn"},
        std::tuple{"gemma4_shared", json{{"rope_scaling", linear}}, "proportional"},
        std::tuple{"gemma4_keys", json{{"num_global_key_value_heads", nullptr}},
                   "num_global_key_value_heads"},
        std::tuple{"gemma4_keys", json{{"num_global_key_value_heads", 3}}, "key-value heads"},
        std::tuple{"gemma4_moe", json{{"top_k_experts", 7}}, "top_k_experts"},
        std::tuple{"gemma4_moe", json{{"top_k_experts", nullptr}}, "top_k_experts"},
        std::tuple{"gemma4_moe", json{{"num_experts", 5000}}, "num_experts"},
        std::tuple{"gemma4_moe", json{{"moe_intermediate_size", 0}}, "moe_intermediate_size"}}) {
    const std::string error = refusal(name, patch);
    EXPECT_NE(error.find(named), std::string::npos) << patch << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_EQ(refusal("gemma4_shared", {{"use_bidirectional_attention", "vision"}}), "");
  EXPECT_EQ(refusal("gemma4_moe", {{"enable_moe_block", false}}), "");
}

}  // namespace
}  // namespace outrider
