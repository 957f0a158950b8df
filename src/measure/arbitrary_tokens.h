// Texts of no meaning: what a pass costs does not depend on its tokens.
#ifndef OUTRIDER_MEASURE_ARBITRARY_TOKENS_H_
#define OUTRIDER_MEASURE_ARBITRARY_TOKENS_H_

#include <vector>

#include "outrider/types.h"

namespace outrider {

// n_tokens ids below vocabulary_size, always the same, spread over all of it: rows of the embedding
// come from all over the file, as those of a text do.
std::vector<TokenId> arbitrary_tokens(int n_tokens, int vocabulary_size);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_ARBITRARY_TOKENS_H_
