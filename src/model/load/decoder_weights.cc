#include "model/load/decoder_weights.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

constexpr TensorName kEmbedding = {"model.embed_tokens", "token_embd"};
constexpr TensorName kFinalNorm = {"model.norm", "output_norm"};
constexpr TensorName kHead = {"lm_head", "output"};

// Whether a weight that no layer reads is a multi-token prediction module's: those stand as layers
// behind the last, told by the product that joins state and token.
bool is_of_module(const TensorSource& source, std::string_view name, bool gguf) {
  const std::string_view layers = gguf ? "blk." : "model.layers.";
  if (!name.starts_with(layers)) return name.starts_with("mtp.");
  const std::string_view layer = name.substr(0, name.find('.', layers.size()));
  return source.find(fmt::format("{}.{}eh_proj.weight", layer, gguf ? "nextn." : "")) != nullptr;
}

// The weights that nothing reads and that have no meaning elsewhere either: in multi-token
// prediction, as an output matrix that is the embedding, in GGUF's configuration.
std::vector<std::string> without_meaning(const TensorSource& source,
                                         std::vector<std::string> unread, bool tied, bool gguf) {
  const std::string head = fmt::format("{}.weight", gguf ? kHead.gguf : kHead.hugging_face);
  std::erase_if(unread, [&](const std::string& name) {
    const bool is_of_rope = gguf && name.starts_with("rope_f");  // rope_freqs, rope_factors_long
    return (tied && name == head) || is_of_rope || is_of_module(source, name, gguf);
  });
  return unread;
}

}  // namespace

bool has_tied_head(const TensorSource& source, const ModelConfig& config, NamingScheme names) {
  if (!config.tied_head) return false;
  const auto find = [&](const TensorName& name) {
    return source.find(
        fmt::format("{}.weight", names == NamingScheme::gguf ? name.gguf : name.hugging_face));
  };
  const TensorView* const own = find(kHead);
  const TensorView* const tied = find(kEmbedding);
  if (own == nullptr || tied == nullptr) return true;
  return own->type == tied->type && own->data.size() == tied->data.size() &&
         std::memcmp(own->data.data(), tied->data.data(), own->data.size()) == 0;
}

DecoderWeights load_decoder_weights(const TensorSource& source, const Family& family,
                                    const WeightOptions& options) {
  const ModelConfig& config = family.config();
  WeightLoader loader(source, options);
  const bool gguf = options.names == NamingScheme::gguf;
  const auto name_of = [gguf](const TensorName& name) {
    return gguf ? name.gguf : name.hugging_face;
  };
  const bool tied = has_tied_head(source, config, options.names);
  const char* const head = name_of(tied ? kEmbedding : kHead);
  DecoderWeights weights = loader.run([&](WeightLoader& walk) {
    const auto stored = [&](const char* name) {
      return walk.tensor(fmt::format("{}.weight", name), {config.vocabulary_size, config.dim});
    };
    DecoderWeights read;
    read.embedding = stored(name_of(kEmbedding));
    for (int i = 0; i < config.n_layers; ++i) {
      const std::string prefix =
          fmt::format(fmt::runtime(gguf ? "blk.{}." : "model.layers.{}."), i);
      LayerLoader from(walk, prefix);
      read.layers.push_back(family.load_layer(from, i));
      walk.require_all_read_below(prefix);
    }
    read.final_norm = family.load_norm(LayerLoader(walk, ""), kFinalNorm, config.dim);
    read.head = walk.linear(head, config.vocabulary_size, config.dim, Bias::never).matrix;
    read.head_as_stored = stored(head);
    return read;
  });
  weights.all_f32 = loader.all_f32();
  weights.unread = without_meaning(source, loader.unread_below(""), tied, gguf);
  return weights;
}

}  // namespace outrider
