// SPDX-License-Identifier: Apache-2.0
#include "model/load/json_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/elementary.h"
#include "model/quantised/quantisation.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using Section = ConfigSection;

constexpr const char* kGenerationConfig = "generation_config.json";

// Keys that do not change what a decoder computes: names, training, generation defaults, and keys
// for other readers. Other keys that no family reads are refused.
constexpr std::string_view kWithoutMeaning[] = {
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "compression_config",  // read by read_quantisation
    "classifier_dropout",
    "cls_token_id",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initializer_range",
    "is_decoder",
    "is_llama_config",
    "label2id",
    "length_penalty",
    "max_length",
    "max_sequence_length",  // of early Llama conversions, beside max_position_embeddings
    "min_length",
    "model_type",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_nextn_predict_layers",  // modules after the layers: for a drafter, not the decoder
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "output_scores",
    "pad_token_id",
    "predict_special_tokens",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "quantization_config",  // read by read_quantisation
    "remove_invalid_values",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "router_aux_loss_coef",  // this and the following are for training
    "router_jitter_noise",
    "sep_token_id",
    "spd_type",            // the kind of drafter that the model was trained for: "pard"
    "summary_activation",  // this and the following are for a classifier on top
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};

bool has_meaning(std::string_view key, const Json& value) {
  // Off, or empty.
  if (value.is_null() || value == false ||
      ((value.is_array() || value.is_object()) && value.empty())) {
    return false;
  }
  return !key.starts_with('_') && std::find(std::begin(kWithoutMeaning), std::end(kWithoutMeaning),
                                            key) == std::end(kWithoutMeaning);
}

std::vector<float> read_divisors(const Section& section, const char* key) {
  const Json* value = section.find(key);
  const auto refuse = [&](const std::string& got) { section.fail(key, "a list of numbers", got); };
  if (value == nullptr) refuse("no such key");
  if (!value->is_array()) refuse(Section::shown(*value));
  std::vector<float> divisors;
  for (const Json& entry : *value) {
    if (!entry.is_number()) refuse(Section::shown(entry));
    divisors.push_back(entry.get<float>());
  }
  return divisors;
}

// If the file names no magnitude, it is the paper's function of the factor between the two
// contexts.
void read_longrope(const Section& scaling, double context, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::longrope;
  rope.divisors = read_divisors(scaling, "short_factor");
  rope.long_divisors = read_divisors(scaling, "long_factor");
  if (!(rope.original_context > 1)) {  // the code divides by its logarithm
    scaling.fail("original_max_position_embeddings", "above 1",
                 fmt::format("{}", rope.original_context));
  }
  const double factor = scaling.real_or("factor", context / rope.original_context);
  const double of_paper =
      factor > 1 ? std::sqrt(1 + portable_log(factor) / portable_log(rope.original_context)) : 1;
  rope.magnitude = static_cast<float>(scaling.real_or("attention_factor", of_paper));
}

// Old files have rope_theta beside a rope_scaling, which may be null and names its kind "type". New
// ones have everything in rope_parameters and name the kind "rope_type".
RopeConfig read_scaling(const Section& scaling, double context, RopeConfig rope) {
  rope.theta = scaling.real_or("rope_theta", rope.theta);
  const std::string kind = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  const bool has_factors = scaling.find("short_factor") != nullptr;
  // Early files of Phi-3 name longrope "su", or "yarn" with its factors.
  if (kind == "longrope" || kind == "su" || (kind == "yarn" && has_factors)) {
    read_longrope(scaling, context, rope);
  } else if (kind == "linear") {
    rope.scaling = RopeConfig::Scaling::linear;
    rope.factor = scaling.real("factor");
  } else if (kind == "llama3") {
    rope.scaling = RopeConfig::Scaling::llama3;
    rope.factor = scaling.real("factor");
    rope.low_frequency_factor = scaling.real("low_freq_factor");
    rope.high_frequency_factor = scaling.real("high_freq_factor");
    rope.original_context = scaling.real("original_max_position_embeddings");
  } else if (kind == "yarn") {
    rope.scaling = RopeConfig::Scaling::yarn;
    rope.factor = scaling.real_or("factor", context / rope.original_context);
    const double beta_fast = scaling.real_or("beta_fast", 0);
    if (beta_fast != 0) rope.beta_fast = beta_fast;
    const double beta_slow = scaling.real_or("beta_slow", 0);
    if (beta_slow != 0) rope.beta_slow = beta_slow;
    rope.whole_bounds = scaling.flag_or("truncate", true);
    // Peng et al., equation 22; DeepSeek has two weights of its logarithm.
    const auto from_factor = [&](double weight) {
      return rope.factor > 1 ? 0.1 * weight * portable_log(rope.factor) + 1 : 1;
    };
    const double weight = scaling.real_or("mscale", 0);
    const double weight_of_all = scaling.real_or("mscale_all_dim", 0);
    const bool both = weight != 0 && weight_of_all != 0;
    rope.weight_of_all = weight_of_all;
    rope.attention_factor =
        scaling.real_or("attention_factor",
                        both ? from_factor(weight) / from_factor(weight_of_all) : from_factor(1));
  } else if (kind == "dynamic") {
    // Frequencies change only beyond max_position_embeddings (Hugging Face's "dynamic NTK"), and no
    // text here is longer.
    (void)scaling.real("factor");
  } else if (kind != "default") {
    scaling.fail("rope_type", "one of default, linear, llama3, yarn, longrope, dynamic", kind);
  }
  return rope;
}

