// SPDX-License-Identifier: Apache-2.0
#include "model/load/text_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/tensor_table.h"
#include "model/config_section.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

// Multimodal classes whose text part is a supported family, named by text_config's model_type.
// Gives the model type if none is named, and transformers' default for tying the output matrix to
// the embedding, by class.
struct Class {
  const char* name;
  const char* text_model_type;
  bool tied_head = true;
};
constexpr Class kClasses[] = {
    {"Gemma3ForConditionalGeneration", "gemma3_text"},
    {"Gemma4ForConditionalGeneration", "gemma4_text"},
    {"Mistral3ForConditionalGeneration", "mistral"},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5_text", false},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text", false},
};

std::string known_classes() {
  std::string all;
  for (const Class& one : kClasses) all += (all.empty() ? "" : ", ") + std::string(one.name);
  return all;
}

// The class that config.json names. Throws Error if it names none of them.
const Class& class_of(const ConfigSection& section) {
  const Json* const classes = section.find("architectures");
  if (classes != nullptr && classes->is_array()) {
    for (const Json& name : *classes) {
      const auto* const known = std::find_if(std::begin(kClasses), std::end(kClasses),
                                             [&](const Class& one) { return name == one.name; });
      if (known != std::end(kClasses)) return *known;
    }
  }
  section.fail("architectures",
               fmt::format("one of {} where there is a text_config", known_classes()),
               classes != nullptr ? ConfigSection::shown(*classes) : "no such key");
}

// The prefixes of a text model's tensors in such directories: those that transformers 4 and 5
// write.
struct Prefix {
  std::string_view whole;
  std::string_view text;
};
constexpr Prefix kPrefixes[] = {{"language_model.model.", "model."},
                                {"language_model.lm_head.", "lm_head."},
                                {"model.language_model.", "model."},
                                {"lm_head.", "lm_head."},
                                {"mtp.", "mtp."}};  // Qwen3.5's module

// text_config omits transformers' defaults: those of Gemma3TextConfig, Gemma4TextConfig,
// MistralConfig, Ministral3Config, Qwen3_5TextConfig and Qwen3_5MoeTextConfig (5.12.1). Keys
// missing here have the family's own default.
const Json& defaults_of(const std::string& model_type) {
  static const Json of_gemma3 = {{"vocab_size", 262208},      {"hidden_size", 2304},
                                 {"intermediate_size", 9216}, {"num_hidden_layers", 26},
                                 {"num_attention_heads", 8},  {"num_key_value_heads", 4},
                                 {"head_dim", 256},           {"max_position_embeddings", 131072},
                                 {"rms_norm_eps", 1e-6}};
  static const Json of_gemma4 = {{"vocab_size", 262144},      {"hidden_size", 2304},
                                 {"intermediate_size", 9216}, {"num_hidden_layers", 30},
                                 {"num_attention_heads", 8},  {"num_key_value_heads", 4},
                                 {"head_dim", 256},           {"max_position_embeddings", 131072},
                                 {"rms_norm_eps", 1e-6}};
  static const Json of_mistral = {{"vocab_size", 32000},
                                  {"hidden_size", 4096},
                                  {"intermediate_size", 14336},
                                  {"num_hidden_layers", 32},
                                  {"num_attention_heads", 32},
                                  {"num_key_value_heads", 8},
                                  {"max_position_embeddings", 131072},
                                  {"rms_norm_eps", 1e-6}};
  static const Json of_ministral3 = {{"vocab_size", 131072},
                                     {"hidden_size", 4096},
                                     {"intermediate_size", 14336},
                                     {"num_hidden_layers", 34},
                                     {"num_attention_heads", 32},
                                     {"num_key_value_heads", 8},
                                     {"head_dim", 128},
                                     {"max_position_embeddings", 262144},
                                     {"rms_norm_eps", 1e-5},
                                     {"rope_parameters",
                                      {{"rope_type", "yarn"},
                                       {"rope_theta", 1e6},
                                       {"factor", 16.0},
                                       {"original_max_position_embeddings", 16384},
                                       {"beta_fast", 32.0},
                                       {"beta_slow", 1.0},
                                       {"mscale", 1.0},
                                       {"mscale_all_dim", 1.0},
                                       {"llama_4_scaling_beta", 0.1}}}};
  static const Json of_qwen3_5 = {{"vocab_size", 248320},
                                  {"hidden_size", 4096},
                                  {"intermediate_size", 12288},
                                  {"num_hidden_layers", 32},
                                  {"num_attention_heads", 16},
                                  {"num_key_value_heads", 4},
                                  {"head_dim", 256},
                                  {"max_position_embeddings", 32768},
                                  {"rms_norm_eps", 1e-6}};
  static const Json of_qwen3_5_moe = {
      {"vocab_size", 248320},     {"hidden_size", 2048},
      {"num_hidden_layers", 40},  {"num_attention_heads", 16},
      {"num_key_value_heads", 2}, {"head_dim", 256},
      {"num_experts", 256},       {"max_position_embeddings", 32768},
      {"num_experts_per_tok", 8}, {"moe_intermediate_size", 512},
      {"rms_norm_eps", 1e-6}};
  static const Json none = Json::object();
  if (model_type == "gemma3_text") return of_gemma3;
  if (model_type == "gemma4_text") return of_gemma4;
  if (model_type == "mistral") return of_mistral;
  if (model_type == "qwen3_5_text") return of_qwen3_5;
  if (model_type == "qwen3_5_moe_text") return of_qwen3_5_moe;
  return model_type == "ministral3" ? of_ministral3 : none;
}

