// SPDX-License-Identifier: Apache-2.0
// Broken files, each with one clear error; and weights whose values survive the files.
#include "model/load_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/float16.h"
#include "model/stored_weights.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/resident_bytes.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::TinyModel;
using test::TinyTensor;

void expect_error(const std::filesystem::path& path, const std::string& named,
                  const LoadOptions& options = {}) {
  try {
    load_model(path, options);
    ADD_FAILURE() << "was loaded; expected an error naming " << named;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(named), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(LoadModel, RefusesPathsThatAreNoModel) {
  const test::TemporaryDirectory directory;
  expect_error(directory.path(), "config.json");
  expect_error(directory.path() / "nothing", "nothing there");
  expect_error(directory.path() / "nothing.gguf", "nothing.gguf");
  expect_error("", "Hugging Face directory");
  std::ofstream(directory.path() / "model.bin") << "x";
  expect_error(directory.path() / "model.bin", "another kind");
  std::ofstream(directory.path() / "empty.gguf");
  expect_error(directory.path() / "empty.gguf", "empty.gguf");
  std::ofstream(directory.path() / "config.json") << test::config_json({});
  expect_error(directory.path(), "safetensors");
  LoadOptions options;
  options.n_threads = -1;
  expect_error(directory.path(), "threads", options);
  options.n_threads = 1 << 20;
  expect_error(directory.path(), "threads", options);
}

TEST(LoadModel, TellsGgufByItsFirstBytes) {
  const test::TemporaryDirectory directory;
  const TinyModel model = test::make_tiny_model({});
  for (const char* name : {"model.GGUF", "model.Gguf", "sha256-5d1e"}) {
    test::write_gguf(model, directory.path() / name);
    EXPECT_EQ(load_model(directory.path() / name)->config().dim, model.shape.dim) << name;
  }
}

// A model is in memory once, packed. The tensors that it was packed from have been released, except
// for pages that the system read around their neighbours.
TEST(LoadModel, KeepsNoSecondCopyInMemory) {
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.dim = 512;
  shape.head_dim = 128;
  shape.hidden_dim = 1536;
  shape.tied_head = true;
  const TinyModel model = test::make_tiny_model(shape);
  test::write_hugging_face(model, directory.path());
  test::write_gguf(model, directory.path() / "model.gguf");
  for (const char* weights : {"model.safetensors", "model.gguf"}) {
    const auto file = directory.path() / weights;
    ASSERT_GT(std::filesystem::file_size(file), 20u << 20);
    const auto loaded = load_model(file.extension() == ".gguf" ? file : directory.path());
    const auto resident = test::resident_bytes(file);
    if (!resident) GTEST_SKIP() << "no /proc/self/smaps that names the file";
    EXPECT_LT(*resident, std::filesystem::file_size(file) / 2) << weights;
  }
}

struct BrokenTensors {
  const char* name;
  std::function<void(TinyModel&)> damage;
  const char* named;       // in the message for the Hugging Face format
  const char* gguf_named;  // in that for GGUF; null: not possible there
};

void rename(TinyModel& model, const std::string& from, const std::string& to) {
  model.at(from).name = to;
}

void add(TinyModel& model, const std::string& name, std::int64_t n) {
  model.tensors.push_back({name, {n}, std::vector<float>(static_cast<std::size_t>(n), 0.5F)});
}

void resize(TinyTensor& tensor, std::vector<std::int64_t> shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  tensor.shape = std::move(shape);
  tensor.values.resize(static_cast<std::size_t>(n));
}

std::vector<BrokenTensors> broken_tensors() {
  const std::string query = "model.layers.1.self_attn.q_proj.weight";
  return {
      {"no_embedding", [](TinyModel& m) { rename(m, "model.embed_tokens.weight", "x"); },
       "model.embed_tokens.weight", "token_embd.weight"},
      {"no_head", [](TinyModel& m) { rename(m, "lm_head.weight", "x"); }, "lm_head.weight",
       nullptr},
      {"no_final_norm", [](TinyModel& m) { rename(m, "model.norm.weight", "x"); },
       "model.norm.weight", "output_norm.weight"},
      {"no_query", [=](TinyModel& m) { rename(m, query, "x"); }, "layers.1.self_attn.q_proj",
       "blk.1.attn_q.weight"},
      {"no_layer_norm",
       [](TinyModel& m) { rename(m, "model.layers.0.post_attention_layernorm.weight", "x"); },
       "layers.0.post_attention_layernorm", "blk.0.ffn_norm.weight"},
      {"narrow_query",
       [=](TinyModel& m) {
         resize(m.at(query), {64, 32});
       },
       "(64, 64)", "(64, 64)"},
      {"turned_gate",
       [](TinyModel& m) {
         resize(m.at("model.layers.0.mlp.gate_proj.weight"), {64, 96});
       },
       "gate_proj.weight of shape (96, 64)", "ffn_gate.weight of shape (96, 64)"},
      {"flat_down",
       [](TinyModel& m) { resize(m.at("model.layers.0.mlp.down_proj.weight"), {64 * 96}); },
       "got (6144)", "got (6144)"},
      {"deep_value",
       [](TinyModel& m) {
         resize(m.at("model.layers.0.self_attn.v_proj.weight"), {2, 16, 64});
       },
       "got (2, 16, 64)", "got (2, 16, 64)"},
      {"long_norm", [](TinyModel& m) { resize(m.at("model.norm.weight"), {65}); }, "got (65)",
       "got (65)"},
      {"norm_as_matrix",
       [](TinyModel& m) {
         resize(m.at("model.norm.weight"), {1, 64});
       },
       "got (1, 64)", "got (1, 64)"},
      {"short_vocabulary",
       [](TinyModel& m) {
         resize(m.at("model.embed_tokens.weight"), {299, 64});
       },
       "(300, 64)", "(300, 64)"},
      {"short_head",
       [](TinyModel& m) {
         resize(m.at("lm_head.weight"), {299, 64});
       },
       "lm_head", "output.weight"},
      {"bias_that_the_config_denies",
       [](TinyModel& m) { add(m, "model.layers.0.self_attn.k_proj.bias", 32); },
       "no tensor model.layers.0.self_attn.k_proj.bias", "no tensor blk.0.attn_k.bias"},
      {"mlp_bias_that_the_config_denies",
       [](TinyModel& m) { add(m, "model.layers.1.mlp.up_proj.bias", 96); },
       "no tensor model.layers.1.mlp.up_proj.bias", "no tensor blk.1.ffn_up.bias"},
      {"missing_bias", [](TinyModel& m) { m.shape.attention_bias = true; },
       "a tensor model.layers.0.self_attn.q_proj.bias", nullptr},
      {"short_bias",
       [](TinyModel& m) {
         m.shape.attention_bias = true;
         for (const int layer : {0, 1}) {
           const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.";
           add(m, name + "q_proj.bias", layer == 0 ? 64 : 63);
           add(m, name + "k_proj.bias", 32);
           add(m, name + "v_proj.bias", 32);
         }
       },
       "layers.1.self_attn.q_proj.bias of shape (64)", "blk.1.attn_q.bias of shape (64)"},
      {"more_layers_than_stored", [](TinyModel& m) { m.shape.n_layers = 3; }, "model.layers.2.",
       "blk.2."},
      {"norm_of_heads_in_a_llama",
       [](TinyModel& m) { add(m, "model.layers.1.self_attn.q_norm.weight", 16); },
       "weights that this build knows below model.layers.1., got "
       "model.layers.1.self_attn.q_norm.weight",
       "below blk.1., got blk.1.self_attn.q_norm.weight"},
      {"norm_of_a_projection",
       [](TinyModel& m) { add(m, "model.layers.0.mlp.ffn_layernorm.weight", 96); },
       "got model.layers.0.mlp.ffn_layernorm.weight", "got blk.0.mlp.ffn_layernorm.weight"},
      {"other_heads_than_stored", [](TinyModel& m) { m.shape.head_dim = 18; }, "(72, 64)", nullptr},
  };
}

class BrokenTensorsTest : public ::testing::TestWithParam<BrokenTensors> {};

TEST_P(BrokenTensorsTest, AreOneClearError) {
  const test::TemporaryDirectory directory;
  TinyModel model = test::make_tiny_model({});
  GetParam().damage(model);
  test::write_hugging_face(model, directory.path());
  expect_error(directory.path(), GetParam().named);
  if (GetParam().gguf_named != nullptr) {
    test::write_gguf(model, directory.path() / "model.gguf");
    expect_error(directory.path() / "model.gguf", GetParam().gguf_named);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenTensorsTest, ::testing::ValuesIn(broken_tensors()),
                         [](const auto& info) { return std::string(info.param.name); });

// Weights that follow from the configuration are ignored; other unused ones are reported.
TEST(LoadModel, SaysWhichWeightsAreNotUsed) {
  const test::TemporaryDirectory directory;
  const auto warnings_with = [&](const std::vector<std::string>& names) {
    TinyModel model = test::make_tiny_model({});
    for (const std::string& name : names) add(model, name, 8);
    test::write_hugging_face(model, directory.path());
    return load_model(directory.path())->warnings();
  };
  EXPECT_TRUE(warnings_with({}).empty());
  EXPECT_TRUE(warnings_with({"model.layers.0.self_attn.rotary_emb.inv_freq",
                             "model.layers.2.eh_proj.weight", "model.layers.2.enorm.weight"})
                  .empty());
  const auto one = warnings_with({"model.embed_norm.weight"});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NE(one[0].find("1 of its weights is not used (model.embed_norm.weight)"),
            std::string::npos)
      << one[0];
  // Layers beyond the number in the configuration.
  const auto layer = warnings_with({"model.layers.2.mlp.up_proj.weight", "x.weight"});
  ASSERT_EQ(layer.size(), 1u);
  EXPECT_NE(layer[0].find("2 of its weights are not used (model.layers.2.mlp.up_proj.weight, ...)"),
            std::string::npos)
      << layer[0];
}

// The header says I64, a type with the wrong number of bytes.
TEST(LoadModel, RefusesTensorsThatAreNoFloats) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model({}), directory.path());
  std::fstream file(directory.path() / "model.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  std::string text(4096, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const std::size_t at = text.find("\"F32\"", text.find("q_proj"));
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file << "\"I32\"";
  file.close();
  expect_error(directory.path(), "i32");
}

// GGUF metadata with one wrong number in each file.
TEST(LoadModel, RefusesGgufMetadataThatCannotBe) {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "model.gguf";
  const auto with = [&](const std::function<void(test::TinyShape&)>& change,
                        const std::string& named) {
    TinyModel model = test::make_tiny_model({});
    change(model.shape);
    test::write_gguf(model, file);
    expect_error(file, named);
  };
  with([](auto& shape) { shape.context_length = 0; }, "context length");
  with([](auto& shape) { shape.n_kv_heads = 3; }, "key-value heads");
  with([](auto& shape) { shape.n_kv_heads = 0; }, "key-value heads");
  with([](auto& shape) { shape.n_layers = -1; }, "llama.block_count");
  with([](auto& shape) { shape.dim = 128; }, "(300, 128)");
  with([](auto& shape) { shape.rope.theta = 0; }, "rope theta");
}

// Weights stored in a format of ours are copied bit by bit, and rows that GGUF interleaves are put
// into halves.
TEST(StoredWeights, CopiesNativeKindsExactly) {
  constexpr std::int64_t kRows = 12;  // two heads of 6
  constexpr std::int64_t kWidth = 64;
  std::vector<float> values;
  for (int i = 0; i < kRows * kWidth; ++i) {
    values.push_back(static_cast<float>((i * 37) % 101 - 50) * 0.013F);
  }
  const std::int64_t order[kRows] = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16,
                                 ElementType::q8_0, ElementType::q4_0, ElementType::q4_1}) {
    SCOPED_TRACE(name_of(type));
    const auto bytes = test::encode_values(values, kWidth, type);
    const TensorView view{"w", type, {kRows, kWidth}, bytes};
    std::vector<float> decoded(values.size());
    decode_rows(view, 0, kRows, decoded);
    const StoredWeights plain(view, native_kind(type), 0);
    const StoredWeights split(view, native_kind(type), 6);
    WeightRows rows;
    const auto value_at = [&](std::int64_t row, std::int64_t i) {
      const auto at = static_cast<std::size_t>(row * kWidth + i);
      const auto group = at / 32;
      const auto half = [](std::uint16_t bits) { return to_float(F16{bits}); };
      switch (native_kind(type)) {
        case WeightKind::f32:
          return rows.f32[at];
        case WeightKind::bf16:
          return to_float(Bf16{rows.bf16[at]});
        case WeightKind::int8:
          return half(rows.scales[group]) * rows.int8[at];
        default:
          return half(rows.scales[group]) * rows.int4[at] + half(rows.minimums[group]);
      }
    };
    // A product and a sum of short numbers: q4_0's scale * (q - 8) is exact. q4_1's sum may have
    // one more rounding than the reader's, half a unit of a number below 2.
    const float tolerance = type == ElementType::q4_1 ? 0x1p-24F * 2 : 0;
    plain.read(3, 5, rows);
    for (std::int64_t row = 0; row < 5; ++row) {
      for (std::int64_t i = 0; i < kWidth; ++i) {
        ASSERT_NEAR(value_at(row, i), decoded[static_cast<std::size_t>((row + 3) * kWidth + i)],
                    tolerance);
      }
    }
    split.read(0, kRows, rows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t i = 0; i < kWidth; ++i) {
        ASSERT_NEAR(value_at(row, i), decoded[static_cast<std::size_t>(order[row] * kWidth + i)],
                    tolerance);
      }
    }
  }
}