// For a head of `width` elements. scaling: null if the file has none.
void read_proportional(const Section* scaling, const RopeKeys& keys, int width, RopeConfig& rope) {
  constexpr const char* kShare = "partial_rotary_factor";
  double share = keys.default_share;
  rope.scaling = RopeConfig::Scaling::proportional;
  if (scaling != nullptr) {
    const std::string kind = scaling->text_or("rope_type", "default");
    if (kind != "proportional") scaling->fail("rope_type", "proportional", kind);
    rope.theta = scaling->real_or("rope_theta", rope.theta);
    rope.factor = scaling->real_or("factor", 1);
    share = scaling->real_or(kShare, 1);
    if (!(share > 0 && share <= 1)) {
      scaling->fail(kShare, "above 0, at most 1", fmt::format("{}", share));
    }
  }
  rope.n_turning = static_cast<int>(share * width / 2);  // rounded as in transformers
}

// eos_token_id is an id or a list of ids.
std::vector<TokenId> read_end_tokens(const Section& section) {
  std::vector<TokenId> tokens;
  const Json* value = section.find("eos_token_id");
  if (value == nullptr) return tokens;
  if (!value->is_array()) return {section.whole("eos_token_id", *value)};
  for (const Json& entry : *value) tokens.push_back(section.whole("eos_token_id", entry));
  return tokens;
}

void require_known(const Section& section, const Json& json, const RopeKeys& keys) {
  static constexpr std::array kKnown = {"attention_factor",
                                        "beta_fast",
                                        "beta_slow",
                                        "mscale",
                                        "mscale_all_dim",
                                        "truncate",
                                        "rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "original_max_position_embeddings",
                                        "max_position_embeddings",
                                        "partial_rotary_factor",
                                        "short_factor",
                                        "long_factor"};
  for (const auto& [key, value] : json.items()) {
    if (!has_meaning(key, value) || std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) {
      continue;
    }
    if (keys.has_sections && (key == "mrope_section" || key == "mrope_interleaved")) continue;
    if (keys.query_beta.hugging_face != nullptr && key == keys.query_beta.hugging_face) continue;
    section.fail(key, "absent (this build does not know it)", Section::shown(value));
  }
}

}  // namespace

JsonConfig::JsonConfig(const std::filesystem::path& file) : JsonConfig(parse_config(file), file) {}

JsonConfig::JsonConfig(nlohmann::json json, std::filesystem::path file, bool is_text_part)
    : JsonConfig(std::move(json), file, FileFolder(file.parent_path()), is_text_part) {}

JsonConfig::JsonConfig(nlohmann::json json, FileFolder folder, bool is_text_part)
    : JsonConfig(std::move(json), folder.directory() / "config.json", folder, is_text_part) {}

JsonConfig::JsonConfig(nlohmann::json json, std::filesystem::path file, FileFolder beside,
                       bool is_text_part)
    : file_(std::move(file)),
      beside_(std::move(beside)),
      json_(std::move(json)),
      section_(json_, file_.string()),
      is_text_part_(is_text_part) {
  (void)read_quantisation(json_, file_);  // refuses other methods by name
}

const Json* JsonConfig::find(const ConfigKey& key) const {
  if (key.hugging_face == nullptr) return nullptr;
  asked_.insert(key.hugging_face);
  return section_.find(key.hugging_face);
}

std::optional<int> JsonConfig::whole(const ConfigKey& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return section_.whole(key.hugging_face, *value);
}

std::optional<double> JsonConfig::real(const ConfigKey& key) const {
  if (find(key) == nullptr) return std::nullopt;
  return section_.real(key.hugging_face);
}

