// SPDX-License-Identifier: Apache-2.0
#include "device/host/host_cache.h"

#include <cstdint>
#include <cstring>

#include "device/cache_steps.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/tables.h"

namespace outrider::device {
namespace {

using kernels::kScalarTable;
using Ranges = std::span<std::byte* const>;

template <class Element>
Element element_at(const std::byte* range, int index) {
  Element element;
  std::memcpy(&element, range + static_cast<std::size_t>(index) * sizeof element, sizeof element);
  return element;
}

std::byte* block_at(std::byte* cache, const TokenPlace& place, const CacheNumbers& numbers,
                    std::uint32_t block) {
  return cache + (std::size_t{place.page_at} + std::size_t{block} * numbers.block_words) * 4;
}

void run_store(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<CacheNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  const int head_dim = static_cast<int>(numbers.head_dim);
  for (int row = 0; row < n_rows; ++row) {
    const auto place = element_at<TokenPlace>(ranges[1], row);
    const int token = static_cast<int>(place.token);
    for (std::uint32_t head = 0; head < numbers.n_kv_heads; ++head) {
      const std::size_t of_row = static_cast<std::size_t>(row) * numbers.heads_of_row;
      const std::size_t at = (of_row + numbers.first_head + head) * numbers.head_dim;
      kScalarTable.store_key[step.variant](reinterpret_cast<const float*>(ranges[2]) + at, head_dim,
                                           block_at(ranges[4], place, numbers, head), token);
      kScalarTable.store_value[step.variant](
          reinterpret_cast<const float*>(ranges[3]) + at, head_dim,
          block_at(ranges[4], place, numbers, numbers.n_kv_heads + head), token);
    }
  }
}

void run_moves(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<CacheNumbers>();
  const int n_moves = rows_of(ranges[0], numbers.max_rows);
  const kernels::KvLayout layout{static_cast<kernels::KvKind>(step.variant),
                                 static_cast<int>(numbers.head_dim)};
  for (int i = 0; i < n_moves; ++i) {
    const auto move = element_at<TokenMove>(ranges[1], i);
    for (std::uint32_t block = 0; block < 2 * numbers.n_kv_heads; ++block) {
      const std::byte* const from = block_at(ranges[2], move.from, numbers, block);
      std::byte* const to = block_at(ranges[2], move.to, numbers, block);
      const int from_token = static_cast<int>(move.from.token);
      const int to_token = static_cast<int>(move.to.token);
      if (block < numbers.n_kv_heads) {
        layout.copy_key(from, from_token, to, to_token);
      } else {
        layout.copy_value(from, from_token, to, to_token);
      }
    }
  }
}

}  // namespace

void run_cache_on_host(const Step& step, std::span<std::byte* const> ranges) {
  return step.kernel == Kernel::store_rows ? run_store(step, ranges) : run_moves(step, ranges);
}

}  // namespace outrider::device
