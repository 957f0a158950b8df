// SPDX-License-Identifier: Apache-2.0
// Particulars of Nemotron-H's and Nemotron 3's files: the kind of each layer, names of keys and
// tensors, modules after the layers, and keys of other models.
#include "model/families/recurrent/nemotron_h.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "io/gguf/map_gguf.h"
#include "io/safetensors/safetensors.h"
#include "model/families/registry.h"
#include "model/heads/mtp_modules.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::golden_directory;
using test::kNoKey;
using ::testing::HasSubstr;

std::string refusal_of(const char* golden, const json& changes) {
  return test::read_changed(golden, changes).refusal;
}

TEST(NemotronHConfig, SaysWhatEachLayerIs) {
  const auto n_recurrent = [](const json& changes) {
    const test::ReadConfig read = test::read_changed("nemotron_h_plain", changes);
    EXPECT_EQ(read.refusal, "");
    return read.family == nullptr ? -1 : read.family->recurrent_layers().n;
  };
  EXPECT_EQ(n_recurrent(json::object()), 3);
  EXPECT_EQ(n_recurrent({{"hybrid_override_pattern", "M*M-MM"}}), 4);
  EXPECT_EQ(n_recurrent({{"hybrid_override_pattern", "*--"}, {"num_hidden_layers", kNoKey}}), 0);
  const json list = {"mamba", "attention", "mlp", "mlp", "mlp", "mlp"};
  EXPECT_EQ(n_recurrent({{"hybrid_override_pattern", kNoKey}, {"layers_block_type", list}}), 1);
  // It counts if both are present, as in transformers.
  EXPECT_EQ(n_recurrent({{"layers_block_type", list}}), 1);
  for (const auto& [changes, named] :
       {std::pair{json{{"hybrid_override_pattern", "M-MM*+"}}, "moe (E), got +"},
        std::pair{json{{"hybrid_override_pattern", "M-M"}}, "num_hidden_layers to be 3"},
        std::pair{json{{"hybrid_override_pattern", ""}}, "hybrid_override_pattern"},
        std::pair{json{{"hybrid_override_pattern", kNoKey}}, "hybrid_override_pattern to be there"},
        std::pair{json{{"layers_block_type", {"mamba", "conv"}}}, "moe (E), got conv"}}) {
    EXPECT_THAT(refusal_of("nemotron_h_plain", changes), HasSubstr(named));
  }
}

// The number of experts is reported if a layer has them, and 0 if none has.
TEST(NemotronHConfig, IsTheSameInBothForms) {
  for (const auto& [name, n_experts, n_expert_layers] :
       {std::tuple{"nemotron_h_plain", 0, 0}, std::tuple{"nemotron_h_moe", 6, 2},
        std::tuple{"nemotron_h_latent", 8, 2}}) {
    SCOPED_TRACE(name);
    const auto of_directory = read_family(golden_directory(name));
    const auto of_file = read_family(*open_gguf(golden_directory(name) / "model.gguf"));
    for (const Family* family : {of_directory.get(), of_file.get()}) {
      EXPECT_EQ(family->config().n_experts, n_experts);
      EXPECT_EQ(family->config().n_expert_layers, n_expert_layers);
      EXPECT_TRUE(family->ropes().empty());
    }
    const ModelConfig& left = of_directory->config();
    const ModelConfig& right = of_file->config();
    EXPECT_EQ(left.n_layers, right.n_layers);
    EXPECT_EQ(left.n_kv_heads, right.n_kv_heads);
    EXPECT_EQ(left.head_dim, right.head_dim);
    EXPECT_EQ(left.hidden_dim, right.hidden_dim);
    EXPECT_EQ(left.expert_dim, right.expert_dim);
    EXPECT_EQ(left.norm_epsilon, right.norm_epsilon);
    EXPECT_EQ(of_directory->recurrent_layers().n, of_file->recurrent_layers().n);
    EXPECT_EQ(of_directory->recurrent_layers().shape, of_file->recurrent_layers().shape);
  }
}