std::optional<bool> JsonConfig::flag(const ConfigKey& key) const {
  if (find(key) == nullptr) return std::nullopt;
  return section_.flag_or(key.hugging_face, false);
}

std::optional<std::string> JsonConfig::text(const ConfigKey& key) const {
  if (find(key) == nullptr) return std::nullopt;
  return section_.text_or(key.hugging_face, "");
}

template <typename T, typename Read>
std::optional<std::vector<T>> JsonConfig::array_of(const ConfigKey& key, const char* expected,
                                                   const Read& read) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto refuse = [&] { fail(key, expected, Section::shown(*value)); };
  if (!value->is_array()) refuse();
  std::vector<T> all;
  for (const Json& entry : *value) {
    const std::optional<T> one = read(entry);
    if (!one) refuse();
    all.push_back(*one);
  }
  return all;
}

std::optional<std::vector<std::string>> JsonConfig::texts(const ConfigKey& key) const {
  return array_of<std::string>(key, "an array of strings", [](const Json& entry) {
    return entry.is_string() ? std::optional(entry.get<std::string>()) : std::nullopt;
  });
}

std::optional<std::vector<int>> JsonConfig::wholes(const ConfigKey& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) fail(key, "an array of integers", Section::shown(*value));
  std::vector<int> numbers;
  for (const Json& entry : *value) numbers.push_back(section_.whole(key.hugging_face, entry));
  return numbers;
}

std::optional<std::vector<int>> JsonConfig::of_layers(const ConfigKey& key, int n_layers) const {
  const std::optional<int> value = whole(key);
  if (!value) return std::nullopt;
  return std::vector<int>(static_cast<std::size_t>(n_layers), *value);
}

std::optional<std::vector<bool>> JsonConfig::flags(const ConfigKey& key) const {
  return array_of<bool>(key, "an array of true and false", [](const Json& entry) {
    return entry.is_boolean() ? std::optional(entry.get<bool>()) : std::nullopt;
  });
}

// JSON has no infinities: transformers 5 writes {"__float__": "Infinity"}, and parse_config()
// converts the bare word to that.
std::optional<std::vector<double>> JsonConfig::reals(const ConfigKey& key) const {
  return array_of<double>(
      key, "an array of numbers", [](const Json& entry) -> std::optional<double> {
        if (entry == Json{{"__float__", "Infinity"}})
          return std::numeric_limits<double>::infinity();
        return entry.is_number() ? std::optional(entry.get<double>()) : std::nullopt;
      });
}

bool JsonConfig::has(const ConfigKey& key) const {
  return key.hugging_face != nullptr && json_.contains(key.hugging_face);
}

void JsonConfig::fail(const ConfigKey& key, std::string_view expected, std::string_view got) const {
  section_.fail(key.hugging_face, expected, got);
}

int JsonConfig::vocabulary_size() const { return required_whole({"vocab_size", nullptr}); }

int JsonConfig::rotary_dim(const RopeKeys& keys, int head_dim) const {
  static constexpr const char* kShare = "partial_rotary_factor";
  double share = keys.default_share;
  const auto read = [&](const Section& section, const char* key) {
    share = section.real_or(key, share);
    const bool right = keys.share == nullptr ? share == 1 : share > 0 && share <= 1;
    if (!right) {
      section.fail(key, keys.share == nullptr ? "1" : "above 0, at most 1",
                   fmt::format("{}", share));
    }
  };
  // If a file has several spellings, the one in a RoPE section decides.
  if (find({keys.share, nullptr}) != nullptr) read(section_, keys.share);
  asked_.insert(kShare);
  read(section_, kShare);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    std::optional<Section> section = section_.section(name);
    if (section && keys.layer_type != nullptr && json_[name].contains(keys.layer_type)) {
      section = section->section(keys.layer_type);
    }
    if (section) read(*section, kShare);
  }
  const int rotated = static_cast<int>(head_dim * share);  // rounded as in transformers
  return rotated == head_dim ? 0 : std::max(rotated, 1);
}

