// SPDX-License-Identifier: Apache-2.0
#include "outrider/sampling_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/files/hub_cache.h"
#include "base/files/mapped_file.h"
#include "io/gguf/gguf.h"
#include "model/config_section.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read sampling defaults";

// A setting that changes sampling, and its neutral value.
struct Neutral {
  const char* key;
  double value;
};
constexpr Neutral kUnusedByName[] = {
    {"typical_p", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"top_h", 1},
    {"no_repeat_ngram_size", 0},
    {"encoder_repetition_penalty", 1},
    {"penalty_alpha", 0},
    {"num_beams", 1},
    {"num_beam_groups", 1},
    {"guidance_scale", 1},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"diversity_penalty", 0},
};
constexpr Neutral kUnusedOfGguf[] = {
    {"general.sampling.mirostat", 0},
    {"general.sampling.xtc_probability", 0},
};
// Lists of tokens that a text must, or must not, contain.
constexpr const char* kUnusedLists[] = {"bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
                                        "forced_bos_token_id", "sequence_bias"};

class Checked {
 public:
  Checked(std::string file, SamplingDefaults& defaults)
      : file_(std::move(file)), defaults_(defaults) {}

  void temperature(const std::string& key, double value) {
    require(key, value, value >= 0, "0 or more");
    defaults_.temperature = value;
  }
  void top_k(const std::string& key, double value) {
    // Both kinds of file also write -1 for all tokens.
    require(key, value, value >= -1 && value <= 1 << 24 && value == static_cast<int>(value),
            "a whole number from -1 on");
    defaults_.top_k = std::max(static_cast<int>(value), 0);
  }
  void top_p(const std::string& key, double value) {
    require(key, value, value > 0 && value <= 1, "above 0, at most 1");
    defaults_.top_p = value;
  }
  void min_p(const std::string& key, double value) {
    require(key, value, value >= 0 && value <= 1, "0 to 1");
    defaults_.min_p = value;
  }
  void repetition_penalty(const std::string& key, double value) {
    require(key, value, value > 0, "above 0");
    defaults_.repetition_penalty = value;
  }
  void presence_penalty(const std::string& key, double value) {
    require(key, value, true, "");
    defaults_.presence_penalty = value;
  }
  void frequency_penalty(const std::string& key, double value) {
    require(key, value, true, "");
    defaults_.frequency_penalty = value;
  }

 private:
  void require(const std::string& key, double value, bool good, const char* expected) const {
    if (good && value - value == 0) return;  // the value is finite
    throw Error(kOperation, file_, fmt::format("{} {}", key, expected), fmt::format("{}", value));
  }

  std::string file_;
  SamplingDefaults& defaults_;
};

using Setter = void (Checked::*)(const std::string& key, double value);
struct Setting {
  const char* json;
  const char* gguf;
  Setter set;
};
constexpr Setting kSettings[] = {
    {"temperature", "general.sampling.temp", &Checked::temperature},
    {"top_k", "general.sampling.top_k", &Checked::top_k},
    {"top_p", "general.sampling.top_p", &Checked::top_p},
    {"min_p", "general.sampling.min_p", &Checked::min_p},
    {"repetition_penalty", "general.sampling.penalty_repeat", &Checked::repetition_penalty},
    {"presence_penalty", nullptr, &Checked::presence_penalty},
    {"frequency_penalty", nullptr, &Checked::frequency_penalty},
};

SamplingDefaults read_json(const std::filesystem::path& file) {
  SamplingDefaults defaults;
  const nlohmann::json json = parse_config(file);
  const ConfigSection section(json, file.string());
  Checked checked(file.string(), defaults);
  for (const Setting& setting : kSettings) {
    if (section.find(setting.json) != nullptr) {
      (checked.*setting.set)(setting.json, section.real(setting.json));
    }
  }
  if (!section.flag_or("do_sample", false)) {
    defaults.temperature = 0;
  } else if (!defaults.temperature) {
    defaults.temperature = 1;
  }
  for (const Neutral& unused : kUnusedByName) {
    if (section.find(unused.key) == nullptr) continue;
    const double value = section.real(unused.key);
    if (value != unused.value) defaults.unused.push_back(fmt::format("{} {}", unused.key, value));
  }
  for (const char* key : kUnusedLists) {
    const nlohmann::json* list = section.find(key);
    if (list != nullptr && !list->empty()) defaults.unused.emplace_back(key);
  }
  return defaults;
}

SamplingDefaults read_gguf(const std::filesystem::path& path) {
  SamplingDefaults defaults;
  const std::unique_ptr<GgufFile> file = open_gguf(path);
  Checked checked(path.string(), defaults);
  for (const Setting& setting : kSettings) {
    if (setting.gguf == nullptr) continue;
    if (const std::optional<double> value = file->real(setting.gguf)) {
      (checked.*setting.set)(setting.gguf, *value);
    }
  }
  constexpr const char* kOrder = "general.sampling.sequence";
  if (file->find_metadata(kOrder) != nullptr) defaults.unused.emplace_back(kOrder);
  for (const Neutral& unused : kUnusedOfGguf) {
    const std::optional<double> value = file->real(unused.key);
    if (value && *value != unused.value) {
      defaults.unused.push_back(fmt::format("{} {}", unused.key, *value));
    }
  }
  // Here the penalty covers the whole text, -1. llama.cpp uses the last 64 tokens if a file names
  // none.
  constexpr const char* kLast = "general.sampling.penalty_last_n";
  const bool has_penalty = defaults.repetition_penalty.value_or(1) != 1;
  const std::optional<double> last = file->real(kLast);
  if ((last && *last != -1) || (!last && has_penalty)) {
    defaults.unused.push_back(fmt::format("{} {}", kLast, last.value_or(64)));
  }
  return defaults;
}

}  // namespace

SamplingDefaults read_sampling_defaults(const std::filesystem::path& given) {
  const std::filesystem::path path = without_hub_cache(given);
  if (!std::filesystem::is_directory(path)) return read_gguf(path);
  const std::filesystem::path file = path / "generation_config.json";
  return is_named(file) ? read_json(file) : SamplingDefaults{};
}

SamplingParams with_defaults(SamplingParams params, const SamplingDefaults& defaults) {
  params.temperature = defaults.temperature.value_or(params.temperature);
  params.top_k = defaults.top_k.value_or(params.top_k);
  params.top_p = defaults.top_p.value_or(params.top_p);
  params.min_p = defaults.min_p.value_or(params.min_p);
  params.repetition_penalty = defaults.repetition_penalty.value_or(params.repetition_penalty);
  params.presence_penalty = defaults.presence_penalty.value_or(params.presence_penalty);
  params.frequency_penalty = defaults.frequency_penalty.value_or(params.frequency_penalty);
  return params;
}

}  // namespace outrider