TEST(NemotronHConfig, HasTheShapeOfStates) {
  const auto shape = [](const char* golden, const json& changes) {
    const test::ReadConfig read = test::read_changed(golden, changes);
    EXPECT_EQ(read.refusal, "");
    return read.family == nullptr ? RecurrentShape{} : read.family->recurrent_layers().shape;
  };
  const RecurrentShape mixed = shape("nemotron_h_mixed", json::object());
  EXPECT_EQ(mixed.recurrence, Recurrence::mamba);
  EXPECT_EQ(mixed.delta.convolved_width(), 2 * 3 * 7 + 6 * 6);
  EXPECT_EQ(mixed.state_width, 2 * 78 + 6 * 6 * 7);
  // transformers' defaults do not depend on the stream's width.
  const json absent = {{"mamba_num_heads", kNoKey}, {"mamba_head_dim", kNoKey},
                       {"ssm_state_size", kNoKey},  {"conv_kernel", kNoKey},
                       {"n_groups", kNoKey},        {"expand", kNoKey}};
  EXPECT_EQ(shape("nemotron_h_plain", absent).state_width,
            3 * (2 * 8 * 128 + 128 * 64) + 128 * 64 * 128);
}

// The hub's first files have a head's width under the second name only.
TEST(NemotronHConfig, KnowsTheWidthOfHeadsByTwoNames) {
  const test::ReadConfig read = test::read_changed("nemotron_h_plain", {{"head_dim", kNoKey}});
  ASSERT_NE(read.family, nullptr) << read.refusal;
  EXPECT_EQ(read.family->config().head_dim, 10);
  EXPECT_EQ(refusal_of("nemotron_h_plain", {{"attention_head_dim", kNoKey}}), "");
  EXPECT_THAT(refusal_of("nemotron_h_plain", {{"head_dim", 12}}), HasSubstr("attention_head_dim"));
  EXPECT_THAT(refusal_of("nemotron_h_moe", {{"head_dim", kNoKey}}), HasSubstr("head_dim"));
}

