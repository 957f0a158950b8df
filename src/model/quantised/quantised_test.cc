// SPDX-License-Identifier: Apache-2.0
// Directories with quantised matrices (tests/golden/make/make_quantised_models.py): compares logits
// with transformers on the dequantised model, and the two ways of holding a matrix with each other.
// Unsupported ones are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/float16.h"
#include "io/safetensors/safetensors.h"
#include "model/load_model.h"
#include "model/quantised/quantisation.h"
#include "model/quantised/quantised_matrix.h"
#include "outrider/error.h"
#include "tests/support/models/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Row;
using test::Rows;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Form = Quantisation::Form;

fs::path golden(const std::string& name) {
  return fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / ("quantised_" + name);
}
json config_of(const std::string& name) {
  return json::parse(std::ifstream(golden(name) / "config.json"));
}
auto fails(const std::string& text) { return ThrowsMessage<Error>(HasSubstr(text)); }

struct Case {
  const char* name;
  const char* weights;  // the format of its matrices in memory
};

class Quantised : public ::testing::TestWithParam<Case> {
 protected:
  static Rows logits(const LoadOptions& options) {
    const auto model = load_model(golden(GetParam().name), options);
    const auto source = open_safetensors(golden(GetParam().name) / "golden.safetensors");
    const TensorView& ids = *source->find("ids");
    std::vector<TokenId> tokens;
    for (std::int64_t i = 0; i < ids.n_elements(); ++i) {
      std::int64_t id;
      std::memcpy(&id, ids.data.data() + static_cast<std::size_t>(i) * sizeof id, sizeof id);
      tokens.push_back(static_cast<TokenId>(id));
    }
    const auto sequence = model->open({});
    return test::run_block(*model, *sequence, tokens);
  }
  static double largest_difference(const Rows& rows) {
    const auto source = open_safetensors(golden(GetParam().name) / "golden.safetensors");
    const TensorView& view = *source->find("logits");
    EXPECT_EQ(static_cast<std::int64_t>(rows.size()), view.shape[0]);
    double largest = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row expected(static_cast<std::size_t>(view.shape[1]));
      decode_rows(view, static_cast<std::int64_t>(i), 1, expected);
      for (std::size_t j = 0; j < expected.size(); ++j) {
        const double difference = std::fabs(rows[i][j] - expected[j]);
        if (!(difference <= largest)) largest = difference;  // NaN is kept
      }
    }
    return largest;
  }
};

TEST_P(Quantised, HasTheLogitsOfItsTwin) {
  EXPECT_LE(largest_difference(logits({.weights = WeightKind::f32, .n_threads = 2})), 2e-4);
}

// Inputs are rounded to 8 bits, and keys to bf16: errors far below that of a wrong code.
TEST_P(Quantised, IsHeldInFewBits) {
  const auto model = load_model(golden(GetParam().name));
  EXPECT_THAT(model->footprint().weights, HasSubstr(GetParam().weights));
  EXPECT_LE(largest_difference(logits({.n_threads = 2})), 0.6);
}

