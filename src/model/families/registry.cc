// SPDX-License-Identifier: Apache-2.0
#include "model/families/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config_section.h"
#include "model/families/experts/deepseek.h"
#include "model/families/experts/glm4_moe.h"
#include "model/families/experts/mixtral.h"
#include "model/families/experts/olmoe.h"
#include "model/families/experts/qwen3_moe.h"
#include "model/families/gemma/gemma2.h"
#include "model/families/gemma/gemma3.h"
#include "model/families/gemma/gemma4.h"
#include "model/families/gpt/gpt2.h"
#include "model/families/gpt/gpt_neox.h"
#include "model/families/gpt/gpt_oss.h"
#include "model/families/granite.h"
#include "model/families/llama.h"
#include "model/families/ministral3.h"
#include "model/families/mistral.h"
#include "model/families/olmo2.h"
#include "model/families/phi3.h"
#include "model/families/qwen2.h"
#include "model/families/qwen3.h"
#include "model/families/recurrent/granite_hybrid.h"
#include "model/families/recurrent/lfm2.h"
#include "model/families/recurrent/nemotron_h.h"
#include "model/families/recurrent/qwen_hybrid.h"
#include "model/families/smollm3.h"
#include "model/families/t5.h"
#include "model/load/gguf_config.h"
#include "model/load/json_config.h"
#include "model/load/layer_windows.h"
#include "model/load/other_models.h"
#include "model/load/text_part.h"
#include "outrider/error.h"

