// SPDX-License-Identifier: Apache-2.0
// How many texts an encoder-decoder answers in one batch. Pure functions.
#ifndef OUTRIDER_TRAIN_BATCHES_ANSWER_BATCHES_H_
#define OUTRIDER_TRAIN_BATCHES_ANSWER_BATCHES_H_

#include <cstddef>
#include <span>

namespace outrider::train {

// The most tokens that an input text may have. A layer's attention scores of such a text, one f32
// for each pair of tokens and each head, take 256 MiB.
std::size_t longest_answered(int n_heads);

// Returns how many of the remaining texts make the next batch, from the first on: 1 .. 64. The
// scores of the batch, padded to its longest text, take at most 256 MiB. lengths: tokens of each
// remaining text, ascending, at least one text, none longer than longest_answered().
std::size_t n_answered_together(std::span<const std::size_t> lengths, int n_heads);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_ANSWER_BATCHES_H_