// int8 holds the same numbers as f32.
TEST_P(Quantised, KeepsItsNumbers) {
  const json config = config_of(GetParam().name);
  const auto quantisation = read_quantisation(config, "config.json");
  ASSERT_TRUE(quantisation.has_value());
  const auto source = open_safetensors(golden(GetParam().name) / "model.safetensors");
  const int width = config["hidden_size"];
  const QuantisedTensors tensors =
      find_quantised(*source, *quantisation, "model.layers.0.mlp.up_proj", width, width);
  ASSERT_NE(tensors.codes, nullptr);
  EXPECT_EQ(native_kind(tensors) == WeightKind::int8, std::string(GetParam().weights) == "int8");
  if (native_kind(tensors) != WeightKind::int8) return;  // f32 holds every value, bf16 rounds
  // Some rows from the middle, in another order.
  const StoredRows some{.first = 8, .n = 16, .run = 4, .stride = 8};
  WeightRows exact;
  WeightRows codes;
  QuantisedMatrix(tensors, WeightKind::f32, some).read(3, 5, exact);
  QuantisedMatrix(tensors, WeightKind::int8, some).read(3, 5, codes);
  const auto k = static_cast<std::size_t>(width);
  ASSERT_EQ(codes.int8.size(), 5 * k);
  for (std::size_t i = 0; i < 5 * k; ++i) {
    const float scale = to_float(F16{codes.scales[i / kernels::kGroup]});
    EXPECT_EQ(scale * static_cast<float>(codes.int8[i]), exact.f32[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Quantised,
                         ::testing::Values(Case{"gptq", "int8"}, Case{"gptq_ordered", "f32"},
                                           Case{"gptq_column", "int8"}, Case{"awq", "int8"},
                                           Case{"awq_column", "int8"}, Case{"packed", "int8"},
                                           Case{"packed_column", "int8"}, Case{"int8", "int8"},
                                           Case{"fp8", "bf16"}, Case{"fp8_blocks", "bf16"},
                                           Case{"fp8_static", "bf16"},
                                           Case{"fp8_static_blocks", "bf16"}),
                         [](const auto& info) { return std::string(info.param.name); });

// OCP's table of E4M3: the largest number is 448, the smallest 2^-9.
TEST(E4m3, IsTheTable) {
  EXPECT_EQ(from_e4m3(0x00), 0.0F);
  EXPECT_TRUE(std::signbit(from_e4m3(0x80)));
  EXPECT_EQ(from_e4m3(0x01), 0.001953125F);
  EXPECT_EQ(from_e4m3(0x07), 0.013671875F);
  EXPECT_EQ(from_e4m3(0x08), 0.015625F);
  EXPECT_EQ(from_e4m3(0x38), 1.0F);
  EXPECT_EQ(from_e4m3(0x7e), 448.0F);
  EXPECT_EQ(from_e4m3(0xfe), -448.0F);
  EXPECT_TRUE(std::isnan(from_e4m3(0x7f)));
}

TEST(ReadQuantisation, RefusesOtherFormsByName) {
  const auto reading = [](const std::string& name, const std::function<void(json&)>& change) {
    return [name, change] {
      json config = config_of(name);
      change(config["quantization_config"]);
      (void)read_quantisation(config, "config.json");
    };
  };
  EXPECT_FALSE(read_quantisation({{"model_type", "llama"}}, "config.json").has_value());
  EXPECT_FALSE(read_quantisation({{"quantization_config", nullptr}}, "config.json").has_value());
  const auto with = [&](const char* name, const char* key, const json& value) {
    return reading(name, [key, value](json& section) { section[key] = value; });
  };
  EXPECT_THAT(with("gptq", "quant_method", "bitsandbytes"), fails("quantised by bitsandbytes"));
  EXPECT_THAT(with("gptq", "quant_method", nullptr), fails("an unnamed method"));
  EXPECT_THAT(with("gptq", "bits", 3), fails("quantization_config.bits to be 4"));
  EXPECT_THAT(with("gptq", "group_size", 48), fails("group_size"));
  EXPECT_THAT(with("gptq", "checkpoint_format", "marlin"), fails("gptq or gptq_v2"));
  EXPECT_THAT(with("gptq", "dynamic", {{"mlp", {{"bits", 8}}}}), fails("dynamic"));
  EXPECT_THAT(with("gptq", "format", "gptq_v2"), fails("format to be gptq"));
  EXPECT_THAT(with("packed", "transform_config", {{"R3", 1}}), fails("transform_config"));
  EXPECT_THAT(with("packed", "kv_cache_scheme", {{"num_bits", 8}}), fails("kv_cache_scheme"));
  EXPECT_NO_THROW(with("packed", "sparsity_config", {{"format", "dense"}})());
  EXPECT_THAT(with("fp8_blocks", "activation_scheme", "sometimes"), fails("dynamic or static"));
  EXPECT_THAT(reading("fp8_blocks", [](json& section) { section.erase("weight_block_size"); }),
              fails("two numbers"));
  EXPECT_THAT(with("awq", "version", "gemv"), fails("gemm"));
  EXPECT_NO_THROW(with("awq", "version", "GEMM")());
  EXPECT_THAT(with("awq", "zero_point", false), fails("zero_point"));
  EXPECT_THAT(with("packed", "format", "marlin-24"), fails("pack-quantized"));
  EXPECT_THAT(with("packed", "config_groups", json::object()), fails("one group"));
  EXPECT_THAT(with("fp8_blocks", "weight_block_size", 128), fails("two numbers"));
  EXPECT_THAT(with("fp8_blocks", "weight_block_size", {0, 128}), fails("above 0"));
  const auto weights = [&](const char* name, const char* key, const json& value) {
    return reading(name, [key, value](json& section) {
      section["config_groups"]["group_0"]["weights"][key] = value;
    });
  };
  EXPECT_THAT(weights("packed", "num_bits", 8), fails("num_bits to be 4"));
  EXPECT_THAT(weights("int8", "strategy", "block"), fails("channel or tensor"));
  EXPECT_THAT(weights("int8", "symmetric", false), fails("symmetric"));
  EXPECT_THAT(weights("fp8", "type", "int"), fails("float"));
  EXPECT_THAT(weights("fp8", "strategy", "group"), fails("channel, tensor or block"));
  EXPECT_THAT(weights("fp8", "strategy", "block"), fails("block_structure to be two numbers"));
  json mlx = {{"quantization", {{"group_size", 64}, {"bits", 4}}}};
  EXPECT_THAT([&] { (void)read_quantisation(mlx, "config.json"); }, fails("MLX"));
}

// Each case changes one tensor of a valid directory; the message names it.
TEST(FindQuantised, NamesWhatIsWrong) {
  const auto finding = [](const std::string& name, const std::function<void(Quantisation&)>& change,
                          std::int64_t n_rows, std::int64_t k) {
    return [name, change, n_rows, k] {
      const auto source = open_safetensors(golden(name) / "model.safetensors");
      Quantisation quantisation = *read_quantisation(config_of(name), "config.json");
      change(quantisation);
      (void)find_quantised(*source, quantisation, "model.layers.0.mlp.up_proj", n_rows, k);
    };
  };
  const auto as_it_is = [](Quantisation&) {};
  EXPECT_NO_THROW(finding("awq", as_it_is, 64, 64)());
  EXPECT_THAT(finding("awq", as_it_is, 64, 128), fails("up_proj.qweight of shape (128, 8)"));
  EXPECT_THAT(finding("awq", as_it_is, 60, 64), fails("multiple of 8"));
  EXPECT_THAT(finding(
                  "awq", [](Quantisation& q) { q.group = 64; }, 64, 64),
              fails("up_proj.qzeros of shape (1, 8)"));
  EXPECT_THAT(finding(
                  "awq", [](Quantisation& q) { q.group = 128; }, 64, 64),
              fails("in groups of 128"));
  EXPECT_THAT(finding("int8", as_it_is, 96, 64), fails("up_proj.weight of shape (96, 64)"));
  EXPECT_THAT(finding(
                  "int8", [](Quantisation& q) { q.form = Form::fp8; }, 96, 96),
              fails("type F8_E4M3"));
  EXPECT_THAT(finding(
                  "fp8_blocks", [](Quantisation& q) { q.block_rows = 32; }, 96, 96),
              fails("up_proj.weight_scale_inv of shape (3, 2)"));
  // A plain matrix if there are no quantised tensors.
  const auto source = open_safetensors(golden("gptq") / "model.safetensors");
  EXPECT_EQ(find_quantised(*source, {}, "lm_head", 61, 128).codes, nullptr);
}

// An invalid group would read beyond the scales.
TEST(FindQuantised, RefusesGroupsThatAreNone) {
  const test::TemporaryDirectory directory;
  const fs::path file = directory.path() / "model.safetensors";
  const std::string name = "model.layers.0.mlp.up_proj";
  std::ifstream stream(golden("gptq_ordered") / "model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  std::string groups;
  {
    const auto source = open_safetensors(golden("gptq_ordered") / "model.safetensors");
    const TensorView& view = *source->find(name + ".g_idx");
    groups.assign(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  }
  const std::size_t at = bytes.find(groups);
  ASSERT_NE(at, std::string::npos);
  for (const char* wrong : {"\x02\0\0\0", "\xff\xff\xff\xff"}) {
    std::string changed = bytes;
    changed.replace(at, 4, wrong, 4);
    std::ofstream(file, std::ios::binary) << changed;
    const auto source = open_safetensors(file);
    const Quantisation quantisation = *read_quantisation(config_of("gptq_ordered"), "config.json");
    EXPECT_THAT([&] { (void)find_quantised(*source, quantisation, name, 64, 64); },
                fails("up_proj.g_idx of groups 0 to 1"));
  }
}

}  // namespace
}  // namespace outrider
