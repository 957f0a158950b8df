// SPDX-License-Identifier: Apache-2.0
// A rank's part of a model's weights.
#ifndef OUTRIDER_MODEL_RANKS_SHARE_WEIGHTS_H_
#define OUTRIDER_MODEL_RANKS_SHARE_WEIGHTS_H_

#include "model/families/family.h"
#include "model/pass/blocks.h"
#include "model/ranks/column_split.h"

namespace outrider {

// Throws UsageError, with the reason, if the model cannot be split over n_ranks ranks. It may have
// fewer heads or experts than ranks, or layers that cannot be split: recurrent ones, latent
// attention, encoder-decoders, layers that read others' keys or have a second embedding.
void require_splittable(const Family& family, int n_ranks);

// Replaces every unpacked matrix of the layer (Matrix::in_file) by this rank's packed columns:
// whole heads of query, key and value products, whole experts, and for other matrices the columns
// of split_columns. Biases and per-head data of attention follow. In the loader's first walk, when
// matrices are empty, it only checks. Throws UsageError if a product needs all heads of a row at
// once.
void share_layer(const RankShare& share, int n_threads, DecoderLayer& layer);

// The same for one product.
void share_columns(const RankShare& share, int n_threads, Linear& linear);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_SHARE_WEIGHTS_H_
