// The tokens that a head with an output matrix of its own can say.
#ifndef OUTRIDER_MODEL_HEADS_DRAFT_VOCABULARY_H_
#define OUTRIDER_MODEL_HEADS_DRAFT_VOCABULARY_H_

#include <string_view>
#include <vector>

#include "io/tensor_source.h"
#include "outrider/types.h"

namespace outrider {

// The target's id of each draft id: by the tensor "d2t", what to add to a draft id; without one,
// ids mean the same. n_tokens: the target's vocabulary size. Throws Error, of that operation, where
// the tensor is none.
std::vector<TokenId> read_draft_vocabulary(const TensorSource& source, int n_tokens,
                                           std::string_view operation);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_DRAFT_VOCABULARY_H_
