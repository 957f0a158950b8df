// SPDX-License-Identifier: Apache-2.0
// T5 (Raffel et al. 2020, arXiv 1910.10683), T5 v1.1 and Flan-T5: an encoder and a decoder of
// pre-norm layers without biases. Scores are not scaled. They get a bias by distance, in buckets,
// which all layers of a stack share. The first T5 ties its output matrix and scales that matrix's
// input by dim^-0.5. Its feed-forward layer is a ReLU's, v1.1's a gated GELU's.
#ifndef OUTRIDER_MODEL_FAMILIES_T5_H_
#define OUTRIDER_MODEL_FAMILIES_T5_H_

#include <memory>

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// How distances between a key and its query become buckets.
struct RelativeBuckets {
  int n = 32;              // even, at least 4
  int max_distance = 128;  // from there on all are in the last bucket; above n / 2
  bool both_sides = true;  // half of the buckets for each; false: keys never follow queries
};

// The bucket of a distance, which is above 0 for keys after the query.
int bucket_of(int distance, const RelativeBuckets& buckets);

class T5 final : public Family {
 public:
  explicit T5(const ConfigSource& source);
  std::vector<RopeTable> ropes() const override { return {}; }
  LogitForm logit_form() const override;
  DecoderNames names() const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;
  DecoderLayer load_encoder_layer(LayerLoader& from, int layer) const override;
  void compose_encoder(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  struct AttentionNames;
  struct MlpNames;
  Attention load_attention(LayerLoader& from, const AttentionNames& names) const;
  DecoderLayer load_self_attention(LayerLoader& from, int layer, bool is_encoder) const;
  std::shared_ptr<const PositionBias> load_position_bias(const LayerLoader& from,
                                                         bool both_sides) const;
  void load_mlp(LayerLoader& from, const MlpNames& names, DecoderLayer& layer) const;
  void add_mlp(PassBuilder& pass, const DecoderLayer& layer) const;

  bool is_gated_ = false;
  bool scales_output_ = false;
  RelativeBuckets buckets_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_T5_H_
