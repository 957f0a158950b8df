// SPDX-License-Identifier: Apache-2.0
#include "engine/files/model_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/batch/end_tokens.h"
#include "io/gguf/gguf.h"
#include "model/config.h"
#include "model/families/registry.h"
#include "model/heads/mtp_modules.h"
#include "model/load/expert_loader.h"
#include "model/load/names_in_file.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Facts = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<const Family> read_family_of(const fs::path& path) {
  return fs::is_directory(path) ? read_family(path) : read_family(*open_gguf(path));
}

// A text's memory besides the KV cache of its other layers.
void add_states(const Family& family, Facts& facts) {
  const RecurrentLayers layers = family.recurrent_layers();
  if (layers.n == 0) return;
  const auto bytes_of = [&](int width) {
    return static_cast<std::int64_t>(layers.n) * width * static_cast<std::int64_t>(sizeof(float));
  };
  facts.emplace_back(
      "recurrent layers",
      fmt::format("{}; a state of {} bytes a text, {} bytes a token of a pass", layers.n,
                  bytes_of(layers.shape.state_width), bytes_of(layers.shape.input_width)));
}

void add_shape(const ModelConfig& config, Facts& facts) {
  facts.emplace_back("family", config.architecture);
  if (config.latent_dim > 0) {
    facts.emplace_back("latent attention",
                       fmt::format("heads share a key of {} and {} elements a token",
                                   config.latent_dim, config.rotated_dim()));
  }
  facts.emplace_back("layers",
                     fmt::format("{} of width {}; {} heads of {}, {} of keys and values; {} hidden",
                                 config.n_layers, config.dim, config.n_heads, config.head_dim,
                                 config.n_kv_heads, config.hidden_dim));
  if (config.has_encoder()) {
    facts.emplace_back("encoder", fmt::format("{} layers of the same form; a text begins with {}",
                                              config.n_encoder_layers, config.start_token));
  }
  facts.emplace_back("context", fmt::format("{} tokens", config.context_length));
  facts.emplace_back("vocabulary", fmt::format("{} tokens", config.vocabulary_size));
}

// The number of experts, and the file's bytes that a token needs. All experts have the same size.
void add_experts(const Family& family, const TensorSource& source, Facts& facts) {
  const ModelConfig& config = family.config();
  if (config.n_experts == 0) return;
  const bool is_gguf = source.find("token_embd.weight") != nullptr;
  const std::string embedding =
      fmt::format("{}.weight", NamesInFile(source, family.names(), is_gguf).embedding());
  facts.emplace_back(
      "experts", fmt::format("{} in {} of the layers, {} hidden; a token uses {}", config.n_experts,
                             config.n_expert_layers, config.expert_dim, config.n_experts_used));
  double n_bytes = 0;
  double n_read = 0;
  for (const TensorView& tensor : source.tensors()) {
    const auto size = static_cast<double>(tensor.data.size());
    n_bytes += size;
    // One row of an embedding that is not the output matrix.
    if (tensor.name == embedding && !config.tied_head) continue;
    n_read += is_of_expert(tensor.name) ? size * config.n_experts_used / config.n_experts : size;
  }
  facts.emplace_back("a token reads",
                     fmt::format("{:.1f} of {:.1f} MB of weights", n_read / 1e6, n_bytes / 1e6));
}

// Bytes and elements of each type, the largest share first.
void add_weights(const TensorSource& source, Facts& facts) {
  struct Share {
    std::int64_t n_elements = 0;
    std::uint64_t n_bytes = 0;
  };
  std::map<std::string, Share> by_type;
  for (const TensorView& tensor : source.tensors()) {
    Share& share = by_type[tensor.type_name()];
    share.n_elements += tensor.n_elements();
    share.n_bytes += tensor.data.size();
  }
  std::vector<std::pair<std::string, Share>> shares(by_type.begin(), by_type.end());
  std::sort(shares.begin(), shares.end(), [](const auto& left, const auto& right) {
    return left.second.n_bytes > right.second.n_bytes;
  });
  std::string text;
  for (const auto& [type, share] : shares) {
    text += fmt::format("{}{} {:.1f} MB ({:.1f} million)", text.empty() ? "" : ", ", type,
                        static_cast<double>(share.n_bytes) / 1e6,
                        static_cast<double>(share.n_elements) / 1e6);
  }
  if (!text.empty()) facts.emplace_back("weights", text);
}

void add_text(const Tokenizer& tokenizer, const ModelConfig& config, Facts& facts) {
  const std::string& chat = tokenizer.chat_template();
  facts.emplace_back("chat template", chat.empty() ? "none" : fmt::format("{} bytes", chat.size()));
  std::string ends;
  for (const TokenId token : find_end_tokens(config.end_tokens, tokenizer)) {
    ends += fmt::format("{}{} ({})", ends.empty() ? "" : ", ",
                        tokenizer.has(token) ? tokenizer.piece(token) : "?", token);
  }
  facts.emplace_back("a text ends at", ends.empty() ? "nothing that the files name" : ends);
}

}  // namespace

Facts model_facts(const fs::path& path, const TensorSource& tensors) {
  Facts facts;
  std::unique_ptr<const Family> family;
  try {
    family = read_family_of(path);
    add_shape(family->config(), facts);
    add_experts(*family, tensors, facts);
    add_states(*family, facts);
  } catch (const Error&) {
  }
  add_weights(tensors, facts);
  if (family == nullptr) return facts;
  const ModelConfig* const config = &family->config();
  try {
    add_text(*Tokenizer::load(path), *config, facts);
  } catch (const Error&) {
  }
  // Drafters without other files: those for any model, then those of this one.
  std::string drafters = "suffix, ngram, lookahead, recycling, jacobi";
  if (config->n_layers > 1) {
    drafters += fmt::format(", layerskip:layers=N (1 to {})", config->n_layers - 1);
  }
  // Modules that `outrider train` wrote; the directory may be of any family.
  const bool has_modules = family->module_names() || fs::is_directory(path);
  if (const int n = count_mtp_modules(tensors); n > 0 && has_modules) {
    drafters += fmt::format(", mtp ({} module{})", n, n == 1 ? "" : "s");
  }
  facts.emplace_back("drafters without files", drafters);
  return facts;
}

}  // namespace outrider
