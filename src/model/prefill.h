// Running known tokens through a model for their keys and values.
#ifndef OUTRIDER_MODEL_PREFILL_H_
#define OUTRIDER_MODEL_PREFILL_H_

#include <span>

#include "model/language_model.h"

namespace outrider {

// Rows of one prefill pass: enough that the weights' bytes are read once for many rows, few enough
// that the activations of wide models stay within tens of megabytes.
inline constexpr int kPrefillRows = 256;

// Appends `tokens` to the kept tokens of a sequence without pending nodes, in passes of
// kPrefillRows. `output` is scratch; the last pass leaves its tokens' hidden states after
// `feature_layers` there.
void prefill(LanguageModel& model, Sequence& sequence, std::span<const TokenId> tokens,
             ForwardOutput& output, std::span<const int> feature_layers = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PREFILL_H_