RopeConfig JsonConfig::rope(const RopeKeys& keys, int rotated_dim) const {
  RopeConfig rope;
  rope.theta = real(keys.theta).value_or(keys.default_theta);
  asked_.insert({"rope_scaling", "rope_parameters"});
  // If a file has both spellings, the old one decides, as in Hugging Face's reader.
  std::optional<Section> scaling;
  if (keys.may_be_scaled) {
    scaling = section_.section("rope_scaling");
    if (scaling) require_known(*scaling, json_["rope_scaling"], keys);
  }
  if (auto parameters = section_.section("rope_parameters")) {
    const Json* json = &json_["rope_parameters"];
    // By kind of layer, if the file says so.
    if (keys.layer_type != nullptr && json->contains(keys.layer_type)) {
      parameters = parameters->section(keys.layer_type);
      json = &(*json)[keys.layer_type];
      if (!parameters) return rope;
    } else if (!keys.may_be_scaled) {
      return rope;
    }
    require_known(*parameters, *json, keys);
    rope.theta = parameters->real_or("rope_theta", rope.theta);
    if (!scaling) scaling = parameters;
  }
  if (keys.proportional) {
    read_proportional(scaling ? &*scaling : nullptr, keys, rotated_dim, rope);
    return rope;
  }
  const int context = required_whole({"max_position_embeddings", nullptr});
  // Phi-3's files have it beside the scaling, even without a scaling.
  constexpr ConfigKey kOriginal = {"original_max_position_embeddings", nullptr};
  rope.original_context = whole(kOriginal).value_or(context);
  if (!scaling) return rope;
  const double named = scaling->real_or("original_max_position_embeddings", rope.original_context);
  if (has(kOriginal) && named != rope.original_context) {
    scaling->fail("original_max_position_embeddings",
                  fmt::format("{}, as beside the section", rope.original_context),
                  fmt::format("{}", named));
  }
  rope.original_context = named;
  // Ministral 3's files repeat it.
  if (const double repeated = scaling->real_or("max_position_embeddings", context);
      repeated != context) {
    scaling->fail("max_position_embeddings", fmt::format("{}, as beside the section", context),
                  fmt::format("{}", repeated));
  }
  if (const char* const key = keys.query_beta.hugging_face) {
    rope.query_beta = scaling->real_or(key, 0);
  }
  return read_scaling(*scaling, context, rope);
}

bool JsonConfig::has_tied_head(bool otherwise) const {
  return flag({"tie_word_embeddings", nullptr}).value_or(otherwise);
}

bool JsonConfig::has_bias(const char* hugging_face_key, const char*) const {
  return flag({hugging_face_key, nullptr}).value_or(false);
}

// If both files name a start token, generation_config.json's counts, as in Hugging Face's
// generate(). A text ends at the end tokens of either file: one of them often lacks a chat's.
void JsonConfig::read_special_tokens(ModelConfig& config) const {
  if (is_text_part_) {
    config.warnings.push_back(
        fmt::format("{}: a model of text and images; its text part alone is here", file_.string()));
  }
  const auto is_token = [&config](const std::string& file, const char* key, TokenId token) {
    if (token >= 0 && token < config.vocabulary_size) return true;
    config.warnings.push_back(
        fmt::format("{}: {} is {}, outside the vocabulary of {} tokens; it is ignored", file, key,
                    token, config.vocabulary_size));
    return false;
  };
  const auto read = [&](const Section& section, const std::string& file) {
    if (section.find("bos_token_id") != nullptr) {
      const TokenId token = section.whole("bos_token_id");
      if (is_token(file, "bos_token_id", token)) config.bos_token = token;
    }
    for (const TokenId token : read_end_tokens(section)) {
      std::vector<TokenId>& ends = config.end_tokens;
      if (is_token(file, "eos_token_id", token) &&
          std::find(ends.begin(), ends.end(), token) == ends.end()) {
        ends.push_back(token);
      }
    }
  };
  read(section_, file_.string());
  config.mask_token = whole({"pard_token", nullptr});
  if (!beside_.has(kGenerationConfig)) return;
  const Json json = parse_config(beside_, kGenerationConfig);
  const std::string file = beside_.place(kGenerationConfig);
  read(Section(json, file), file);
}

std::optional<TokenId> JsonConfig::start_token() const {
  constexpr const char* kKey = "decoder_start_token_id";
  const std::optional<TokenId> own = whole({kKey, nullptr});
  if (!beside_.has(kGenerationConfig)) return own;
  const Json json = parse_config(beside_, kGenerationConfig);
  const Section section(json, beside_.place(kGenerationConfig));
  return section.find(kKey) == nullptr ? own : section.whole(kKey);
}

std::string JsonConfig::description() const { return file_.string(); }

void JsonConfig::refuse_unread() const {
  for (const auto& [key, value] : json_.items()) {
    if (asked_.contains(key) || !has_meaning(key, value)) continue;
    section_.fail(key,
                  "absent (this build does not know what it changes in a model of this family)",
                  Section::shown(value));
  }
}

}  // namespace outrider