// A part of a matrix, and rows that alternate with those of other products, head by head.
TEST(StoredWeights, ReadsTheRowsItIsToldTo) {
  constexpr std::int64_t kRows = 12;
  constexpr std::int64_t kWidth = 32;
  std::vector<float> values;
  for (int i = 0; i < kRows * kWidth; ++i) values.push_back(static_cast<float>(i % 113 - 50));
  const auto expect = [&](const StoredRows& rows, const std::vector<std::int64_t>& places) {
    for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::q8_0}) {
      const auto bytes = test::encode_values(values, kWidth, type);
      const TensorView view{"w", type, {kRows, kWidth}, bytes};
      const StoredWeights part(view, WeightKind::f32, rows);
      ASSERT_EQ(part.n_rows(), static_cast<std::int64_t>(places.size()));
      WeightRows read;
      part.read(1, part.n_rows() - 1, read);
      for (std::size_t i = 1; i < places.size(); ++i) {
        std::vector<float> decoded(kWidth);
        decode_rows(view, places[i], 1, decoded);
        const auto at = read.f32.begin() + static_cast<std::ptrdiff_t>((i - 1) * kWidth);
        EXPECT_TRUE(std::equal(decoded.begin(), decoded.end(), at)) << name_of(type) << " " << i;
      }
    }
  };
  expect({.first = 3, .n = 5}, {3, 4, 5, 6, 7});
  expect({.first = 2, .n = 4, .run = 2, .stride = 6}, {2, 3, 8, 9});
  expect({.first = 4, .n = 8, .interleaved_head_dim = 4}, {4, 6, 5, 7, 8, 10, 9, 11});
}

