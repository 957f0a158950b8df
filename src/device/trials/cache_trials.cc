// SPDX-License-Identifier: Apache-2.0
#include "device/trials/cache_trials.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/attention/kv_layout.h"

namespace outrider::device {
namespace {

using kernels::kChunkKeys;

std::size_t size(int n) { return static_cast<std::size_t>(n); }

// Pages for n slots, in reverse order after an unused one.
struct TrialPages {
  int n;
  std::uint32_t page_words;

  TrialPages(const CacheShape& shape, int n_slots)
      : n((n_slots + kChunkKeys - 1) / kChunkKeys),
        page_words(static_cast<std::uint32_t>(
            2 * size(shape.n_kv_heads) * kernels::KvLayout{shape.kv, shape.head_dim}.block_bytes() /
            4)) {}

  TokenPlace place(int slot) const {
    return {static_cast<std::uint32_t>(n - slot / kChunkKeys) * page_words,
            static_cast<std::uint32_t>(slot % kChunkKeys)};
  }
  std::size_t add_to(Trial& trial, TrialNumbers& numbers) const {
    std::vector<std::uint32_t> words(size(n + 1) * page_words);
    for (std::uint32_t& word : words) word = numbers.bits();
    const std::size_t at = trial.add_input(words);
    trial.buffers[at].is_output = true;
    return at;
  }
};

}  // namespace

Trial store_trial(const CacheShape& shape, const TrialRows& rows, bool has_infinities,
                  std::uint32_t seed) {
  TrialNumbers numbers(seed);
  constexpr int kFirst = kChunkKeys - 3;
  const TrialPages pages(shape, kFirst + rows.max_rows);
  std::vector<TokenPlace> places;
  places.reserve(size(rows.max_rows));
  for (int row = 0; row < rows.max_rows; ++row) places.push_back(pages.place(kFirst + row));
  const int n_heads = shape.heads_of_row == 0 ? shape.n_kv_heads : shape.heads_of_row;
  const std::size_t width = size(n_heads) * size(shape.head_dim);
  std::vector<float> keys = numbers.awkward_floats(size(rows.max_rows) * width);
  std::vector<float> values = numbers.awkward_floats(size(rows.max_rows) * width);
  for (int row = 0; has_infinities && row < rows.max_rows; row += 2) {
    keys[size(row) * width] = std::numeric_limits<float>::infinity();
    values[size(row) * width + width - 1] = std::numeric_limits<float>::quiet_NaN();
  }
  // A head of zeros, and one of numbers too small to have a scale.
  std::fill_n(keys.begin(), shape.head_dim, 0.0F);
  for (int dim = 0; dim < shape.head_dim; ++dim) values[size(dim)] *= 0x1p-140F;
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t places_at = trial.add_input(places);
  const std::size_t keys_at = trial.add_input(keys);
  const std::size_t values_at = trial.add_input(values);
  const std::size_t cache = pages.add_to(trial, numbers);
  // Words are floats for f32; for int8 the scales are, and they are NaN for a tainted head.
  trial.buffers[cache].holds_floats = shape.kv != kernels::KvKind::bf16;
  trial.steps = [=](std::span<const Range> at) -> std::vector<Step> {
    return {store_rows({at[facts], rows.max_rows}, shape,
                       {at[places_at], at[keys_at], at[values_at], at[cache]})};
  };
  return trial;
}

Trial move_trial(const CacheShape& shape, const TrialRows& rows, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const int n_slots = 2 * rows.max_rows + kChunkKeys;
  const TrialPages pages(shape, n_slots);
  std::vector<TokenMove> moves;
  int from = kChunkKeys - 2;
  for (int i = 0; i < rows.max_rows; ++i) {
    from += 1 + numbers.below(2);
    moves.push_back({pages.place(std::min(from, n_slots - 1)), pages.place(kChunkKeys - 3 + i)});
  }
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t moves_at = trial.add_input(moves);
  const std::size_t cache = pages.add_to(trial, numbers);
  trial.steps = [=](std::span<const Range> at) -> std::vector<Step> {
    return {move_slots({at[facts], rows.max_rows}, shape, at[moves_at], at[cache])};
  };
  return trial;
}

}  // namespace outrider::device