class TextPart final : public TensorSource {
 public:
  explicit TextPart(std::unique_ptr<TensorSource> whole)
      : whole_(std::move(whole)), table_(renamed(*whole_), "load weights", whole_->description()) {}

  std::span<const TensorView> tensors() const override { return table_.tensors(); }
  const TensorView* find(std::string_view name) const override { return table_.find(name); }
  std::string description() const override { return whole_->description(); }
  void release(const TensorView& tensor) const override {
    for (const TensorView& stored : whole_->tensors()) {
      if (stored.data.data() == tensor.data.data()) return whole_->release(stored);
    }
  }

 private:
  static std::vector<TensorView> renamed(const TensorSource& whole) {
    std::vector<TensorView> tensors;
    for (const TensorView& stored : whole.tensors()) {
      const auto* const prefix =
          std::find_if(std::begin(kPrefixes), std::end(kPrefixes),
                       [&](const Prefix& one) { return stored.name.starts_with(one.whole); });
      if (prefix == std::end(kPrefixes)) continue;
      TensorView tensor = stored;
      tensor.name = fmt::format("{}{}", prefix->text,
                                std::string_view(stored.name).substr(prefix->whole.size()));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  std::unique_ptr<TensorSource> whole_;
  TensorTable table_;
};

}  // namespace

std::optional<Json> text_config_of(const Json& config, const std::filesystem::path& file) {
  const auto part = config.find("text_config");
  if (part == config.end() || part->is_null()) return std::nullopt;
  const ConfigSection section(config, file.string());
  const Class& known = class_of(section);
  const ConfigSection stored = *section.section("text_config");
  const std::string model_type = stored.text_or("model_type", known.text_model_type);
  Json text = defaults_of(model_type);
  text.update(*part);
  if (part->contains("rope_scaling") && !part->contains("rope_parameters")) {
    text.erase("rope_parameters");
  }
  text["model_type"] = model_type;
  // The text part's own class; the class of the whole is at the top level.
  text.erase("architectures");
  for (const char* key :
       {"bos_token_id", "eos_token_id", "quantization_config", "compression_config"}) {
    if (!text.contains(key) && config.contains(key)) text[key] = config[key];
  }
  // transformers 5 reads the top level, and ties the matrices if it says nothing; older files say
  // it in the text part. A stored output matrix that differs counts in any case.
  text["tie_word_embeddings"] = section.flag_or("tie_word_embeddings", known.tied_head) ||
                                stored.flag_or("tie_word_embeddings", false);
  return text;
}

std::unique_ptr<TensorSource> open_text_part(std::unique_ptr<TensorSource> whole) {
  return std::make_unique<TextPart>(std::move(whole));
}

}  // namespace outrider
