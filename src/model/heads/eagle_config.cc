// SPDX-License-Identifier: Apache-2.0
#include "model/heads/eagle_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_section.h"
#include "model/families/registry.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

// Keys of heads without effect: notes for training and servers, and sizes that the tensors have
// anyway.
constexpr std::string_view kWithoutMeaning[] = {
    "bias",  // EAGLE's fc has a bias if one is stored
    "draft_vocab_size",
    "eagle_version",
    "embed_requires_grad",
    "has_lm_head",
    "max_window_layers",  // of windows, which the decoder's keys switch on
    "next_layer_regular",
    "num_aux_hidden_states",
    "parallel_draft_heads_num_layers",
    "speculators_config",
    "speculators_version",
    "ttt_steps",
};

// Heads read three to five hidden states. The bound keeps the input's width an int: widths are at
// most 2^20 (check_config).
constexpr std::size_t kMaxFeatures = 64;

// The name of P-EAGLE in speculators' files.
constexpr std::string_view kParallelKind = "peagle";

// Keys that may name the mask token.
constexpr const char* kMaskKeys[] = {"ptd_token_id", "mask_token_id", "pard_token"};

// Keys that Reader looks up.
constexpr std::string_view kRead[] = {
    "aux_hidden_state_layer_ids",
    "eagle_aux_hidden_state_layer_ids",
    "eagle_config",
    "eagle_inputs",
    "fc_norm",
    "feature_layers",
    "mask_token_id",
    "norm_before_fc",
    "norm_before_residual",
    "norm_output",
    "parallel_draft_step",
    "parallel_drafting",
    "pard_token",
    "ptd_token_id",
    "speculators_model_type",
    "target_hidden_size",
    "target_layer_ids",
    "transformer_layer_config",
};

// Keys whose other values would mean another head.
struct Fixed {
  const char* key;
  bool value;
};
constexpr Fixed kFixed[] = {
    {"use_aux_hidden_state", true},
    {"use_input_layernorm_in_first_layer", true},
    {"use_last_layernorm", true},
    {"use_mtp_layernorm", false},
};

bool is_head_key(std::string_view key) {
  const auto is_among = [key](const auto& keys) {
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
  };
  return is_among(kWithoutMeaning) || is_among(kRead) ||
         std::any_of(std::begin(kFixed), std::end(kFixed),
                     [key](const Fixed& fixed) { return key == fixed.key; });
}

class Reader {
 public:
  Reader(const std::filesystem::path& directory, const ModelConfig& target)
      : file_(directory / "config.json"),
        json_(parse_config(file_)),
        top_(json_, file_.string()),
        eagle_(top_.section("eagle_config")),
        target_(target) {}

  EagleConfig read() const {
    EagleConfig config;
    config.layer = read_layer();
    read_inputs(config);
    config.feature_layers = read_feature_layers();
    config.norm_before_residual = flag("norm_before_residual", false);
    config.norm_before_fc = flag("norm_before_fc", false);
    config.norm_each_feature = flag("fc_norm", false);
    config.norm_output = flag("norm_output", false);
    config.mask_token = read_mask_token();
    refuse_other_heads();
    return config;
  }

 private:
  const ConfigSection& section_of(const char* key) const {
    return eagle_ && eagle_->find(key) != nullptr ? *eagle_ : top_;
  }
  bool flag(const char* key, bool otherwise) const {
    return section_of(key).flag_or(key, otherwise);
  }

  // The decoder's keys, which may be in a section of their own. Refuses keys that belong to neither
  // a decoder nor a head.
  ModelConfig read_layer() const {
    Json decoder = json_;
    for (const auto& [key, value] : json_.items()) {
      if (is_head_key(key)) decoder.erase(key);
    }
    if (top_.find("speculators_model_type") != nullptr) {
      const std::string kind = top_.text_or("speculators_model_type", "");
      if (kind != "eagle3" && kind != kParallelKind) {
        top_.fail("speculators_model_type", fmt::format("eagle3 or {}", kParallelKind), kind);
      }
      if (!top_.section("transformer_layer_config")) {
        top_.fail("transformer_layer_config", "there", "no such key");
      }
      decoder.update(json_.at("transformer_layer_config"));
    }
    return read_head_config(std::move(decoder), file_);
  }

  void read_inputs(EagleConfig& config) const {
    const std::string inputs = top_.text_or("eagle_inputs", "feature+shifted-token");
    if (inputs == "token") {
      config.reads_states = false;
    } else if (inputs == "feature") {
      config.reads_tokens = false;
    } else if (inputs != "feature+shifted-token") {
      top_.fail("eagle_inputs", "feature+shifted-token, token or feature", inputs);
    }
  }

