#include "model/load/decoder_weights.h"

#include <fmt/format.h>

#include <cstring>

namespace outrider {
namespace {

constexpr TensorName kEmbedding = {"model.embed_tokens", "token_embd"};
constexpr TensorName kFinalNorm = {"model.norm", "output_norm"};
constexpr TensorName kHead = {"lm_head", "output"};

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
      LayerLoader from(walk, fmt::format(fmt::runtime(gguf ? "blk.{}." : "model.layers.{}."), i));
      read.layers.push_back(family.load_layer(from, i));
    }
    read.final_norm = family.load_norm(LayerLoader(walk, ""), kFinalNorm, config.dim);
    read.head = walk.linear(head, config.vocabulary_size, config.dim, Bias::never).matrix;
    read.head_as_stored = stored(head);
    return read;
  });
  weights.all_f32 = loader.all_f32();
  return weights;
}

}  // namespace outrider
