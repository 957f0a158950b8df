// SPDX-License-Identifier: Apache-2.0
// New keys and values into the cache, and from place to place (cache_steps.h,
// kernels/attention/kv_layout.h), in blocks of 64 threads: a block has one head's keys, or values.
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_CACHE_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_CACHE_CUH_

#include "device/cache_steps.h"
#include "device/cuda/kernels/product.cuh"
#include "device/cuda/kernels/rows.cuh"

namespace outrider::device::cuda {

using kernels::KvKind;

inline constexpr std::uint32_t kChunk = 64;  // tokens of a page

// Words and bits of a block of keys, or of values. A cell is a word.
template <KvKind kKind>
struct CacheLayout {
  static constexpr std::uint32_t kOfCell =
      kKind == KvKind::int8 ? 4 : (kKind == KvKind::bf16 ? 2 : 1);
  static constexpr std::uint32_t kBits = 32 / kOfCell;
  static constexpr std::uint32_t kMask = kBits == 32 ? ~0U : (1U << kBits % 32) - 1U;

  // Where in its word an element stands: cells of four are in the order 0, 2, 1, 3.
  OUTRIDER_KERNEL_CODE static std::uint32_t shift_of(std::uint32_t index) {
    std::uint32_t place = index % kOfCell;
    if (kKind == KvKind::int8 && (place == 1 || place == 2)) place = 3 - place;
    return place * kBits;
  }
  OUTRIDER_KERNEL_CODE static std::uint32_t element(std::uint32_t word, std::uint32_t index) {
    return word >> shift_of(index) & kMask;
  }
  OUTRIDER_KERNEL_CODE static std::uint32_t value_row_words(std::uint32_t head_dim) {
    return (head_dim + kVectorLanes - 1) / kVectorLanes * kVectorLanes;
  }
  OUTRIDER_KERNEL_CODE static std::uint32_t key_word(std::uint32_t token, std::uint32_t dim) {
    return dim / kOfCell * kChunk + token;
  }
  OUTRIDER_KERNEL_CODE static std::uint32_t value_word(std::uint32_t token, std::uint32_t dim,
                                                       std::uint32_t head_dim) {
    return token / kOfCell * value_row_words(head_dim) + dim;
  }
  OUTRIDER_KERNEL_CODE static std::uint32_t scale_word(std::uint32_t token,
                                                       std::uint32_t head_dim) {
    return kChunk / kOfCell * value_row_words(head_dim) + token;
  }
};

struct LargestMemory {
  std::uint32_t of_warp[kRowThreads / kWarp];
};

// Over all threads of the block; all must call it.
OUTRIDER_KERNEL_CODE std::uint32_t largest_of_block(std::uint32_t mine) {
  LargestMemory& memory = block_memory<LargestMemory>();
  OUTRIDER_UNROLL
  for (std::uint32_t bit = 1; bit < kWarp; bit *= 2) mine = max_of(mine, from_beside(mine, bit));
  wait_for_block();  // what an earlier call left has been read
  if (lane_index() % kWarp == 0) memory.of_warp[lane_index() / kWarp] = mine;
  wait_for_block();
  return max_of(memory.of_warp[0], memory.of_warp[1]);
}

template <KvKind kKind>
OUTRIDER_KERNEL_CODE void store_tokens(const StepArguments& step) {
  using Layout = CacheLayout<kKind>;
  const auto numbers = numbers_of<CacheNumbers>(step);
  const std::uint32_t row = block_y();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const TokenPlace place = range_of<const TokenPlace>(step, 1)[row];
  const bool is_key = block_x() < numbers.n_kv_heads;
  const std::uint32_t head = block_x() % numbers.n_kv_heads;
  const float* const from =
      range_of<const float>(step, is_key ? 2 : 3) +
      (std::size_t{row} * numbers.heads_of_row + numbers.first_head + head) * numbers.head_dim;
  std::uint32_t* const block = range_of<std::uint32_t>(step, 4) + place.page_at +
                               std::size_t{block_x()} * numbers.block_words;
  const std::uint32_t lane = lane_index();
  const std::uint32_t dims = numbers.head_dim;

  ByteScale by{};
  if constexpr (kKind == KvKind::int8) {
    std::uint32_t largest = 0;
    for (std::uint32_t dim = lane; dim < dims; dim += kRowThreads) {
      largest = max_of(largest, magnitude_of(bits_of(from[dim])));
    }
    by = byte_scale_of(largest_of_block(largest));
    if (lane == 0) block[Layout::scale_word(place.token, dims)] = bits_of(by.scale);
  }
  for (std::uint32_t dim = lane; dim < dims; dim += kRowThreads) {
    const float value = from[dim];
    const std::uint32_t word =
        is_key ? Layout::key_word(place.token, dim) : Layout::value_word(place.token, dim, dims);
    if constexpr (kKind == KvKind::f32) {
      block[word] = bits_of(value);
    } else {
      std::uint32_t element = 0;
      if constexpr (kKind == KvKind::bf16) {
        element = to_bf16(value);
      } else if (!by.zero) {
        element = static_cast<std::uint32_t>(nearest_int(product_of(value, by.inverse)));
      }
      // Other threads and blocks write the word's other elements meanwhile.
      const std::uint32_t shift = Layout::shift_of(is_key ? dim : place.token);
      replace_bits(block + word, Layout::kMask << shift, (element & Layout::kMask) << shift);
    }
  }
}

// A thread has the same words of each move, so that their order is kept.
template <KvKind kKind>
OUTRIDER_KERNEL_CODE void move_tokens(const StepArguments& step) {
  using Layout = CacheLayout<kKind>;
  const auto numbers = numbers_of<CacheNumbers>(step);
  const std::uint32_t n_moves = min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows);
  const TokenMove* const moves = range_of<const TokenMove>(step, 1);
  std::uint32_t* const blocks =
      range_of<std::uint32_t>(step, 2) + std::size_t{block_x()} * numbers.block_words;
  const bool is_key = block_x() < numbers.n_kv_heads;
  const std::uint32_t dims = numbers.head_dim;
  const std::uint32_t n_columns = is_key ? (dims + Layout::kOfCell - 1) / Layout::kOfCell : dims;
  for (std::uint32_t column = lane_index(); column < n_columns; column += kRowThreads) {
    for (std::uint32_t i = 0; i < n_moves; ++i) {
      const TokenMove move = moves[i];
      const std::uint32_t* const from = blocks + move.from.page_at;
      std::uint32_t* const to = blocks + move.to.page_at;
      if (is_key) {  // a cell of a token's dims
        const std::uint32_t dim = column * Layout::kOfCell;
        to[Layout::key_word(move.to.token, dim)] = from[Layout::key_word(move.from.token, dim)];
      } else {
        const std::uint32_t element = Layout::element(
            from[Layout::value_word(move.from.token, column, dims)], move.from.token);
        std::uint32_t& word = to[Layout::value_word(move.to.token, column, dims)];
        const std::uint32_t shift = Layout::shift_of(move.to.token);
        word = (word & ~(Layout::kMask << shift)) | element << shift;
      }
    }
  }
  if (kKind == KvKind::int8 && lane_index() == 0) {
    for (std::uint32_t i = 0; i < n_moves; ++i) {
      const TokenMove move = moves[i];
      blocks[move.to.page_at + Layout::scale_word(move.to.token, dims)] =
          blocks[move.from.page_at + Layout::scale_word(move.from.token, dims)];
    }
  }
}

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_CACHE_CUH_
