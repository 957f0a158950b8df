// SPDX-License-Identifier: Apache-2.0
// Particulars of Granite 4's files: which layers attend, shapes of states, limits of steps, and
// keys of other models.
#include "model/families/recurrent/granite_hybrid.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "io/gguf/map_gguf.h"
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
using test::json_of;

TEST(GraniteHybridConfig, SaysWhichLayersAttend) {
  const auto n_recurrent = [](const json& changes) {
    const test::ReadConfig read = test::read_changed("granite_hybrid_plain", changes);
    EXPECT_EQ(read.refusal, "");
    return read.family == nullptr ? -1 : read.family->recurrent_layers().n;
  };
  EXPECT_EQ(n_recurrent({}), 3);
  EXPECT_EQ(n_recurrent({{"layer_types", "(none)"}}), 4);
  const json types = {"attention", "mamba", "attention", "attention"};
  EXPECT_EQ(n_recurrent({{"layer_types", "(none)"}, {"layers_block_type", types}}), 1);
  EXPECT_EQ(n_recurrent({{"layer_types", {"attention", "attention", "attention", "attention"}}}),
            0);
  for (const auto& [value, named] :
       {std::pair{json::array({"mamba"}), "4 names"},
        std::pair{json({"mamba", "mamba", "full_attention", "mamba"}), "attention or mamba"}}) {
    const std::string refusal =
        test::read_changed("granite_hybrid_plain", {{"layer_types", value}}).refusal;
    EXPECT_NE(refusal.find(named), std::string::npos) << refusal;
  }
  for (const char* name : {"granite_hybrid_plain", "granite_hybrid_moe"}) {
    const auto file = open_gguf(golden_directory(name) / "model.gguf");
    const auto of_file = read_family(*file);
    const auto of_directory = read_family(golden_directory(name));
    EXPECT_EQ(of_file->recurrent_layers().n, 3);
    EXPECT_EQ(of_file->recurrent_layers().shape, of_directory->recurrent_layers().shape);
    EXPECT_TRUE(of_file->ropes().empty());
    EXPECT_TRUE(of_directory->ropes().empty());
  }
}

TEST(GraniteHybridConfig, HasTheShapeOfStates) {
  const test::ReadConfig read = test::read_changed("granite_hybrid_mixed", {});
  ASSERT_NE(read.family, nullptr) << read.refusal;
  EXPECT_EQ(read.family->ropes().size(), 1U);
  const RecurrentShape& shape = read.family->recurrent_layers().shape;
  EXPECT_EQ(shape.recurrence, Recurrence::mamba);
  EXPECT_EQ(shape.delta.convolved_width(), 2 * 2 * 10 + 6 * 16);
  EXPECT_EQ(shape.state_width, 2 * 136 + 6 * 16 * 10);
  EXPECT_EQ(shape.input_width, 136 + 2 * 10 + 6 * 16 + 2 * 6);
  // transformers' defaults, with a width that they divide.
  const test::ReadConfig defaults =
      test::read_changed("granite_hybrid_plain", {{"hidden_size", 192},
                                                  {"mamba_n_heads", "(none)"},
                                                  {"mamba_d_head", "(none)"},
                                                  {"mamba_d_state", "(none)"},
                                                  {"mamba_d_conv", "(none)"},
                                                  {"mamba_expand", "(none)"},
                                                  {"mamba_n_groups", "(none)"}});
  ASSERT_NE(defaults.family, nullptr) << defaults.refusal;
  EXPECT_EQ(defaults.family->recurrent_layers().shape.state_width,
            3 * (2 * 256 + 384) + 128 * 256 * 3);
}

