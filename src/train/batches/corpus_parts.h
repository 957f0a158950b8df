// SPDX-License-Identifier: Apache-2.0
// Functions that the batch sources share. Thread-safe.
#ifndef OUTRIDER_TRAIN_BATCHES_CORPUS_PARTS_H_
#define OUTRIDER_TRAIN_BATCHES_CORPUS_PARTS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "outrider/types.h"

namespace outrider::train {

// The bytes of a UTF-8 text file. Throws Error if it cannot be read or is not UTF-8.
std::string read_text_file(const std::filesystem::path& path);

// Shuffles with draws from the seed alone. The draws of std::shuffle depend on the standard
// library; these are the same on every platform.
void shuffle(std::vector<std::int32_t>& values, std::uint64_t seed);

// Draws the order of one pass over texts; it depends only on the seed and the number of the pass.
// `texts`: sorted by is_before, equal texts in a drawn order. The texts of a batch thus have
// similar lengths and little padding. `batches`: the batch numbers in a drawn order. Both keep
// their sizes.
void order_epoch(std::uint64_t seed, std::int64_t epoch,
                 const std::function<bool(std::int32_t, std::int32_t)>& is_before,
                 std::vector<std::int32_t>& texts, std::vector<std::int32_t>& batches);

// A hash of the tokens, chained onto `before`.
std::uint64_t fingerprint_of(std::span<const TokenId> tokens, std::uint64_t before = 0);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_CORPUS_PARTS_H_
