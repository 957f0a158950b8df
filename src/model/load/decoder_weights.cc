// SPDX-License-Identifier: Apache-2.0
#include "model/load/decoder_weights.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "model/ranks/share_weights.h"

namespace outrider {
namespace {

// Whether an unused weight belongs to a multi-token prediction module. Modules are layers after the
// last one, recognised by the product that joins state and token.
bool is_of_module(const TensorSource& source, std::string_view name, std::string_view layers,
                  bool gguf) {
  if (!name.starts_with(layers)) return name.starts_with("mtp.");
  const std::string_view layer = name.substr(0, name.find('.', layers.size()));
  return source.find(fmt::format("{}.{}eh_proj.weight", layer, gguf ? "nextn." : "")) != nullptr;
}

bool is_copy(const TensorView& left, const TensorView& right) {
  return left.type == right.type && left.data.size() == right.data.size() &&
         std::memcmp(left.data.data(), right.data.data(), left.data.size()) == 0;
}

// T5's files may hold a copy of the embedding for each stack.
bool is_embedding_again(const TensorSource& source, const NamesInFile& names,
                        std::string_view name) {
  if (name != "encoder.embed_tokens.weight" && name != "decoder.embed_tokens.weight") return false;
  const TensorView* const embedding = source.find(fmt::format("{}.weight", names.embedding()));
  return embedding != nullptr && is_copy(*source.find(std::string(name)), *embedding);
}

// Drops names of weights that are unused for a known reason: modules, an output matrix that is the
// embedding, and GGUF's RoPE factors. The rest are unknown.
std::vector<std::string> without_meaning(const TensorSource& source, const NamesInFile& names,
                                         std::vector<std::string> unread, bool tied, bool gguf) {
  const std::string head = fmt::format("{}.weight", names.head());
  const std::string layers = names.layers();
  std::erase_if(unread, [&](const std::string& name) {
    const bool is_of_rope = gguf && name.starts_with("rope_f");  // rope_freqs, rope_factors_long
    return (tied && name == head) || is_of_rope || is_of_module(source, name, layers, gguf) ||
           is_embedding_again(source, names, name);
  });
  return unread;
}

// Releases the tensors from which a rank's part was packed; otherwise the model would be in memory
// twice.
void release_below(const TensorSource& source, const std::string& prefix) {
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.name.starts_with(prefix)) source.release(tensor);
  }
}

}  // namespace

bool has_tied_head(const TensorSource& source, const ModelConfig& config,
                   const NamesInFile& names) {
  if (!config.tied_head) return false;
  const TensorView* const own = source.find(fmt::format("{}.weight", names.head()));
  const TensorView* const tied = source.find(fmt::format("{}.weight", names.embedding()));
  return own == nullptr || tied == nullptr || is_copy(*own, *tied);
}

bool has_tied_head(const TensorSource& source, const ModelConfig& config) {
  return has_tied_head(source, config, NamesInFile(source, {}, false));
}

DecoderWeights load_decoder_weights(const TensorSource& source, const Family& family,
                                    const WeightOptions& options) {
  const ModelConfig& config = family.config();
  WeightLoader loader(source, options);
  const bool gguf = options.names == NamingScheme::gguf;
  const NamesInFile names(source, family.names(), gguf);
  const bool tied = has_tied_head(source, config, names);
  const std::string head = tied ? names.embedding() : names.head();
  const std::string layers = names.layers();
  DecoderWeights weights = loader.run([&](WeightLoader& walk) {
    const auto stored = [&](const std::string& name, int n_rows) {
      return walk.tensor(fmt::format("{}.weight", name), {n_rows, config.dim});
    };
    DecoderWeights read;
    read.embedding = stored(names.embedding(), config.vocabulary_size);
    if (names.has_positions()) read.positions = stored(names.positions(), config.context_length);
    LayerLoader outside(walk, "");
    read.layer_inputs = family.load_layer_inputs(outside);
    const auto add_layer = [&](const std::string& before, std::vector<DecoderLayer>& stack,
                               const auto& load_layer) {
      const auto i = static_cast<int>(stack.size());
      const std::string prefix = fmt::format("{}{}.", before, i);
      LayerLoader from(walk, prefix);
      stack.push_back(load_layer(from, i));
      walk.require_all_read_below(prefix);
      if (options.share) {
        share_layer(*options.share, options.n_threads, stack.back());
        release_below(source, prefix);
      }
      // If the first layer has a bias, it serves the whole stack.
      stack.back().attention.position_bias = stack.front().attention.position_bias;
    };
    for (int i = 0; i < config.n_encoder_layers; ++i) {
      add_layer(names.encoder_layers(), read.encoder_layers, [&](LayerLoader& from, int layer) {
        return family.load_encoder_layer(from, layer);
      });
    }
    for (int i = 0; i < config.n_layers; ++i) {
      add_layer(layers, read.layers,
                [&](LayerLoader& from, int layer) { return family.load_layer(from, layer); });
    }
    if (config.has_encoder()) {
      read.encoder_norm = family.load_norm(outside, names.encoder_norm(), config.dim);
    }
    read.final_norm = family.load_norm(outside, names.final_norm(), config.dim);
    Linear output = walk.linear(head, config.vocabulary_size, config.dim, Bias::never);
    read.head_as_stored = stored(head, config.vocabulary_size);
    if (options.share) {
      share_columns(*options.share, options.n_threads, output);
      source.release(read.head_as_stored);
    }
    read.head = std::move(output.matrix);
    read.head_parts = std::move(output.parts);
    return read;
  });
  weights.all_f32 = loader.all_f32();
  weights.unread = without_meaning(source, names, loader.unread_below(""), tied, gguf);
  return weights;
}

}  // namespace outrider
