// SPDX-License-Identifier: Apache-2.0
#include "train/output/model_directory.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "io/safetensors/safetensors_writer.h"
#include "outrider/error.h"

namespace outrider::train {

namespace fs = std::filesystem;

nlohmann::ordered_json llama_config_json(const ModelConfig& config, ElementType type) {
  nlohmann::ordered_json json = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"vocab_size", config.vocabulary_size},
      {"hidden_size", config.dim},
      {"intermediate_size", config.hidden_dim},
      {"num_hidden_layers", config.n_layers},
      {"num_attention_heads", config.n_heads},
      {"num_key_value_heads", config.n_kv_heads},
      {"head_dim", config.head_dim},
      {"max_position_embeddings", config.context_length},
      // In a person's notation: 1e-05, not the float's digits as a double.
      {"rms_norm_eps", std::stod(fmt::format("{}", config.norm_epsilon))},
      {"rope_theta", config.rope.theta},
      {"hidden_act", "silu"},
      {"attention_bias", config.attention_bias},
      {"mlp_bias", config.mlp_bias},
      {"tie_word_embeddings", config.tied_head},
      {"torch_dtype", type == ElementType::bf16 ? "bfloat16" : "float32"}};
  if (config.bos_token != kNoToken) json["bos_token_id"] = config.bos_token;
  if (config.end_tokens.size() == 1) {
    json["eos_token_id"] = config.end_tokens.front();
  } else if (!config.end_tokens.empty()) {
    json["eos_token_id"] = config.end_tokens;
  }
  return json;
}

void write_parameters(const fs::path& directory, const std::string& file,
                      const torch::nn::Module& module, ElementType type) {
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : module.named_parameters()) {
    tensors.push_back({parameter.key(), parameter.value()});
  }
  write_tensors(directory, file, tensors, type);
}

void write_tensors(const fs::path& directory, const std::string& file,
                   const std::vector<NamedTensor>& tensors, ElementType type) {
  fs::create_directories(directory);
  std::vector<torch::Tensor> kept;  // the spans refer to it
  std::vector<NamedValues> named;
  for (const NamedTensor& tensor : tensors) {
    const torch::ScalarType stored = tensor.values.scalar_type();
    const bool is_float = torch::isFloatingType(stored);
    kept.push_back(
        tensor.values.detach().to(torch::kCPU, is_float ? torch::kFloat32 : stored).contiguous());
    const torch::Tensor& values = kept.back();
    const auto n = static_cast<std::size_t>(values.numel());
    NamedValues entry{.name = tensor.name, .shape = values.sizes().vec()};
    if (is_float) {
      entry.values = {values.data_ptr<float>(), n};
    } else if (stored == torch::kInt64) {
      entry.integers = {values.data_ptr<std::int64_t>(), n};
    } else {
      entry.flags = {reinterpret_cast<const std::uint8_t*>(values.data_ptr<bool>()), n};
    }
    named.push_back(std::move(entry));
  }
  write_safetensors(directory / file, named, type);
}

void write_json(const fs::path& directory, const std::string& file,
                const nlohmann::ordered_json& json) {
  fs::create_directories(directory);
  write_file_atomically(directory / file, json.dump(2) + "\n");
}

nlohmann::ordered_json read_json(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(in, nullptr, false);
  if (!json.is_object()) {
    throw Error("read model", file.string(), "a JSON object",
                in ? "something else" : "no such file");
  }
  return json;
}

void copy_file_whole(const fs::path& file, const fs::path& directory) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return;
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  write_file_atomically(directory / file.filename(), bytes);
}

void copy_tokenizer(const fs::path& from, const fs::path& directory) {
  fs::create_directories(directory);
  const fs::path folder = fs::is_directory(from) ? from : from.parent_path();
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"}) {
    copy_file_whole(folder / name, directory);
  }
}

}  // namespace outrider::train
