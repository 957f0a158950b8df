// SPDX-License-Identifier: Apache-2.0
// Arbitrary tokens: the cost of a pass does not depend on them.
#ifndef OUTRIDER_MEASURE_ARBITRARY_TOKENS_H_
#define OUTRIDER_MEASURE_ARBITRARY_TOKENS_H_

#include <vector>

#include "outrider/types.h"

namespace outrider {

// n_tokens ids below vocabulary_size, always the same, spread over the whole vocabulary: as with
// real text, embedding rows come from all over the file.
std::vector<TokenId> arbitrary_tokens(int n_tokens, int vocabulary_size);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_ARBITRARY_TOKENS_H_
