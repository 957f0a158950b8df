// SPDX-License-Identifier: Apache-2.0
// Shapes read from headers equal those of the loaded models, for every family and format.
#include "measure/plan/shape_of_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "io/safetensors/safetensors_writer.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double n_stored(const ModelShape& shape) {
  double n_weights = 0;
  for (const WeightShare& stored : shape.stored) n_weights += stored.n_weights;
  return n_weights;
}

double n_by_sizes(const ModelShape& shape) {
  return shape.attention_weights() + shape.mlp_weights() + shape.head_weights();
}

TEST(ShapeOfFile, HasTheMatricesThatAreLoaded) {
  int n_files = 0;
  for (const std::string& name : test::golden_names()) {
    const fs::path directory = test::golden_directory(name);
    for (const fs::path& path : {directory, directory / "model.gguf"}) {
      if (!fs::exists(path)) continue;
      ++n_files;
      if (name == "qwen3_moe_mixed") {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("experts in all layers or in none")));
        continue;
      }
      if (name.starts_with("lfm2_") || name.starts_with("qwen3_next_") ||
          name.starts_with("qwen3_5_") || name.starts_with("granite_hybrid_")) {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("layers that all attend")));
        continue;
      }
      if (name.starts_with("t5_")) {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("expected a decoder")));
        continue;
      }
      if (name.starts_with("deepseek_")) {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("keys and values of their own")));
        continue;
      }
      if (name.starts_with("kimi_k2_") || name.starts_with("glm4_moe_lite_")) {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("keys and values of their own")));
        continue;
      }
      if (name.starts_with("glm4_moe_")) {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("experts that rows choose alone")));
        continue;
      }
      if (name.starts_with("gemma4_") || name.starts_with("nemotron_h_")) {
        EXPECT_THAT([&] { shape_of_file(path); },
                    ThrowsMessage<Error>(HasSubstr("layers of one shape")));
        continue;
      }
      const ModelShape shape = shape_of_file(path);
      const Footprint loaded = test::load_f32(path)->footprint();
      double n_loaded = 0;
      for (const Footprint::Share& share : loaded.shares) {
        n_loaded += static_cast<double>(share.n_weights);
      }
      EXPECT_EQ(n_stored(shape), n_loaded) << path;
      const double n_in_routers = static_cast<double>(shape.n_experts) * shape.dim * shape.n_layers;
      EXPECT_EQ(n_by_sizes(shape) + n_in_routers, n_loaded) << path;
    }
  }
  EXPECT_GT(n_files, 40);
}

// MXFP4's codes and scales count as one share, in either format.
TEST(ShapeOfFile, CountsBlocksOfMxfp4) {
  const fs::path directory = test::golden_directory("gpt_oss_mxfp4");
  for (const fs::path& path : {directory, directory / "model.gguf"}) {
    const ModelShape shape = shape_of_file(path);
    double n_weights = 0;
    for (const WeightShare& stored : shape.stored) {
      if (stored.type != "mxfp4") continue;
      n_weights += stored.n_weights;
      EXPECT_EQ(stored.n_bytes, stored.n_weights * 17 / 32) << path;
    }
    EXPECT_EQ(n_weights, shape.mlp_weights()) << path;
  }
}

// Masks of old GPT-2 checkpoints, multi-token prediction modules, other modalities.
TEST(ShapeOfFile, LeavesOutWhatNoPassReads) {
  test::TinyModel model = test::make_tiny_model({});
  const test::TemporaryDirectory plain;
  test::write_hugging_face(model, plain.path());
  const double n_weights = n_stored(shape_of_file(plain.path()));
  EXPECT_EQ(n_weights, n_by_sizes(shape_of_file(plain.path())));
  model.tensors.push_back({"model.layers.0.attn.bias", {1, 1, 2, 3}, std::vector<float>(6)});
  model.tensors.push_back({"model.layers.2.eh_proj.weight", {2, 3}, std::vector<float>(6)});
  model.tensors.push_back({"model.layers.20.eh_proj.weight", {2, 3}, std::vector<float>(6)});
  model.tensors.push_back({"vision_tower.patch.weight", {2, 3}, std::vector<float>(6)});
  const test::TemporaryDirectory more;
  test::write_hugging_face(model, more.path());
  EXPECT_EQ(n_stored(shape_of_file(more.path())), n_weights);
}

TEST(ShapeOfFile, IsTheTextPartOfMore) {
  const fs::path part = test::golden_directory("mistral_window");
  const auto source = open_safetensors(part / "model.safetensors");
  std::vector<std::vector<float>> values;
  values.reserve(source->tensors().size());
  std::vector<NamedValues> named;
  for (const TensorView& tensor : source->tensors()) {
    values.emplace_back(static_cast<std::size_t>(tensor.n_elements()));
    decode_rows(tensor, 0, tensor.shape.size() == 1 ? 1 : tensor.shape[0], values.back());
    named.push_back(
        {.name = "language_model." + tensor.name, .shape = tensor.shape, .values = values.back()});
  }
  const test::TemporaryDirectory whole;
  write_safetensors(whole.path() / "model.safetensors", named, ElementType::bf16);
  nlohmann::json text = test::json_of(part / "config.json");
  text.erase("architectures");
  nlohmann::json config = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                           {"model_type", "mistral3"},
                           {"text_config", text}};
  if (text.contains("tie_word_embeddings")) {
    config["tie_word_embeddings"] = text["tie_word_embeddings"];
  }
  std::ofstream(whole.path() / "config.json") << config.dump();
  const ModelShape shape = shape_of_file(whole.path());
  EXPECT_EQ(n_stored(shape), n_stored(shape_of_file(part)));
  EXPECT_EQ(shape.n_layers, shape_of_file(part).n_layers);
}

TEST(ShapeOfFile, RefusesWhatItCannotCount) {
  for (const char* name :
       {"quantised_gptq", "quantised_awq", "quantised_fp8", "quantised_int8", "quantised_packed"}) {
    EXPECT_THAT([&] { shape_of_file(test::golden_directory(name)); },
                ThrowsMessage<Error>(HasSubstr("of a float type or one of GGUF's")))
        << name;
  }
  const test::TemporaryDirectory directory;
  const fs::path cut = directory.path() / "cut.gguf";
  fs::copy_file(test::golden_directory("llama_plain") / "model.gguf", cut);
  const std::uintmax_t n_bytes = fs::file_size(cut);
  for (const std::uintmax_t left : {n_bytes - 1, n_bytes / 2, std::uintmax_t{100}}) {
    fs::resize_file(cut, left);
    EXPECT_THROW(shape_of_file(cut), Error) << left;
  }
  EXPECT_THROW(shape_of_file(directory.path()), Error);
}

}  // namespace
}  // namespace outrider
