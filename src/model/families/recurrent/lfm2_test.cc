// SPDX-License-Identifier: Apache-2.0
// Particulars of LFM2's files: which layers attend, the width of MLPs, and the keys of the training
// code.
#include "model/families/recurrent/lfm2.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

test::ReadConfig read_with(const json& changes) { return test::read_changed("lfm2_tied", changes); }

TEST(Lfm2Config, SaysWhichLayersAttend) {
  const auto n_recurrent = [](const json& changes) {
    const test::ReadConfig read = read_with(changes);
    EXPECT_EQ(read.refusal, "");
    return read.family == nullptr ? -1 : read.family->recurrent_layers().n;
  };
  EXPECT_EQ(n_recurrent({}), 3);
  EXPECT_EQ(n_recurrent({{"full_attn_idxs", {0, 1, 2, 3, 4}}}), 0);
  EXPECT_EQ(n_recurrent({{"full_attn_idxs", "(none)"}}), 0);
  // The list of types counts, if present.
  const json types = {"conv", "conv", "conv", "conv", "full_attention"};
  EXPECT_EQ(n_recurrent({{"layer_types", types}}), 4);
  EXPECT_NE(read_with({{"layer_types", {"conv", "conv"}}}).refusal.find("layer_types"),
            std::string::npos);
  const json other = {"conv", "conv", "conv", "conv", "linear_attention"};
  EXPECT_NE(read_with({{"layer_types", other}}).refusal.find("full_attention or conv"),
            std::string::npos);
  EXPECT_NE(read_with({{"full_attn_idxs", {5}}}).refusal.find("full_attn_idxs"), std::string::npos);
}

TEST(Lfm2Config, AdjustsTheFeedForwardWidth) {
  const auto width = [](const json& changes) {
    const test::ReadConfig read = read_with(changes);
    EXPECT_EQ(read.refusal, "");
    return read.family == nullptr ? -1 : read.family->config().hidden_dim;
  };
  EXPECT_EQ(width({}), 48);                            // two thirds of 50, in multiples of 16
  EXPECT_EQ(width({{"block_ff_dim", "(none)"}}), 64);  // from 96
  EXPECT_EQ(width({{"block_auto_adjust_ff_dim", false}}), 50);
  EXPECT_EQ(width({{"block_ffn_dim_multiplier", 1.5}}), 64);  // from 49
  EXPECT_EQ(width({{"block_ffn_dim_multiplier", nullptr}}), 33);
  EXPECT_EQ(width({{"block_ffn_dim_multiplier", "(none)"}, {"block_multiple_of", "(none)"}}), 256);
  EXPECT_EQ(width({{"block_ff_dim", 6656}, {"block_multiple_of", 256}}), 4608);   // LFM2-350M
  EXPECT_EQ(width({{"block_ff_dim", 12288}, {"block_multiple_of", 256}}), 8192);  // LFM2-1.2B
  for (const auto& [key, value] :
       {std::pair{"block_multiple_of", json(0)}, std::pair{"block_ffn_dim_multiplier", json(-1)},
        std::pair{"block_ff_dim", json(-3)}, std::pair{"block_ff_dim", json(1 << 30)}}) {
    EXPECT_NE(read_with({{key, value}}).refusal, "") << key;
  }
}

TEST(Lfm2Config, RefusesWhatIsAnotherModel) {
  for (const auto& [key, value] :
       {std::pair{"block_dim", json(32)}, std::pair{"conv_dim", json(48)},
        std::pair{"conv_dim_out", json(48)}, std::pair{"num_heads", json(4)},
        std::pair{"theta", json(1e4)}, std::pair{"block_use_swiglu", json(false)},
        std::pair{"use_pos_enc", json(false)}, std::pair{"conv_L_cache", json(1)},
        std::pair{"conv_L_cache", json(33)}}) {
    const std::string refusal = read_with({{key, value}}).refusal;
    EXPECT_NE(refusal.find(key), std::string::npos) << refusal;
  }
  EXPECT_EQ(read_with({{"tie_embedding", false}}).family->config().tied_head, false);
  EXPECT_EQ(read_with({{"tie_embedding", "(none)"}}).family->config().tied_head, true);
}

// A bias that the configuration does not name, or a layer of the other kind, is refused by name.
TEST(Lfm2Weights, AreThoseOfTheConfiguration) {
  EXPECT_NE(test::refusal_to_load("lfm2_long", {{"conv_bias", false}}).find("bias"),
            std::string::npos);
  EXPECT_NE(test::refusal_to_load("lfm2_tied", {{"conv_bias", true}}).find("conv.conv.bias"),
            std::string::npos);
  EXPECT_NE(test::refusal_to_load("lfm2_tied", {{"conv_L_cache", 4}}).find("conv.conv.weight"),
            std::string::npos);
  const std::string kind = test::refusal_to_load("lfm2_tied", {{"full_attn_idxs", {1, 4}}});
  EXPECT_NE(kind.find("layers.1.self_attn"), std::string::npos) << kind;
}

}  // namespace
}  // namespace outrider
