// Gemma 3, text (Gemma Team 2025, arXiv 2503.19786): norms before and behind each branch, norms of
// query and key heads, GELU, scaled embeddings, and five layers with a sliding window and a RoPE
// base of their own to each that reads all tokens.
#ifndef OUTRIDER_MODEL_FAMILIES_GEMMA3_H_
#define OUTRIDER_MODEL_FAMILIES_GEMMA3_H_

#include <vector>

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

class Gemma3 final : public Family {
 public:
  explicit Gemma3(const ConfigSource& source);
  std::vector<RopeTable> ropes() const override;
  float embedding_scale() const override;
  Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  enum Rope { kGlobal, kLocal };

  RopeConfig local_rope_;     // of layers with a window
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
  double query_scalar_;       // scores are divided by its square root
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GEMMA3_H_
