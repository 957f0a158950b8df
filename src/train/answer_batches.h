// How many texts an encoder-decoder answers side by side. Pure functions.
#ifndef OUTRIDER_TRAIN_ANSWER_BATCHES_H_
#define OUTRIDER_TRAIN_ANSWER_BATCHES_H_

#include <cstddef>
#include <span>

namespace outrider::train {

// The most tokens that a text to be answered may have: a layer's scores of it, a number for each
// two tokens and each head, take 256 MiB of f32.
std::size_t longest_answered(int n_heads);

// lengths: tokens of the texts that are still to be answered, ascending, one text at least, none
// longer than longest_answered(). The first so many are the next batch: no more than 64, and no
// more than have scores of 256 MiB when each is as long as the longest of them. At least one.
std::size_t n_answered_together(std::span<const std::size_t> lengths, int n_heads);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_ANSWER_BATCHES_H_
