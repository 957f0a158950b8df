// SPDX-License-Identifier: Apache-2.0
// The readers on real files: one model as safetensors and as GGUF, and real vocabularies.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"

namespace outrider {
namespace {

const std::filesystem::path kData = OUTRIDER_SHARED_DATA;

std::vector<float> all_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
  const std::int64_t n_rows = tensor.n_elements() / tensor.shape.back();
  decode_rows(tensor, 0, n_rows, values);
  return values;
}

// GGUF orders a Llama model's query and key rows so that neighbouring pairs rotate: row (half, i)
// of a head, i < head_dim / 2, is stored as row (i, half).
std::vector<float> interleave_halves(const std::vector<float>& rows, std::size_t n_columns,
                                     std::size_t head_dim) {
  std::vector<float> result(rows.size());
  const std::size_t n_rows = rows.size() / n_columns;
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::size_t within = row % head_dim;
    const std::size_t half = within / (head_dim / 2);
    const std::size_t pair = within % (head_dim / 2);
    const std::size_t to = row - within + 2 * pair + half;
    std::memcpy(result.data() + to * n_columns, rows.data() + row * n_columns,
                n_columns * sizeof(float));
  }
  return result;
}

class RealModel : public ::testing::TestWithParam<const char*> {};

TEST_P(RealModel, SafetensorsAndGgufHoldTheSameTensors) {
  const std::filesystem::path directory = kData / "models" / GetParam();
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no folder of real models";
  const auto hf = open_safetensors_directory(directory);
  const auto gguf = open_gguf(directory / (std::string(GetParam()) + "-f32.gguf"));

  const std::vector<std::pair<std::string, std::string>> layer_names = {
      {"attn_norm", "input_layernorm"},
      {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},
      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"},
      {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},
      {"ffn_down", "mlp.down_proj"},
      {"ffn_up", "mlp.up_proj"}};
  std::vector<std::pair<std::string, std::string>> names = {
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"}};
  const std::int64_t n_layers = gguf->integer("llama.block_count").value();
  for (std::int64_t layer = 0; layer < n_layers; ++layer) {
    for (const auto& pair : layer_names) {
      names.emplace_back("blk." + std::to_string(layer) + "." + pair.first + ".weight",
                         "model.layers." + std::to_string(layer) + "." + pair.second + ".weight");
    }
  }
  EXPECT_EQ(gguf->tensors().size(), names.size());

  const std::int64_t width = gguf->integer("llama.embedding_length").value();
  const auto head_dim =
      static_cast<std::size_t>(width / gguf->integer("llama.attention.head_count").value());
  for (const auto& pair : names) {
    SCOPED_TRACE(pair.first);
    const TensorView* stored = gguf->find(pair.first);
    const TensorView* original = hf->find(pair.second);
    ASSERT_NE(stored, nullptr);
    ASSERT_NE(original, nullptr);
    ASSERT_EQ(stored->shape, original->shape);
    std::vector<float> want = all_of(*original);
    const bool rotated = pair.first.find("attn_q") != std::string::npos ||
                         pair.first.find("attn_k") != std::string::npos;
    if (rotated) want = interleave_halves(want, static_cast<std::size_t>(width), head_dim);
    EXPECT_EQ(all_of(*stored), want);  // bit for bit: both are f32
  }
}

INSTANTIATE_TEST_SUITE_P(Stories, RealModel, ::testing::Values("stories260K", "weak260K"));

TEST(RealGguf, MetadataOfTheStoryModel) {
  const auto file = kData / "models/stories260K/stories260K-f32.gguf";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no folder of real models";
  const auto gguf = open_gguf(file);
  EXPECT_EQ(*gguf->string("general.architecture"), "llama");
  EXPECT_EQ(gguf->integer("llama.feed_forward_length"), 172);
  EXPECT_EQ(gguf->real("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(gguf->real("llama.attention.layer_norm_rms_epsilon"), double{1e-5f});
  EXPECT_EQ(gguf->boolean("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(gguf->strings("tokenizer.ggml.tokens")->size(), 512u);
  EXPECT_EQ(gguf->reals("tokenizer.ggml.scores")->size(), 512u);
  EXPECT_EQ(gguf->integers("tokenizer.ggml.token_type")->at(1), 3);
}

TEST(RealGguf, VocabularyOnlyFilesLoad) {
  const auto directory = kData / "tokenizers/ggml_vocab";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no folder of real vocabularies";
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto gguf = open_gguf(entry.path());
    EXPECT_TRUE(gguf->tensors().empty());
    ASSERT_NE(gguf->strings("tokenizer.ggml.tokens"), nullptr);
    EXPECT_GE(gguf->strings("tokenizer.ggml.tokens")->size(), 32000u);
    ++n_files;
  }
  EXPECT_GE(n_files, 5);
}

}  // namespace
}  // namespace outrider
