// SPDX-License-Identifier: Apache-2.0
// Prefill: runs known tokens through a model for their keys and values.
#ifndef OUTRIDER_MODEL_PREFILL_H_
#define OUTRIDER_MODEL_PREFILL_H_

#include <span>

#include "model/language_model.h"

namespace outrider {

// Rows of one prefill pass: enough that weights are read once for many rows, and few enough that
// the activations of wide models take at most tens of megabytes.
inline constexpr int kPrefillRows = 256;

// Appends `tokens` to the kept tokens of a sequence without pending nodes, in passes of
// kPrefillRows. `output` is working memory; after the call it holds the last pass's hidden states
// of `feature_layers`.
void prefill(LanguageModel& model, Sequence& sequence, std::span<const TokenId> tokens,
             ForwardOutput& output, std::span<const int> feature_layers = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PREFILL_H_
