// SPDX-License-Identifier: Apache-2.0
// Public shapes. Every line is from the model's config.json on huggingface.co, whose repository is
// named. The numbers were compared with those that LitGPT (litgpt/config.py) or MLC LLM
// (model_preset.py) copy from the same file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "measure/plan/shape_of_file.h"
#include "outrider/error.h"
#include "outrider/speed_plan.h"

namespace outrider {
namespace {

struct PublicShape {
  const char* name;
  int n_layers;
  int dim;
  int n_heads;
  int n_kv_heads;
  int head_dim;
  int hidden_dim;
  int vocabulary_size;
  bool tied_head;
  int n_experts = 0;
  int n_active = 0;
  int n_window_layers = 0;
  int window = 0;
};

constexpr PublicShape kShapes[] = {
    // meta-llama/Llama-2-7b-hf, -13b-hf, -70b-hf
    {"llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000, false},
    {"llama-2-13b", 40, 5120, 40, 40, 128, 13824, 32000, false},
    {"llama-2-70b", 80, 8192, 64, 8, 128, 28672, 32000, false},
    // meta-llama/Llama-3.1-8B, -70B, -405B; Llama-3.3-70B-Instruct has the second shape
    {"llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, false},
    {"llama-3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, false},
    {"llama-3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256, false},
    // meta-llama/Llama-3.2-1B, -3B
    {"llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, true},
    {"llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, true},
    // TinyLlama/TinyLlama-1.1B-Chat-v1.0
    {"tinyllama-1.1b", 22, 2048, 32, 4, 64, 5632, 32000, false},
    // mistralai/Mistral-7B-v0.3, Mixtral-8x7B-v0.1
    {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32768, false},
    {"mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, false, 8, 2},
    // Qwen/Qwen2.5-0.5B, -1.5B, -3B, -7B (the shapes of Coder, too)
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, true},
    {"qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, true},
    {"qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936, true},
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064, false},
    // Qwen/Qwen3-0.6B, -1.7B, -4B
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, true},
    {"qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151936, true},
    {"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936, true},
    // google/gemma-2-2b, -9b, -27b: every other layer has a window
    {"gemma-2-2b", 26, 2304, 8, 4, 256, 9216, 256000, true, 0, 0, 13, 4096},
    {"gemma-2-9b", 42, 3584, 16, 8, 256, 14336, 256000, true, 0, 0, 21, 4096},
    {"gemma-2-27b", 46, 4608, 32, 16, 128, 36864, 256000, true, 0, 0, 23, 4096},
    // google/gemma-3-1b-it: five of six layers have a window
    {"gemma-3-1b", 26, 1152, 4, 1, 256, 6912, 262144, true, 0, 0, 22, 512},
    // microsoft/Phi-4-mini-instruct (its window is longer than its context)
    {"phi-4-mini", 32, 3072, 24, 8, 128, 8192, 200064, true},
    // allenai/OLMo-2-1124-7B, -13B
    {"olmo-2-7b", 32, 4096, 32, 32, 128, 11008, 100352, false},
    {"olmo-2-13b", 40, 5120, 40, 40, 128, 13824, 100352, false},
    // HuggingFaceTB/SmolLM2-135M, -360M
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, true},
    {"smollm2-360m", 32, 960, 15, 5, 64, 2560, 49152, true},
};

// A common short name of a shape.
struct ShortName {
  const char* name;
  const char* shape;
};
constexpr ShortName kShortNames[] = {
    {"llama-8b", "llama-3.1-8b"},
    {"llama-70b", "llama-3.1-70b"},
    {"llama-405b", "llama-3.1-405b"},
    {"llama-1b", "llama-3.2-1b"},
};

ModelShape shape_of(const PublicShape& of) {
  ModelShape shape;
  shape.name = of.name;
  shape.n_layers = of.n_layers;
  shape.dim = of.dim;
  shape.n_heads = of.n_heads;
  shape.n_kv_heads = of.n_kv_heads;
  shape.head_dim = of.head_dim;
  shape.hidden_dim = of.hidden_dim;
  shape.vocabulary_size = of.vocabulary_size;
  shape.tied_head = of.tied_head;
  shape.n_experts = of.n_experts;
  shape.n_active = of.n_active;
  shape.n_window_layers = of.n_window_layers;
  shape.window = of.window;
  return shape;
}

}  // namespace

double ModelShape::attention_weights() const {
  // Queries and the output, keys and values.
  const double width = 2.0 * (n_heads + n_kv_heads) * head_dim;
  return width * dim * n_layers;
}

double ModelShape::mlp_weights() const {
  const double matrix = static_cast<double>(dim) * hidden_dim;
  return matrix * (has_gate ? 3 : 2) * std::max(n_experts, 1) * n_layers;
}

double ModelShape::head_weights() const { return static_cast<double>(vocabulary_size) * dim; }

double ModelShape::n_parameters() const {
  return attention_weights() + mlp_weights() + head_weights() * (tied_head ? 1 : 2);
}

double ModelShape::kv_elements() const { return 2.0 * n_kv_heads * head_dim * n_layers; }

double ModelShape::positions_read(int context) const {
  const int within = n_window_layers > 0 ? std::min(context, window) : 0;
  return static_cast<double>(n_layers - n_window_layers) * context +
         static_cast<double>(n_window_layers) * within;
}

std::vector<std::string> known_shapes() {
  std::vector<std::string> names;
  for (const PublicShape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

ModelShape find_shape(const std::string& name_or_path) {
  std::string name = name_or_path;
  for (const ShortName& one : kShortNames) {
    if (name == one.name) name = one.shape;
  }
  for (const PublicShape& one : kShapes) {
    if (name == one.name) return shape_of(one);
  }
  if (std::error_code ignored; std::filesystem::exists(name_or_path, ignored)) {
    return shape_of_file(name_or_path);
  }
  throw UsageError("plan speed", "model shape",
                   fmt::format("a model's path or one of {}", fmt::join(known_shapes(), ", ")),
                   name_or_path.empty() ? "nothing" : name_or_path);
}

double expected_experts(const ModelShape& shape, double n_rows) {
  if (shape.n_experts == 0) return 0;
  const double share_left = 1 - static_cast<double>(shape.n_active) / shape.n_experts;
  return shape.n_experts * (1 - std::pow(share_left, n_rows));
}

}  // namespace outrider
