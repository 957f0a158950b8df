// What sources of batches are made with. Thread-safe.
#ifndef OUTRIDER_TRAIN_CORPUS_PARTS_H_
#define OUTRIDER_TRAIN_CORPUS_PARTS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "outrider/types.h"

namespace outrider::train {

// The bytes of a file of UTF-8 text. Throws Error if it cannot be read or is no UTF-8.
std::string read_text_file(const std::filesystem::path& path);

// An order drawn from the seed alone. std::shuffle leaves the draws to the library; these are the
// same everywhere.
void shuffle(std::vector<std::int32_t>& values, std::uint64_t seed);

// What a pass over texts reads, drawn from the seed and the number of the pass alone: `texts` in
// the order of is_before, equal ones in a drawn order, so that those of a batch have like lengths
// and little of the batch is padding; `batches`, the numbers of the batches, in a drawn order. Both
// keep their sizes.
void order_epoch(std::uint64_t seed, std::int64_t epoch,
                 const std::function<bool(std::int32_t, std::int32_t)>& is_before,
                 std::vector<std::int32_t>& texts, std::vector<std::int32_t>& batches);

// A number that differs, but for chance, where the tokens or `before` do.
std::uint64_t fingerprint_of(std::span<const TokenId> tokens, std::uint64_t before = 0);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_CORPUS_PARTS_H_