  std::vector<int> read_feature_layers() const {
    // What a stored number l means: stream l (first = 0), or layer l, whose output is stream l + 1.
    struct Spelling {
      const ConfigSection* section;
      const char* key;
      int first;
    };
    std::vector<Spelling> spellings = {{&top_, "feature_layers", 0},
                                       {&top_, "eagle_aux_hidden_state_layer_ids", 0},
                                       {&top_, "aux_hidden_state_layer_ids", 0},
                                       {&top_, "target_layer_ids", 1}};
    if (eagle_) {
      spellings.push_back({&*eagle_, "eagle_aux_hidden_state_layer_ids", 1});
      spellings.push_back({&*eagle_, "target_layer_ids", 1});
    }
    for (const auto& [section, key, first] : spellings) {
      const Json* stored = section->find(key);
      if (stored == nullptr || (stored->is_array() && stored->empty())) continue;
      return read_layer_numbers(*section, key, first, *stored);
    }
    // If the target has fewer layers, load_eagle_head refuses heads that read them.
    const int n = target_.n_layers;
    return {2, n / 2, n - 3};
  }

  std::vector<int> read_layer_numbers(const ConfigSection& section, const char* key, int first,
                                      const Json& stored) const {
    // In our own files stream n is the input of the output matrix. In other programs' files it is
    // the stream after the last layer without the norm, which no pass returns.
    const bool ours = std::string_view(key) == "feature_layers";
    const int last = (ours ? target_.n_layers : target_.n_layers - 1) - first;
    const auto fail = [&](std::string_view got) {
      section.fail(key, fmt::format("layers 0 to {} of a target of {}", last, target_.n_layers),
                   got);
    };
    if (!stored.is_array()) fail(ConfigSection::shown(stored));
    if (stored.size() > kMaxFeatures) {
      section.fail(key, fmt::format("{} layers at most", kMaxFeatures),
                   fmt::format("{}", stored.size()));
    }
    std::vector<int> layers;
    for (const Json& entry : stored) {
      const int layer = section.whole(key, entry);
      if (layer < 0 || layer > last) fail(ConfigSection::shown(stored));
      layers.push_back(layer + first);
    }
    return layers;
  }

  // Whether the file names P-EAGLE, besides a mask token.
  bool is_parallel() const {
    return flag("parallel_drafting", false) ||
           top_.text_or("speculators_model_type", "") == kParallelKind;
  }

  std::optional<TokenId> read_mask_token() const {
    std::optional<TokenId> mask;
    for (const char* const key : kMaskKeys) {
      const ConfigSection& section = section_of(key);
      if (section.find(key) == nullptr) continue;
      const TokenId token = section.whole(key);
      const int n_tokens = target_.vocabulary_size;
      if (token < 0 || token >= n_tokens) {
        section.fail(key, fmt::format("a token of the target, 0 to {}", n_tokens - 1),
                     fmt::format("{}", token));
      }
      if (mask && *mask != token) {
        section.fail(key, fmt::format("{}, as another key names the mask token", *mask),
                     fmt::format("{}", token));
      }
      mask = token;
    }
    if (!mask && is_parallel()) {
      section_of(kMaskKeys[0])
          .fail(kMaskKeys[0], "there (or mask_token_id or pard_token)", "no such key");
    }
    if (mask && !flag("parallel_drafting", true)) {
      section_of("parallel_drafting")
          .fail("parallel_drafting", "true beside a mask token", "false");
    }
    return mask;
  }

  void refuse_other_heads() const {
    for (const Fixed& fixed : kFixed) {
      if (flag(fixed.key, fixed.value) == fixed.value) continue;
      section_of(fixed.key).fail(fixed.key, fixed.value ? "true" : "false",
                                 fixed.value ? "false" : "true");
    }
    const auto fixed_number = [this](const char* key, int wanted) {
      const int got = section_of(key).whole_or(key, wanted);
      if (got != wanted) section_of(key).fail(key, std::to_string(wanted), std::to_string(got));
    };
    fixed_number("parallel_draft_step", 1);
    fixed_number("target_hidden_size", target_.dim);
    if (!eagle_) return;
    for (const auto& [key, value] : json_.at("eagle_config").items()) {
      if (is_head_key(key) || value.is_null() || value == false) continue;
      eagle_->fail(key, "absent (this build does not know what it changes in a head)",
                   ConfigSection::shown(value));
    }
  }

  std::filesystem::path file_;
  Json json_;
  ConfigSection top_;                   // refers to json_
  std::optional<ConfigSection> eagle_;  // refers to json_ as well
  const ModelConfig& target_;
};

}  // namespace

EagleConfig read_eagle_config(const std::filesystem::path& directory, const ModelConfig& target) {
  return Reader(directory, target).read();
}

}  // namespace outrider