namespace outrider {
namespace {

template <typename Model>
std::unique_ptr<const Family> read(const ConfigSource& source) {
  return std::make_unique<Model>(source);
}

// Mixtral's GGUF files name the architecture llama.
std::unique_ptr<const Family> read_llama(const ConfigSource& source) {
  return is_mixtral(source) ? read<Mixtral>(source) : read<Llama>(source);
}

constexpr FamilyEntry kFamilies[] = {
    {"LlamaForCausalLM", "llama", "llama", read_llama},
    {"Qwen2ForCausalLM", "qwen2", "qwen2", read<Qwen2>},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", read<Qwen3>},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe", read<Qwen3Moe>},
    {"Qwen3NextForCausalLM", "qwen3_next", "qwen3next", read<Qwen3Next>},
    {"Qwen3_5ForCausalLM", "qwen3_5_text", "qwen35", read<Qwen35>},
    {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", "qwen35moe", read<Qwen35Moe>},
    {"Gemma2ForCausalLM", "gemma2", "gemma2", read<Gemma2>},
    {"Gemma3ForCausalLM", "gemma3_text", "gemma3", read<Gemma3>},
    {"Gemma4ForCausalLM", "gemma4_text", "gemma4", read<Gemma4>},
    {"MistralForCausalLM", "mistral", nullptr, read<Mistral>},
    {"MixtralForCausalLM", "mixtral", nullptr, read<Mixtral>},
    {"Ministral3ForCausalLM", "ministral3", "mistral3", read<Ministral3>},
    {"SmolLM3ForCausalLM", "smollm3", "smollm3", read<SmolLm3>},
    {"Olmo2ForCausalLM", "olmo2", "olmo2", read<Olmo2>},
    {"OlmoeForCausalLM", "olmoe", "olmoe", read<Olmoe>},
    {"Phi3ForCausalLM", "phi3", "phi3", read<Phi3>},
    {"GraniteForCausalLM", "granite", "granite", read<Granite>},
    {"GraniteMoeHybridForCausalLM", "granitemoehybrid", "granitehybrid", read<GraniteHybrid>},
    {"NemotronHForCausalLM", "nemotron_h", "nemotron_h", read<NemotronH>},
    {"NemotronHForCausalLM", "nemotron_h", "nemotron_h_moe", read<NemotronH>},
    {"GptOssForCausalLM", "gpt_oss", "gpt-oss", read<GptOss>},
    {"DeepseekV2ForCausalLM", "deepseek_v2", "deepseek2", read<DeepSeekV2>},
    {"DeepseekV3ForCausalLM", "deepseek_v3", nullptr, read<DeepSeekV3>},
    {"DeepseekV3ForCausalLM", "kimi_k2", nullptr, read<DeepSeekV3>},
    {"Glm4MoeForCausalLM", "glm4_moe", "glm4moe", read<Glm4Moe>},
    {"Glm4MoeLiteForCausalLM", "glm4_moe_lite", nullptr, read<Glm4MoeLite>},
    {"Lfm2ForCausalLM", "lfm2", "lfm2", read<Lfm2>},
    {"GPT2LMHeadModel", "gpt2", "gpt2", read<Gpt2>},
    {"GPTNeoXForCausalLM", "gpt_neox", "gptneox", read<GptNeoX>},
    {"T5ForConditionalGeneration", "t5", "t5", read<T5>},
};

// Each name once, in the table's order.
std::string names(const char* FamilyEntry::*name) {
  std::vector<std::string_view> all;
  for (const FamilyEntry& family : kFamilies) {
    if (family.*name == nullptr) continue;
    if (std::find(all.begin(), all.end(), family.*name) == all.end())
      all.emplace_back(family.*name);
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

const FamilyEntry* find(const char* FamilyEntry::*name, std::string_view wanted) {
  const auto* found = std::find_if(
      std::begin(kFamilies), std::end(kFamilies),
      [&](const FamilyEntry& entry) { return entry.*name != nullptr && wanted == entry.*name; });
  return found == std::end(kFamilies) ? nullptr : found;
}

// Found by model_type and by the first known class that the file names, which must be of that
// family; two model types may share a class. Without a model_type, the class decides.
const FamilyEntry& entry_of(const ConfigSection& config) {
  const std::string type = config.text_or("model_type", "");
  const FamilyEntry* family = find(&FamilyEntry::model_type, type);
  if (!type.empty() && family == nullptr) {
    config.fail("model_type", fmt::format("one this build knows ({})", known_families()), type);
  }
  if (const nlohmann::json* classes = config.find("architectures")) {
    const FamilyEntry* by_class = nullptr;
    if (classes->is_array()) {
      for (const nlohmann::json& name : *classes) {
        if (name.is_string() && by_class == nullptr) {
          by_class = find(&FamilyEntry::class_name, name.get_ref<const std::string&>());
        }
      }
    }
    const bool fits =
        by_class != nullptr &&
        (family == nullptr || std::string_view(by_class->class_name) == family->class_name);
    if (!fits) {
      config.fail("architectures",
                  family != nullptr
                      ? std::string(family->class_name)
                      : fmt::format("one this build knows ({})", names(&FamilyEntry::class_name)),
                  ConfigSection::shown(*classes));
    }
    if (family == nullptr) family = by_class;
  }
  if (family == nullptr) config.fail("model_type", "there", "no such key");
  return *family;
}

}  // namespace

std::span<const FamilyEntry> families() { return kFamilies; }

std::unique_ptr<const Family> read_family(const std::filesystem::path& directory) {
  return read_family(FileFolder(directory));
}

std::unique_ptr<const Family> read_family(const FileFolder& folder) {
  nlohmann::json json = parse_config(folder, "config.json");
  std::optional<nlohmann::json> text = text_config_of(json, folder.place("config.json"));
  const bool is_text_part = text.has_value();
  const JsonConfig source(is_text_part ? *std::move(text) : std::move(json), folder, is_text_part);
  auto family = entry_of(source.section()).read(source);
  source.refuse_unread();
  return family;
}

std::unique_ptr<const Family> read_family(const GgufFile& file) {
  refuse_other_gguf(file);
  const GgufConfig source(file);
  const FamilyEntry* entry = find(&FamilyEntry::gguf, source.architecture());
  if (entry == nullptr) {
    throw Error(kReadConfig, file.description(),
                fmt::format("general.architecture to be one this build knows ({})",
                            names(&FamilyEntry::gguf)),
                source.architecture());
  }
  auto family = entry->read(source);
  source.refuse_unread();
  return family;
}

ModelConfig read_config_json(const std::filesystem::path& directory) {
  return read_family(directory)->config();
}

ModelConfig read_config_gguf(const GgufFile& file) { return read_family(file)->config(); }

ModelConfig read_head_config(nlohmann::json json, const std::filesystem::path& file) {
  const JsonConfig source(std::move(json), file);
  ModelConfig config =
      read_decoder_config(source, {.architecture = "llama", .has_special_tokens = false});
  config.attention_bias = source.has_bias("attention_bias", nullptr);
  config.mlp_bias = source.has_bias("mlp_bias", nullptr);
  (void)read_layer_windows(source, config.n_layers, 0);  // checks that all are full
  source.refuse_unread();
  return config;
}

std::string known_families() { return names(&FamilyEntry::model_type); }

}  // namespace outrider