TEST(NemotronHConfig, RefusesWhatIsAnotherModel) {
  EXPECT_EQ(refusal_of("nemotron_h_moe", json::object()), "");
  for (const auto& [golden, key, value] :
       {std::tuple{"nemotron_h_plain", "mlp_hidden_act", json("silu")},
        std::tuple{"nemotron_h_plain", "mamba_hidden_act", json("gelu")},
        std::tuple{"nemotron_h_plain", "attention_bias", json(true)},
        std::tuple{"nemotron_h_plain", "mamba_proj_bias", json(true)},
        std::tuple{"nemotron_h_plain", "sliding_window", json(64)},
        std::tuple{"nemotron_h_plain", "rope_scaling", json{{"rope_type", "linear"}}},
        std::tuple{"nemotron_h_plain", "rms_norm_eps", json(1e-5)},
        std::tuple{"nemotron_h_plain", "layer_norm_epsilon", json(kNoKey)},
        std::tuple{"nemotron_h_plain", "num_key_value_heads", json(kNoKey)},
        std::tuple{"nemotron_h_plain", "num_key_value_heads", json(2)},
        std::tuple{"nemotron_h_plain", "n_groups", json(4)},
        std::tuple{"nemotron_h_plain", "n_groups", json(0)},
        std::tuple{"nemotron_h_plain", "ssm_state_size", json(513)},
        std::tuple{"nemotron_h_plain", "conv_kernel", json(1)},
        std::tuple{"nemotron_h_plain", "mamba_head_dim", json(0)},
        std::tuple{"nemotron_h_plain", "time_step_limit", json({0.5, 0.2})},
        std::tuple{"nemotron_h_plain", "mamba_d_conv", json(4)},
        std::tuple{"nemotron_h_plain", "mamba_conv_bias", json(false)},
        std::tuple{"nemotron_h_plain", "hybrid_override_pattern", json("------")},
        std::tuple{"nemotron_h_moe", "norm_eps", json(1e-5)},
        std::tuple{"nemotron_h_moe", "n_shared_experts", json(2)},
        std::tuple{"nemotron_h_moe", "moe_shared_expert_intermediate_size", json(kNoKey)},
        std::tuple{"nemotron_h_moe", "moe_shared_expert_intermediate_size", json(0)},
        std::tuple{"nemotron_h_moe", "moe_latent_size", json(24)},
        std::tuple{"nemotron_h_moe", "moe_latent_size", json(-1)},
        std::tuple{"nemotron_h_moe", "moe_latent_size", json(0)},
        std::tuple{"nemotron_h_moe", "n_routed_experts", json(kNoKey)},
        std::tuple{"nemotron_h_moe", "n_group", json(4)},
        std::tuple{"nemotron_h_moe", "n_group", json(0)},
        std::tuple{"nemotron_h_moe", "num_experts_per_tok", json(7)},
        std::tuple{"nemotron_h_moe", "topk_method", json("greedy")},
        std::tuple{"nemotron_h_moe", "first_k_dense_replace", json(1)}}) {
    const std::string refusal = refusal_of(golden, {{key, value}});
    // check_config() uses names of its own.
    const std::string_view named =
        std::string_view(key) == "num_key_value_heads" && value != kNoKey ? "key-value heads" : key;
    EXPECT_THAT(refusal, HasSubstr(named)) << golden << " " << key << " " << value;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  // Keys about training, about other programs, and about missing parts.
  EXPECT_EQ(refusal_of("nemotron_h_moe", {{"time_step_min", 0.5},
                                          {"time_step_max", 0.6},
                                          {"time_step_limit", {0, {{"__float__", "Infinity"}}}},
                                          {"num_nextn_predict_layers", 1},
                                          {"mtp_hybrid_override_pattern", "*E"},
                                          {"moe_shared_expert_overlap", true},
                                          {"rope_theta", 5e5},
                                          {"partial_rotary_factor", 0.5},
                                          {"moe_latent_size", nullptr},
                                          {"expand", 5},
                                          {"chunk_size", 64}}),
            "");
  // Without a layer of experts their numbers do not matter.
  EXPECT_EQ(refusal_of("nemotron_h_plain", {{"n_routed_experts", 0}, {"n_group", 3}}), "");
}

// A weight of another kind of layer is refused by name, and so is a missing one.
TEST(NemotronHWeights, AreThoseOfTheConfiguration) {
  for (const auto& [golden, changes, named] :
       {std::tuple{"nemotron_h_plain", json{{"hybrid_override_pattern", "M-M-*-"}},
                   "layers.3.mixer.up_proj"},
        std::tuple{"nemotron_h_plain", json{{"hybrid_override_pattern", "M-M**-"}},
                   "layers.3.mixer.q_proj"},
        std::tuple{"nemotron_h_plain", json{{"conv_kernel", 3}}, "mixer.conv1d"},
        std::tuple{"nemotron_h_plain", json{{"use_conv_bias", false}}, "mixer.conv1d.bias"},
        std::tuple{"nemotron_h_plain", json{{"use_bias", true}}, "mixer.in_proj"},
        std::tuple{"nemotron_h_plain", json{{"mlp_bias", true}}, "mixer.up_proj.bias"},
        std::tuple{"nemotron_h_plain", json{{"intermediate_size", 38}}, "mixer.up_proj"},
        std::tuple{"nemotron_h_mixed", json{{"mlp_bias", false}}, "bias"},
        std::tuple{"nemotron_h_mixed", json{{"use_bias", false}}, "mixer.in_proj.bias"},
        std::tuple{"nemotron_h_mixed", json{{"moe_latent_size", nullptr}}, "mixer.experts"},
        std::tuple{"nemotron_h_moe", json{{"moe_latent_size", 12}}, "mixer.experts"},
        std::tuple{"nemotron_h_moe", json{{"n_routed_experts", 5}}, "mixer.gate"},
        std::tuple{"nemotron_h_moe", json{{"moe_shared_expert_intermediate_size", 21}},
                   "mixer.shared_experts.up_proj"}}) {
    EXPECT_THAT(test::refusal_to_load(golden, changes), HasSubstr(named)) << changes;
  }
}

// Every number of the file belongs to the model.
TEST(NemotronHWeights, AreAllCounted) {
  for (const char* name : {"nemotron_h_moe", "nemotron_h_mixed"}) {
    const fs::path directory = golden_directory(name);
    std::int64_t n_stored = 0;
    const auto source = open_safetensors(directory / "model.safetensors");
    for (const TensorView& tensor : source->tensors()) {
      n_stored += tensor.n_elements();
    }
    const Footprint footprint = test::load_f32(directory)->footprint();
    EXPECT_EQ(footprint.n_parameters, n_stored) << name;
    EXPECT_GT(footprint.idle_bytes, 0) << name;
  }
}

// --- GGUF: modules after the layers ---

template <typename T>
void put(std::string& bytes, T value) {
  static_assert(std::is_integral_v<T>);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

// An entry's bytes: an array of integers.
std::string list_entry(std::string_view key, const std::vector<std::int32_t>& values) {
  constexpr std::uint32_t kInt32 = 5;  // type codes of GGUF
  constexpr std::uint32_t kArray = 9;
  std::string bytes;
  put(bytes, std::uint64_t{key.size()});
  bytes += key;
  put(bytes, kArray);
  put(bytes, kInt32);
  put(bytes, std::uint64_t{values.size()});
  for (const std::int32_t value : values) put(bytes, value);
  return bytes;
}

std::string_view key_of(const GgufEntry& entry) {
  std::uint64_t size = 0;
  std::memcpy(&size, entry.data(), sizeof size);
  return {reinterpret_cast<const char*>(entry.data()) + sizeof size, size};
}

// nemotron_h_latent's file with some entries replaced, and additional tensors of one number.
void write_with(const fs::path& path, const std::vector<std::string>& entries,
                const std::vector<std::string>& tensors) {
  const auto source = map_gguf(golden_directory("nemotron_h_latent") / "model.gguf");
  std::vector<GgufEntry> all;
  const auto bytes_of = [](const std::string& entry) {
    return std::as_bytes(std::span(entry.data(), entry.size()));
  };
  for (const GgufEntry& entry : source->entries()) {
    bool replaced = false;
    for (const std::string& other : entries) {
      replaced = replaced || key_of(bytes_of(other)) == key_of(entry);
    }
    if (!replaced) all.push_back(entry);
  }
  for (const std::string& entry : entries) all.push_back(bytes_of(entry));
  std::vector<GgufTensor> shapes;
  for (const TensorView& view : source->tensors()) {
    shapes.push_back({view.name, view.type, view.shape});
  }
  for (const std::string& name : tensors) shapes.push_back({name, ElementType::f32, {1, 1}});
  GgufWriter writer(path, all, shapes, 32);
  for (const TensorView& view : source->tensors()) writer.write(view.data);
  constexpr float kNumber = 1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    writer.write(std::as_bytes(std::span(&kNumber, 1)));
  }
  writer.commit();
}

// The converter counts Nemotron 3 Super's module as a layer that attends and has experts.
TEST(NemotronHGguf, LeavesOutTheModuleBehindTheLayers) {
  const test::TemporaryDirectory directory;
  const fs::path path = directory.path() / "model.gguf";
  const std::string family = "nemotron_h_moe.";
  const std::vector<std::string> entries = {
      gguf_entry(family + "block_count", 5), gguf_entry(family + "nextn_predict_layers", 1),
      list_entry(family + "attention.head_count_kv", {0, 1, 0, 0, 1}),
      list_entry(family + "feed_forward_length", {0, 0, 14, 14, 14})};
  write_with(path, entries, {"blk.4.nextn.eh_proj.weight", "blk.4.nextn.enorm.weight"});
  const test::GoldenModel golden("nemotron_h_latent");
  test::expect_same_bits(test::logits_of(golden.directory / "model.gguf", golden.ids), 0,
                         test::logits_of(path, golden.ids));
  EXPECT_TRUE(test::load_f32(path)->warnings().empty());
  EXPECT_FALSE(has_mtp_modules(path));  // "auto" would use them
}

TEST(NemotronHGguf, RefusesListsOfAnotherModel) {
  const test::TemporaryDirectory directory;
  const fs::path path = directory.path() / "model.gguf";
  const std::string heads = "nemotron_h_moe.attention.head_count_kv";
  const std::string widths = "nemotron_h_moe.feed_forward_length";
  for (const auto& [entry, named] :
       {std::pair{list_entry(heads, {0, 1, 0}), heads},
        std::pair{list_entry(heads, {2, 1, 0, 0}), heads},   // differing numbers of heads
        std::pair{list_entry(heads, {0, 1, 1, 0}), widths},  // attends, and has experts
        std::pair{list_entry(widths, {0, 0, 14, 12}), widths},
        std::pair{gguf_entry("nemotron_h_moe.expert_gating_func", 1),
                  std::string("expert_gating_func")},
        std::pair{gguf_entry("nemotron_h_moe.leading_dense_block_count", 1),
                  std::string("leading_dense_block_count")},
        std::pair{gguf_entry("nemotron_h_moe.attention.window", 5), std::string("window")}}) {
    write_with(path, {entry}, {});
    std::string refusal;
    try {
      (void)read_family(*open_gguf(path));
    } catch (const Error& error) {
      refusal = error.what();
    }
    EXPECT_THAT(refusal, HasSubstr(named));
  }
}

}  // namespace
}  // namespace outrider
