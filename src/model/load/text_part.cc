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

// Multimodal classes whose text part is a family of ours, called by text_config's model_type.
constexpr std::string_view kClasses[] = {"Gemma3ForConditionalGeneration",
                                         "Mistral3ForConditionalGeneration"};

// Where such directories keep a text model's tensors: as transformers 4 wrote them, and 5.
struct Prefix {
  std::string_view whole;
  std::string_view text;
};
constexpr Prefix kPrefixes[] = {{"language_model.model.", "model."},
                                {"language_model.lm_head.", "lm_head."},
                                {"model.language_model.", "model."},
                                {"lm_head.", "lm_head."}};

// text_config names what is not transformers' default alone: those of Gemma3TextConfig (5.12.1).
const Json& defaults_of(const std::string& model_type) {
  static const Json of_gemma3 = {{"vocab_size", 262208},      {"hidden_size", 2304},
                                 {"intermediate_size", 9216}, {"num_hidden_layers", 26},
                                 {"num_attention_heads", 8},  {"num_key_value_heads", 4},
                                 {"head_dim", 256},           {"max_position_embeddings", 131072},
                                 {"rms_norm_eps", 1e-6}};
  static const Json none = Json::object();
  return model_type == "gemma3_text" ? of_gemma3 : none;
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
  const Json* const classes = section.find("architectures");
  const auto is_known = [](const Json& name) {
    return name.is_string() && std::find(std::begin(kClasses), std::end(kClasses),
                                         name.get<std::string>()) != std::end(kClasses);
  };
  if (classes == nullptr || !classes->is_array() ||
      !std::any_of(classes->begin(), classes->end(), is_known)) {
    section.fail("architectures",
                 fmt::format("{} or {} where there is a text_config", kClasses[0], kClasses[1]),
                 classes != nullptr ? ConfigSection::shown(*classes) : "no such key");
  }
  if (!part->is_object()) section.fail("text_config", "an object", ConfigSection::shown(*part));
  const auto type = part->find("model_type");
  const std::string model_type =
      type != part->end() && type->is_string() ? type->get<std::string>() : "";
  Json text = defaults_of(model_type);
  text.update(*part);
  // The text part's own class; the whole's stands above.
  text.erase("architectures");
  for (const char* key : {"bos_token_id", "eos_token_id", "tie_word_embeddings",
                          "quantization_config", "compression_config"}) {
    if (!text.contains(key) && config.contains(key)) text[key] = config[key];
  }
  return text;
}

std::unique_ptr<TensorSource> open_text_part(std::unique_ptr<TensorSource> whole) {
  return std::make_unique<TextPart>(std::move(whole));
}

}  // namespace outrider
