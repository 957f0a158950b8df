// SPDX-License-Identifier: Apache-2.0
#include "model/heads/block_head_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

// Keys without effect: notes for training and servers, and sizes that the tensors have anyway.
constexpr std::string_view kWithoutMeaning[] = {
    "architectures",       "auto_map",    "draft_vocab_size",   "max_window_layers",
    "model_type",          "num_anchors", "speculators_config", "speculators_version",
    "tie_word_embeddings",
};

// Keys that Reader looks up at the top level, most of them first in dflash_config.
constexpr std::string_view kRead[] = {
    "aux_hidden_state_layer_ids",
    "block_size",
    "causal",
    "confidence_head_with_markov",
    "dflash_config",
    "enable_confidence_head",
    "has_embed_tokens",
    "has_lm_head",
    "is_causal",
    "is_neox_style",
    "layer_types",
    "markov_head_type",
    "markov_rank",
    "mask_token_id",
    "num_target_layers",
    "projector_type",
    "sample_from_anchor",
    "sliding_window",
    "sliding_window_non_causal",
    "speculators_model_type",
    "swa_window_size",
    "target_hidden_size",
    "target_layer_ids",
    "transformer_layer_config",
    "use_sliding_window",
    "use_swa",
};

// Keys of the decoder, or of the file, which are not looked up in dflash_config.
constexpr std::string_view kReadAtTop[] = {
    "dflash_config",          "layer_types",        "sliding_window",
    "speculators_model_type", "target_hidden_size", "transformer_layer_config",
    "use_sliding_window",
};

// Heads read three to eight hidden states. The bound keeps the input's width an int: widths are at
// most 2^20 (check_config).
constexpr std::size_t kMaxFeatures = 64;