// A matrix stored transposed gives the same numbers as one stored in rows, in every format.
TEST(StoredWeights, TurnsMatrices) {
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kWidth = 33;
  std::vector<float> values;
  for (int i = 0; i < kRows * kWidth; ++i) {
    values.push_back(static_cast<float>((i * 37) % 1001 - 500) * 0.0131F);
  }
  std::vector<float> turned(values.size());
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      turned[static_cast<std::size_t>(i * kRows + row)] =
          values[static_cast<std::size_t>(row * kWidth + i)];
    }
  }
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const auto straight_bytes = test::encode_values(values, kWidth, type);
    const auto turned_bytes = test::encode_values(turned, kRows, type);
    const TensorView straight_view{"w", type, {kRows, kWidth}, straight_bytes};
    const TensorView turned_view{"w", type, {kWidth, kRows}, turned_bytes};
    for (const WeightKind kind :
         {WeightKind::f32, WeightKind::bf16, WeightKind::int8, WeightKind::int4}) {
      SCOPED_TRACE(fmt::format("{} as {}", name_of(type), kernels::name_of(kind)));
      const StoredWeights straight(straight_view, kind, {.first = 5, .n = 30});
      const StoredWeights other(turned_view, kind, {.first = 5, .n = 30, .turned = true});
      ASSERT_EQ(other.n_rows(), 30);
      ASSERT_EQ(other.k(), kWidth);
      EXPECT_EQ(StoredWeights(turned_view, kind, {.turned = true}).n_rows(), kRows);
      WeightRows expected;
      WeightRows read;
      straight.read(7, 16, expected);
      other.read(7, 16, read);
      EXPECT_EQ(read.f32, expected.f32);
      EXPECT_EQ(read.bf16, expected.bf16);
      EXPECT_EQ(read.int8, expected.int8);
      EXPECT_EQ(read.int4, expected.int4);
      EXPECT_EQ(read.scales, expected.scales);
      EXPECT_EQ(read.minimums, expected.minimums);
    }
  }
}

// Copying and requantising differ: loading in the stored format must not round twice.
TEST(StoredWeights, RoundsWhatIsStoredInAnotherKind) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>((i * 29) % 64) * 0.11F - 3);
  const auto bytes = test::encode_values(values, 64, ElementType::q8_0);
  const TensorView view{"w", ElementType::q8_0, {1, 64}, bytes};
  std::vector<float> decoded(64);
  decode_rows(view, 0, 1, decoded);
  WeightRows expected;
  quantize_weights(decoded, 1, 64, WeightKind::int4, expected);
  WeightRows rows;
  StoredWeights(view, WeightKind::int4, 0).read(0, 1, rows);
  EXPECT_EQ(rows.int4, expected.int4);
  EXPECT_EQ(rows.scales, expected.scales);
  EXPECT_EQ(rows.minimums, expected.minimums);
  EXPECT_FALSE(is_weight_type(ElementType::i32));
}

}  // namespace
}  // namespace outrider
