// SPDX-License-Identifier: Apache-2.0
// A second Llama forward pass, as simple as possible and without code of the product: no cache, no
// packing, no blocks. Real is the type of all arithmetic.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_REFERENCE_LLAMA_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_REFERENCE_LLAMA_H_

#include <vector>

#include "outrider/types.h"
#include "tests/support/models/tiny_model.h"

namespace outrider::test {

// (n_tokens, vocabulary_size). Instantiated for float and double.
template <typename Real>
std::vector<std::vector<Real>> reference_logits(const TinyModel& model,
                                                const std::vector<TokenId>& tokens);

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_REFERENCE_LLAMA_H_