TEST(GraniteHybridConfig, RefusesWhatIsAnotherModel) {
  for (const auto& [key, value] :
       {std::pair{"mamba_n_heads", json(5)}, std::pair{"mamba_n_heads", json(0)},
        std::pair{"mamba_n_groups", json(4)}, std::pair{"mamba_d_head", json(9)},
        std::pair{"mamba_d_head", json("auto")}, std::pair{"mamba_d_state", json(513)},
        std::pair{"mamba_d_conv", json(1)}, std::pair{"mamba_expand", json(0)},
        std::pair{"position_embedding_type", json("alibi")},
        std::pair{"normalization_function", json("layernorm")},
        std::pair{"time_step_limit", json::array({0.5})},
        std::pair{"time_step_limit", json::array({0.5, 0.2})},
        std::pair{"time_step_limit", json::array({-1, 0.2})},
        std::pair{"time_step_limit", json({0, {{"__float__", "NaN"}}})},
        std::pair{"residual_multiplier", json(0)}, std::pair{"num_local_experts", json(-1)},
        std::pair{"hidden_act", json("gelu")}}) {
    const std::string refusal = test::read_changed("granite_hybrid_mixed", {{key, value}}).refusal;
    // The error names both numbers of the heads if they do not fit together.
    EXPECT_NE(refusal.find(key), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  EXPECT_EQ(test::read_changed("granite_hybrid_mixed",
                               {{"time_step_limit", {0, {{"__float__", "Infinity"}}}},
                                {"mamba_chunk_size", 64},
                                {"position_embedding_type", nullptr}})
                .refusal,
            "");
}

// A weight of the other kind of layer is refused by name, and so is a missing one.
TEST(GraniteHybridWeights, AreThoseOfTheConfiguration) {
  for (const auto& [key, value, named] :
       {std::tuple{"layer_types", json({"attention", "mamba", "attention", "mamba"}),
                   "layers.0.self_attn.q_proj"},
        std::tuple{"mamba_d_conv", json(3), "mamba.conv1d"},
        std::tuple{"mamba_conv_bias", json(false), "mamba.conv1d.bias"},
        std::tuple{"mamba_proj_bias", json(true), "mamba.in_proj"},
        std::tuple{"shared_intermediate_size", json(20), "shared_mlp.input_linear"},
        std::tuple{"num_local_experts", json(2), "block_sparse_moe"}}) {
    json changes = {{key, value}};
    if (std::string(key) == "num_local_experts") changes["num_experts_per_tok"] = 1;
    const std::string refusal = test::refusal_to_load("granite_hybrid_plain", changes);
    EXPECT_NE(refusal.find(named), std::string::npos) << key << ": " << refusal;
  }
}

// GGUF with several groups: transformers and llama.cpp normalise differently.
TEST(GraniteHybridWeights, GroupsOfGgufAreRefused) {
  std::ifstream stream(golden_directory("granite_hybrid_moe") / "model.gguf", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  const std::string key = "granitehybrid.ssm.group_count";
  bytes[bytes.find(key) + key.size() + 4] = 3;  // after the key come its type, four bytes
  const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "changed.gguf");
  try {
    (void)read_family(*file);
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ssm.group_count"), std::string::npos) << error.what();
  }
}

// The golden's file with further integer entries and one flag.
std::unique_ptr<LanguageModel> granite_with(const std::vector<const char*>& numbers,
                                            const char* flag, bool value) {
  const auto source = map_gguf(golden_directory("granite_tied") / "model.gguf");
  std::vector<std::string> made;
  for (const char* key : numbers) made.push_back(gguf_entry(key, 4));
  if (flag != nullptr) {
    constexpr char kFlag = 7;  // GGUF's type of booleans
    std::string entry = gguf_entry(flag, 0);
    entry.resize(entry.size() - sizeof(std::uint32_t));
    entry[entry.size() - sizeof(std::uint32_t)] = kFlag;
    made.push_back(entry + static_cast<char>(value));
  }
  std::vector<GgufEntry> entries(source->entries().begin(), source->entries().end());
  for (const std::string& entry : made) entries.push_back(std::as_bytes(std::span(entry)));
  std::vector<GgufTensor> tensors;
  for (const TensorView& view : source->tensors()) {
    tensors.push_back({view.name, view.type, view.shape});
  }
  const test::TemporaryDirectory directory;
  GgufWriter writer(directory.path() / "model.gguf", entries, tensors, 32);
  for (const TensorView& view : source->tensors()) writer.write(view.data);
  writer.commit();
  return test::load_f32(directory.path() / "model.gguf");
}

// Files of dense Granite 4 keep the shape of Mamba-2 layers, and a flag says whether there is RoPE.
TEST(GraniteOfHybrids, IsReadFromGguf) {
  const test::GoldenModel golden("granite_tied");
  const auto logits = [&](LanguageModel& model) {
    const auto sequence = model.open({});
    return test::run_block(model, *sequence, golden.ids);
  };
  const auto plain = granite_with({}, nullptr, false);
  const test::Rows expected = logits(*plain);
  const std::vector<const char*> leftovers = {
      "granite.ssm.conv_kernel",    "granite.ssm.state_size",
      "granite.ssm.group_count",    "granite.ssm.inner_size",
      "granite.ssm.time_step_rank", "granite.expert_shared_feed_forward_length"};
  test::expect_same_bits(expected, 0,
                         logits(*granite_with(leftovers, "granite.rope.scaling.finetuned", true)));
  const test::Rows still =
      logits(*granite_with(leftovers, "granite.rope.scaling.finetuned", false));
  EXPECT_TRUE(test::same_bits(expected[0], still[0]));  // position 0 is not rotated
  EXPECT_FALSE(test::same_bits(expected[20], still[20]));
}

}  // namespace
}  // namespace outrider
