// A rank's part of a model's weights.
#ifndef OUTRIDER_MODEL_RANKS_SHARE_WEIGHTS_H_
#define OUTRIDER_MODEL_RANKS_SHARE_WEIGHTS_H_

#include "model/families/family.h"
#include "model/pass/blocks.h"
#include "model/ranks/column_split.h"

namespace outrider {

// Throws UsageError that says what stands against so many ranks: a model whose layers cannot be
// split (recurrent ones, latent attention, encoder-decoders, layers that read others' keys or have
// a second embedding), or one with fewer heads or experts than ranks.
void require_splittable(const Family& family, int n_ranks);

// Every matrix of the layer that is described alone (Matrix::in_file) becomes this rank's columns
// of it, packed: of query, key and value products whole heads, of experts whole experts, of others
// what split_columns says. Biases and what attention keeps for each head follow. In the loader's
// first walk, when matrices are empty, only checks. Throws UsageError where a product needs all
// heads of a row at once.
void share_layer(const RankShare& share, int n_threads, DecoderLayer& layer);

// The same of one product.
void share_columns(const RankShare& share, int n_threads, Linear& linear);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_SHARE_WEIGHTS_H_
