#include "model/load/decoder_weights.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

// Whether a weight that no layer reads is a multi-token prediction module's: those stand as layers
// behind the last, told by the product that joins state and token.
bool is_of_module(const TensorSource& source, std::string_view name, std::string_view layers,
                  bool gguf) {
  if (!name.starts_with(layers)) return name.starts_with("mtp.");
  const std::string_view layer = name.substr(0, name.find('.', layers.size()));
  return source.find(fmt::format("{}.{}eh_proj.weight", layer, gguf ? "nextn." : "")) != nullptr;
}

// The weights that nothing reads and that have no meaning elsewhere either: in multi-token
// prediction, as an output matrix that is the embedding, in GGUF's configuration.
std::vector<std::string> without_meaning(const TensorSource& source, const NamesInFile& names,
                                         std::vector<std::string> unread, bool tied, bool gguf) {
  const std::string head = fmt::format("{}.weight", names.head());
  const std::string layers = names.layers();
  std::erase_if(unread, [&](const std::string& name) {
    const bool is_of_rope = gguf && name.starts_with("rope_f");  // rope_freqs, rope_factors_long
    return (tied && name == head) || is_of_rope || is_of_module(source, name, layers, gguf);
  });
  return unread;
}

}  // namespace

bool has_tied_head(const TensorSource& source, const ModelConfig& config,
                   const NamesInFile& names) {
  if (!config.tied_head) return false;
  const TensorView* const own = source.find(fmt::format("{}.weight", names.head()));
  const TensorView* const tied = source.find(fmt::format("{}.weight", names.embedding()));
  if (own == nullptr || tied == nullptr) return true;
  return own->type == tied->type && own->data.size() == tied->data.size() &&
         std::memcmp(own->data.data(), tied->data.data(), own->data.size()) == 0;
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
    LayerLoader of_model(walk, "");
    read.layer_inputs = family.load_layer_inputs(of_model);
    for (int i = 0; i < config.n_layers; ++i) {
      const std::string prefix = fmt::format("{}{}.", layers, i);
      LayerLoader from(walk, prefix);
      read.layers.push_back(family.load_layer(from, i));
      walk.require_all_read_below(prefix);
    }
    read.final_norm = family.load_norm(LayerLoader(walk, ""), names.final_norm(), config.dim);
    read.head = walk.linear(head, config.vocabulary_size, config.dim, Bias::never).matrix;
    read.head_as_stored = stored(head, config.vocabulary_size);
    return read;
  });
  weights.all_f32 = loader.all_f32();
  weights.unread = without_meaning(source, names, loader.unread_below(""), tied, gguf);
  return weights;
}

}  // namespace outrider
