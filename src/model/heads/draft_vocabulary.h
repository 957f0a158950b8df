// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a head with its own output matrix.
#ifndef OUTRIDER_MODEL_HEADS_DRAFT_VOCABULARY_H_
#define OUTRIDER_MODEL_HEADS_DRAFT_VOCABULARY_H_

#include <string_view>
#include <vector>

#include "io/tensor_source.h"
#include "outrider/types.h"

namespace outrider {

// The target's id of each draft id. The tensor "d2t" holds what to add to a draft id; without it,
// ids are equal. n_tokens: the target's vocabulary size. Throws Error, of that operation, for an
// invalid tensor.
std::vector<TokenId> read_draft_vocabulary(const TensorSource& source, int n_tokens,
                                           std::string_view operation);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_DRAFT_VOCABULARY_H_