template <class Keys>
bool is_among(const Keys& keys, std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool is_head_key(std::string_view key) {
  return is_among(kWithoutMeaning, key) || is_among(kRead, key);
}

class Reader {
 public:
  Reader(const std::filesystem::path& directory, const ModelConfig& target, BlockHeadKind kind)
      : kind_(kind),
        file_(directory / "config.json"),
        json_(parse_config(file_)),
        top_(json_, file_.string()),
        own_(top_.section("dflash_config")),
        target_(target) {}

  // Checks first what distinguishes these heads from other heads and models, so that the error
  // names the real problem.
  BlockHeadConfig read() const {
    BlockHeadConfig config;
    config.kind = kind_;
    config.n_slots = section_of("block_size").whole("block_size");
    if (config.n_slots < 2 || config.n_slots > kMaxBlockSlots) {
      section_of("block_size")
          .fail("block_size", fmt::format("2 to {}", kMaxBlockSlots),
                fmt::format("{}", config.n_slots));
    }
    config.markov = read_markov();
    config.layers = read_layers();
    require_target(config.layers);
    config.mask = read_mask();
    config.feature_layers = read_feature_layers(config.layers.n_layers);
    config.gives_next = flag("sample_from_anchor", is_dspark());
    config.attention = read_attention(config.layers.n_layers);
    config.own_matrices = is_of_speculators() || flag("has_embed_tokens", false);
    refuse_others(config.own_matrices);
    return config;
  }

 private:
  bool is_of_speculators() const { return top_.find("speculators_model_type") != nullptr; }
  bool is_dspark() const {
    if (kind_ == BlockHeadKind::dspark) return true;
    if (is_of_speculators()) return top_.text_or("speculators_model_type", "") == "dspark";
    if (section_of("projector_type").text_or("projector_type", "") == "dspark") return true;
    const Json* classes = top_.find("architectures");
    return classes != nullptr && classes->is_array() && !classes->empty() &&
           classes->front().is_string() &&
           classes->front().get<std::string>().find("DSpark") != std::string::npos;
  }
  const ConfigSection& section_of(const char* key) const {
    return own_ && own_->find(key) != nullptr ? *own_ : top_;
  }
  bool flag(const char* key, bool otherwise) const {
    return section_of(key).flag_or(key, otherwise);
  }
  // The decoder's keys: at the top level, or in a section of their own.
  Json decoder() const {
    if (!is_of_speculators()) return json_;
    const std::string kind = top_.text_or("speculators_model_type", "");
    if (kind != "dflash" && kind != "dspark") {
      top_.fail("speculators_model_type", "dflash or dspark", kind);
    }
    if (!top_.section("transformer_layer_config")) {
      top_.fail("transformer_layer_config", "there", "no such key");
    }
    Json all = json_;
    all.update(json_.at("transformer_layer_config"));
    return all;
  }

  // Refuses keys that belong to neither a decoder nor a head.
  ModelConfig read_layers() const {
    Json keys = decoder();
    Json kept = keys;
    for (const auto& [key, value] : keys.items()) {
      if (is_head_key(key)) kept.erase(key);
    }
    return read_head_config(std::move(kept), file_);
  }

  TokenId read_mask() const {
    const ConfigSection& section = section_of("mask_token_id");
    const int mask = section.whole("mask_token_id");
    if (mask < 0 || mask >= target_.vocabulary_size) {
      section.fail("mask_token_id",
                   fmt::format("a token of the target, 0 to {}", target_.vocabulary_size - 1),
                   fmt::format("{}", mask));
    }
    return mask;
  }

  // Numbered like streams (ForwardRequest).
  std::vector<int> read_feature_layers(int n_layers) const {
    const ConfigSection& of_streams = section_of("aux_hidden_state_layer_ids");
    if (const Json* streams = of_streams.find("aux_hidden_state_layer_ids")) {
      return read_layer_numbers(of_streams, "aux_hidden_state_layer_ids", 0, *streams);
    }
    const ConfigSection& section = section_of("target_layer_ids");
    if (const Json* layers = section.find("target_layer_ids")) {
      return read_layer_numbers(section, "target_layer_ids", 1, *layers);
    }
    std::vector<int> streams;
    for (int i = 0; i < n_layers; ++i) {
      const int layer =
          n_layers == 1
              ? target_.n_layers / 2
              : static_cast<int>(std::lrint(  // rounds halves to even, like Python's round
                    1 + static_cast<double>(i) * (target_.n_layers - 4) / (n_layers - 1)));
      streams.push_back(layer + 1);
    }
    check_streams(section, "target_layer_ids", streams);
    return streams;
  }

  std::vector<int> read_layer_numbers(const ConfigSection& section, const char* key, int first,
                                      const Json& stored) const {
    if (!stored.is_array() || stored.empty() || stored.size() > kMaxFeatures) {
      section.fail(key, fmt::format("1 to {} layers", kMaxFeatures), ConfigSection::shown(stored));
    }
    std::vector<int> streams;
    for (const Json& entry : stored) {
      // Clamped to one beyond the target's layers, which is refused below.
      streams.push_back(std::min(section.whole(key, entry), target_.n_layers) + first);
    }
    check_streams(section, key, streams);
    return streams;
  }

  // Our passes return the stream after the last layer normalised; such heads were trained on it
  // without the norm.
  void check_streams(const ConfigSection& section, const char* key,
                     const std::vector<int>& streams) const {
    for (const int stream : streams) {
      if (stream >= 0 && stream < target_.n_layers) continue;
      section.fail(key, fmt::format("layers of a target of {}, but the last one", target_.n_layers),
                   fmt::format("the {}th's output", stream));
    }
  }

  // Whether a block's rows read only those before them, if the file says so for all layers. Looks
  // first in the order of vLLM (its qwen3_dflash.py, _dflash_layer_causal), then in the other
  // places.
  std::optional<bool> causal() const {
    if (top_.find("is_causal") != nullptr) return top_.flag_or("is_causal", false);
    for (const char* key : {"causal", "is_causal"}) {
      if (section_of(key).find(key) != nullptr) return flag(key, false);
    }
    if (flag("sliding_window_non_causal", false)) return false;
    return std::nullopt;
  }

  // (n_layers): whether "layer_types" gives a layer a window; empty without that key.
  std::vector<bool> read_sliding(const ConfigSection& layers, int n_layers) const {
    const Json* types = layers.find("layer_types");
    if (types == nullptr) return {};
    if (!types->is_array() || types->size() != static_cast<std::size_t>(n_layers)) {
      layers.fail("layer_types", fmt::format("{} entries", n_layers), ConfigSection::shown(*types));
    }
    std::vector<bool> sliding;
    for (const Json& type : *types) {
      if (type != "sliding_attention" && type != "full_attention") {
        layers.fail("layer_types", "full_attention or sliding_attention",
                    ConfigSection::shown(type));
      }
      sliding.push_back(type == "sliding_attention");
    }
    return sliding;
  }

  int read_window(const ConfigSection& layers) const {
    const ConfigSection& of_window = section_of("swa_window_size");
    const bool has_own = of_window.find("swa_window_size") != nullptr;
    const ConfigSection& section = has_own ? of_window : layers;
    const char* key = has_own ? "swa_window_size" : "sliding_window";
    const int window = section.whole(key);
    if (window < 1) section.fail(key, "1 or more", fmt::format("{}", window));
    return window;
  }

  std::vector<BlockHeadConfig::Layer> read_attention(int n_layers) const {
    const Json keys = decoder();
    const ConfigSection layers(keys, file_.string());
    const std::vector<bool> types = read_sliding(layers, n_layers);
    const bool is_listed = std::find(types.begin(), types.end(), true) != types.end();
    // A window without listed layers applies to all layers and implies nothing about causality.
    const bool all_slide = flag("use_swa", false) && !is_listed;
    if (types.empty() && !all_slide && layers.find("sliding_window") != nullptr &&
        layers.flag_or("use_sliding_window", true)) {
      layers.fail("layer_types", "there, as there is a window", "no such key");
    }
    const std::optional<bool> said = causal();
    std::vector<BlockHeadConfig::Layer> attention(static_cast<std::size_t>(n_layers));
    for (std::size_t i = 0; i < attention.size(); ++i) {
      const bool listed = is_listed && types[i];
      if (all_slide || listed) attention[i].window = read_window(layers);
      attention[i].reads_whole_block = !said.value_or(listed);
    }
    return attention;
  }

  BlockHeadConfig::Markov read_markov() const {
    const ConfigSection& section = section_of("markov_rank");
    BlockHeadConfig::Markov markov;
    markov.rank = section.whole_or("markov_rank", 0);
    if (kind_ == BlockHeadKind::dflash) {
      if (markov.rank == 0) return markov;
      section.fail("markov_rank", "absent, or the head to be named dspark:PATH",
                   fmt::format("{}", markov.rank));
    }
    if (markov.rank < 1 || markov.rank > kMaxMarkovRank) {
      section.fail(
          "markov_rank",
          fmt::format("1 to {} (without one, the head is named dflash:PATH)", kMaxMarkovRank),
          section.find("markov_rank") == nullptr ? "no such key" : fmt::format("{}", markov.rank));
    }
    const ConfigSection& form_section = section_of("markov_head_type");
    const std::string form = form_section.text_or("markov_head_type", "vanilla");
    using Form = BlockHeadConfig::Markov::Form;
    if (form == "gated") {
      markov.form = Form::gated;
    } else if (form == "rnn") {
      markov.form = Form::recurrent;
    } else if (form != "vanilla") {
      form_section.fail("markov_head_type", "vanilla, gated or rnn", form);
    }
    markov.has_confidence = flag("enable_confidence_head", false);
    markov.confidence_reads_token = flag("confidence_head_with_markov", false);
    return markov;
  }

  // Checks that the head is for this target, as far as its file tells.
  void require_target(const ModelConfig& layers) const {
    const auto require = [](const ConfigSection& section, const char* key, int head, int target) {
      if (head == target) return;
      section.fail(key, fmt::format("the target's, {}", target), fmt::format("{}", head));
    };
    require(top_, "hidden_size", layers.dim, target_.dim);
    require(top_, "vocab_size", layers.vocabulary_size, target_.vocabulary_size);
    require(top_, "target_hidden_size", top_.whole_or("target_hidden_size", target_.dim),
            target_.dim);
    const ConfigSection& section = section_of("num_target_layers");
    require(section, "num_target_layers", section.whole_or("num_target_layers", target_.n_layers),
            target_.n_layers);
  }

  void refuse_others(bool own_matrices) const {
    if (!flag("is_neox_style", true)) {
      section_of("is_neox_style").fail("is_neox_style", "true or absent", "false");
    }
    const bool has_head = flag("has_lm_head", own_matrices);
    if (has_head != own_matrices) {
      section_of("has_lm_head")
          .fail("has_lm_head", fmt::format("as has_embed_tokens, {}", own_matrices),
                fmt::format("{}", has_head));
    }
    if (!own_) return;
    for (const auto& [key, value] : json_.at("dflash_config").items()) {
      const bool is_read = is_head_key(key) && !is_among(kReadAtTop, key);
      if (is_read || value.is_null() || value == false) continue;
      own_->fail(key, "absent (this build does not know what it changes in a head)",
                 ConfigSection::shown(value));
    }
  }

  BlockHeadKind kind_;
  std::filesystem::path file_;
  Json json_;
  ConfigSection top_;                 // refers to json_
  std::optional<ConfigSection> own_;  // refers to it as well
  const ModelConfig& target_;
};

}  // namespace

BlockHeadConfig read_block_head_config(const std::filesystem::path& directory,
                                       const ModelConfig& target, BlockHeadKind kind) {
  return Reader(directory, target, kind).read();
}

}  // namespace outrider
