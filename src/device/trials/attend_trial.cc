// SPDX-License-Identifier: Apache-2.0
#include "device/trials/attend_trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "device/attend_steps.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/tables.h"

namespace outrider::device {
namespace {

using kernels::kChunkKeys;

std::size_t size(int n) { return static_cast<std::size_t>(n); }

// A cache of scattered pages with a text's keys and values in all slots.
struct TrialCache {
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> pages;  // the text's pages, in words

  TrialCache(kernels::KvKind kv, const AttendTrialShape& shape, int n_slots, TrialNumbers& numbers)
      : layout_{kv, shape.head_dim}, n_kv_heads_(size(shape.n_kv_heads)) {
    const int n_pages = (n_slots + kChunkKeys - 1) / kChunkKeys;
    const std::size_t page_bytes = 2 * n_kv_heads_ * layout_.block_bytes();
    bytes.assign(size(n_pages + 1) * page_bytes, std::byte{0xff});  // NaN
    for (int page = 0; page < n_pages; ++page) {                    // pages are in reverse order
      pages.push_back(static_cast<std::uint32_t>(size(n_pages - page) * page_bytes / 4));
    }
    for (int slot = 0; slot < n_slots; ++slot) {
      store(slot, shape.has_infinities && slot == n_slots / 2, numbers);
    }
  }

 private:
  void store(int slot, bool is_infinite, TrialNumbers& numbers) {
    std::byte* const page = bytes.data() + std::size_t{pages[size(slot / kChunkKeys)]} * 4;
    const int token = slot % kChunkKeys;
    const auto kind = static_cast<int>(layout_.kind);
    for (std::size_t head = 0; head < n_kv_heads_; ++head) {
      std::vector<float> key = numbers.awkward_floats(size(layout_.head_dim));
      std::vector<float> value = numbers.awkward_floats(size(layout_.head_dim));
      if (is_infinite && head == 0) key[0] = std::numeric_limits<float>::infinity();
      if (is_infinite && head == 1) value[0] = std::numeric_limits<float>::quiet_NaN();
      std::byte* const keys = page + head * layout_.block_bytes();
      std::byte* const values = page + (n_kv_heads_ + head) * layout_.block_bytes();
      kernels::kScalarTable.store_key[kind](key.data(), layout_.head_dim, keys, token);
      kernels::kScalarTable.store_value[kind](value.data(), layout_.head_dim, values, token);
    }
  }

  kernels::KvLayout layout_;
  std::size_t n_kv_heads_;
};

// What the rows read: different lengths, windows, and slots of nodes after the text.
struct TrialRowWords {
  std::vector<AttendRowWords> rows;
  std::vector<std::uint32_t> slots = {0};  // never empty

  TrialRowWords(int n_rows, const AttendTrialShape& shape, int n_slots, TrialNumbers& numbers) {
    for (int row = 0; row < n_rows; ++row) {
      const int n_keys = std::max(1, shape.n_keys - row);
      const int n_elsewhere = std::min(shape.n_of_tree, n_keys);
      const int first_key = shape.window > 0 ? std::max(0, n_keys - shape.window) : 0;
      rows.push_back({.n_keys = static_cast<std::uint32_t>(n_keys),
                      .first_key = static_cast<std::uint32_t>(first_key),
                      .n_contiguous = static_cast<std::uint32_t>(n_keys - n_elsewhere),
                      .slots_at = static_cast<std::uint32_t>(slots.size())});
      for (int i = 0; i < n_elsewhere; ++i) {
        slots.push_back(static_cast<std::uint32_t>(numbers.below(n_slots)));
      }
    }
  }
};

}  // namespace

Trial attend_trial(kernels::KvKind kv, const TrialRows& rows, const AttendTrialShape& shape,
                   std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const int n_slots = shape.n_keys + shape.n_of_tree;
  AttendTrialShape of_part = shape;
  of_part.n_heads /= shape.n_parts;
  of_part.n_kv_heads /= shape.n_parts;
  const TrialCache cache(kv, of_part, n_slots, numbers);
  const TrialRowWords words(rows.max_rows, shape, n_slots, numbers);
  const AttendShape of_steps = {.kv = kv,
                                .n_heads = of_part.n_heads,
                                .n_kv_heads = of_part.n_kv_heads,
                                .head_dim = shape.head_dim,
                                .max_splits = kernels::splits_of(shape.n_keys),
                                .max_pages = static_cast<int>(cache.pages.size()),
                                .scale = 1 / std::sqrt(static_cast<float>(shape.head_dim)),
                                .softcap = shape.softcap,
                                .first_head = 0,
                                .heads_of_row = shape.n_parts > 1 ? shape.n_heads : 0};
  const std::size_t n_heads = size(rows.max_rows) * size(shape.n_heads);
  const std::size_t n_parts = n_heads * size(of_steps.max_splits);
  std::vector<std::uint32_t> pages;
  for (int row = 0; row < rows.max_rows; ++row) {
    pages.insert(pages.end(), cache.pages.begin(), cache.pages.end());
  }
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t queries =
      trial.add_input(numbers.awkward_floats(n_heads * size(shape.head_dim)));
  const std::size_t of_rows = trial.add_input(words.rows);
  const std::size_t slots = trial.add_input(words.slots);
  const std::size_t pages_at = trial.add_input(pages);
  std::vector<std::size_t> caches_at = {trial.add_input(cache.bytes)};
  while (caches_at.size() < size(shape.n_parts)) {
    caches_at.push_back(trial.add_input(TrialCache(kv, of_part, n_slots, numbers).bytes));
  }
  const std::size_t sums = trial.add_output(n_parts * size(shape.head_dim) * sizeof(float), true);
  const std::size_t states = trial.add_output(n_parts * 2 * sizeof(float), true);
  const std::size_t out = trial.add_output(n_heads * size(shape.head_dim) * sizeof(float), true);
  trial.steps = [=](std::span<const Range> at) -> std::vector<Step> {
    const Rows of_facts = {at[facts], rows.max_rows};
    AttendRanges ranges = {at[queries],           at[of_rows], at[slots],  at[pages_at],
                           at[caches_at.front()], at[sums],    at[states], at[out]};
    std::vector<Step> steps;
    AttendShape some = of_steps;
    for (const std::size_t cache_at : caches_at) {
      ranges.cache = at[cache_at];
      steps.push_back(attend(of_facts, some, ranges));
      some.first_head += some.n_heads;
    }
    AttendShape all = of_steps;
    all.n_heads = shape.n_heads;
    steps.push_back(merge_splits(of_facts, all, ranges));
    return steps;
  };
  return trial;
}

}  // namespace outrider::device
