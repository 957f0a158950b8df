// SPDX-License-Identifier: Apache-2.0
// Attention of one query head of one row over one split of its positions (attend_steps.h,
// kernels/attention/attention.h): the online softmax, chunk by chunk of 64 positions, in the
// processor's order. A thread has a key, and then some dims. Then the splits' merge.
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_ATTEND_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_ATTEND_CUH_

#include "device/attend_steps.h"
#include "device/cuda/kernels/cache.cuh"

namespace outrider::device::cuda {

inline constexpr std::uint32_t kSplit = 1024;
inline constexpr std::uint32_t kMaxDims = kMaxHeadDim;
inline constexpr std::uint32_t kDimsOfLane = kMaxDims / kRowThreads;

struct SplitState {
  float highest;
  float total;
};

struct AttendMemory {
  float weights[kChunk];          // scores at first
  std::uint32_t keys_at[kChunk];  // of each position, where its page's keys stand in the cache
  std::uint32_t tokens[kChunk];   // and its place within
  float highest;
  float sum;
  // Of int8: integers of 14 bits in the place of the query and of a chunk's weights.
  int query_words[kMaxDims];
  int weight_words[kChunk];
  float score_scale;
  float sum_scale;
};

inline constexpr float kMaxWord = 16256.0F;  // 127 * 128

// What is multiplied to get words, and what a word counts for, of numbers whose largest is so
// large: zeros where the former overflows.
struct WordScale {
  float inverse;
  float of_word;
};
OUTRIDER_KERNEL_CODE WordScale word_scale_of(float largest) {
  const float inverse = divided(kMaxWord, largest);
  if (bits_of(inverse) == kInfinity) return {0.0F, 0.0F};
  return {inverse, divided(largest, kMaxWord)};
}

// What a block of threads works on.
template <KvKind kKind>
struct Attention {
  using Layout = CacheLayout<kKind>;

  AttendMemory& memory;
  const float* query;
  const std::uint32_t* cache;
  std::uint32_t head_dim;
  std::uint32_t values_behind;  // words from a page's keys to its values
  float scale;

  OUTRIDER_KERNEL_CODE float float_in(std::uint32_t word, std::uint32_t index) const {
    if constexpr (kKind == KvKind::f32) {
      return float_of(word);
    } else {
      return from_bf16(Layout::element(word, index));
    }
  }
  OUTRIDER_KERNEL_CODE int int_in(std::uint32_t word, std::uint32_t index) const {
    return static_cast<std::int8_t>(Layout::element(word, index));
  }

  // Once, before the first chunk.
  OUTRIDER_KERNEL_CODE void take_query() const {
    if constexpr (kKind == KvKind::int8) {
      const std::uint32_t lane = lane_index();
      std::uint32_t mine = 0;
      for (std::uint32_t dim = lane; dim < head_dim; dim += kRowThreads) {
        mine = max_of(mine, magnitude_of(bits_of(query[dim])));
      }
      const std::uint32_t largest = largest_of_block(mine);
      const bool tainted = !is_finite(largest);
      const WordScale by = word_scale_of(float_of(largest));
      for (std::uint32_t dim = lane; dim < head_dim; dim += kRowThreads) {
        memory.query_words[dim] = tainted ? 0 : nearest_int(product_of(query[dim], by.inverse));
      }
      if (lane == 0) {
        memory.score_scale = product_of(tainted ? float_of(kNan) : by.of_word, scale);
      }
    }
  }

  // Of the key at that position of the chunk: its dims in their order.
  OUTRIDER_KERNEL_CODE float score_of(std::uint32_t position) const {
    const std::uint32_t* const keys = cache + memory.keys_at[position];
    const std::uint32_t token = memory.tokens[position];
    if constexpr (kKind == KvKind::int8) {
      int dot = 0;
      for (std::uint32_t dim = 0; dim < head_dim; ++dim) {
        dot += memory.query_words[dim] * int_in(keys[Layout::key_word(token, dim)], dim);
      }
      const float key_scale = float_of(keys[Layout::scale_word(token, head_dim)]);
      return product_of(product_of(float_of_int(dot), key_scale), memory.score_scale);
    } else {
      float dot = 0.0F;
      for (std::uint32_t dim = 0; dim < head_dim; ++dim) {
        dot = fused(query[dim], float_in(keys[Layout::key_word(token, dim)], dim), dot);
      }
      return product_of(dot, scale);
    }
  }

  // A chunk's n weights, before its sums; all threads must call it.
  OUTRIDER_KERNEL_CODE void take_weights(std::uint32_t n) const {
    if constexpr (kKind == KvKind::int8) {
      const std::uint32_t lane = lane_index();
      float value_scale = 0.0F;
      if (lane < n) {
        value_scale = float_of(cache[memory.keys_at[lane] + values_behind +
                                     Layout::scale_word(memory.tokens[lane], head_dim)]);
      }
      float product = product_of(memory.weights[lane], value_scale);
      if (!(product > 0.0F)) product = 0.0F;  // 0 in the place of NaN
      const std::uint32_t largest = largest_of_block(bits_of(product));
      const bool tainted = largest_of_block(is_finite(bits_of(value_scale)) ? 0U : 1U) != 0;
      const WordScale by = word_scale_of(float_of(largest));
      memory.weight_words[lane] = nearest_int(product_of(product, by.inverse));
      if (lane == 0) memory.sum_scale = tainted ? float_of(kNan) : by.of_word;
      wait_for_block();
    }
  }

  // so_far and the n values' dim, weighted: tokens in their order.
  OUTRIDER_KERNEL_CODE float with_chunk(float so_far, std::uint32_t dim, std::uint32_t n) const {
    if constexpr (kKind == KvKind::int8) {
      int dot = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        dot += memory.weight_words[i] * int_in(value_of(i, dim), memory.tokens[i]);
      }
      return fused(float_of_int(dot), memory.sum_scale, so_far);
    } else {
      float dot = 0.0F;
      for (std::uint32_t i = 0; i < n; ++i) {
        dot = fused(memory.weights[i], float_in(value_of(i, dim), memory.tokens[i]), dot);
      }
      return sum_of(so_far, dot);
    }
  }

  OUTRIDER_KERNEL_CODE std::uint32_t value_of(std::uint32_t position, std::uint32_t dim) const {
    return cache[memory.keys_at[position] + values_behind +
                 Layout::value_word(memory.tokens[position], dim, head_dim)];
  }
};

template <KvKind kKind, bool kCapsScores>
OUTRIDER_KERNEL_CODE void attend_split(const StepArguments& step) {
  const auto numbers = numbers_of<AttendNumbers>(step);
  const std::uint32_t lane = lane_index();
  const std::uint32_t head = block_x();
  const std::uint32_t row = block_y();
  const std::uint32_t split = block_z();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const AttendRowWords reads = range_of<const AttendRowWords>(step, 2)[row];
  if (split * kSplit >= reads.n_keys || (split + 1) * kSplit <= reads.first_key) return;
  const std::uint32_t* const slots = range_of<const std::uint32_t>(step, 3) + reads.slots_at;
  const std::uint32_t* const pages =
      range_of<const std::uint32_t>(step, 4) + std::size_t{row} * numbers.max_pages;
  const std::uint32_t kv_head = head / (numbers.n_heads / numbers.n_kv_heads);
  const std::uint32_t dims = numbers.head_dim;
  AttendMemory& memory = block_memory<AttendMemory>();
  const Attention<kKind> attention = {
      memory,
      range_of<const float>(step, 1) +
          (std::size_t{row} * numbers.heads_of_row + numbers.first_head + head) * dims,
      range_of<const std::uint32_t>(step, 5),
      dims,
      numbers.n_kv_heads * numbers.block_words,
      numbers.scale};

  attention.take_query();
  float highest = float_of(kMinusInfinity);
  float total = 0.0F;
  float out[kDimsOfLane];
  OUTRIDER_UNROLL
  for (float& one : out) one = 0.0F;
  const std::uint32_t end_key = min_of(reads.n_keys, (split + 1) * kSplit);
  std::uint32_t begin = max_of(split * kSplit, reads.first_key / kChunk * kChunk);
  for (; begin < end_key; begin += kChunk) {
    const std::uint32_t n = min_of(end_key - begin, kChunk);
    const std::uint32_t position = begin + lane;
    wait_for_block();  // the chunk before has been read
    if (lane < n) {
      const std::uint32_t slot =
          position < reads.n_contiguous ? position : slots[position - reads.n_contiguous];
      memory.keys_at[lane] = pages[slot / kChunk] + kv_head * numbers.block_words;
      memory.tokens[lane] = slot % kChunk;
    }
    wait_for_block();
    float score = float_of(kMinusInfinity);
    if (lane < n && position >= reads.first_key) {
      score = attention.score_of(lane);
      if constexpr (kCapsScores) score = capped(score, numbers.softcap, numbers.inverse_softcap);
    }
    memory.weights[lane] = score;
    wait_for_block();
    // The highest score so far: by lanes of vectors, then by the tree.
    if (lane < kWarp) {
      float most = highest;
      if (lane < kVectorLanes) {
        for (std::uint32_t i = lane; i < kChunk; i += kVectorLanes) {
          most = larger(most, memory.weights[i]);
        }
      }
      most = tree_largest(most);
      if (lane == 0) memory.highest = most;
    }
    wait_for_block();
    const float now = memory.highest;
    const float beside = bits_of(now) == kMinusInfinity ? 0.0F : now;
    memory.weights[lane] = exponential_of_negative(difference_of(score, beside));
    wait_for_block();
    if (lane < kWarp) {
      float sum = 0.0F;
      if (lane < kVectorLanes) {
        for (std::uint32_t i = lane; i < kChunk; i += kVectorLanes) {
          sum = sum_of(sum, memory.weights[i]);
        }
      }
      sum = tree_sum(sum);
      if (lane == 0) memory.sum = sum;
    }
    wait_for_block();
    float factor = 1.0F;
    if (is_nan(now) || is_nan(highest) || now != highest) {
      factor = exponential_of_negative(difference_of(highest, now));
      OUTRIDER_UNROLL
      for (float& one : out) one = product_of(one, factor);
      highest = now;
    }
    total = fused(total, factor, memory.sum);
    attention.take_weights(n);
    OUTRIDER_UNROLL
    for (std::uint32_t i = 0; i < kDimsOfLane; ++i) {
      const std::uint32_t dim = lane + i * kRowThreads;
      if (dim < dims) out[i] = attention.with_chunk(out[i], dim, n);
    }
  }
  const std::size_t at = (std::size_t{row} * numbers.max_splits + split) * numbers.heads_of_row +
                         numbers.first_head + head;
  OUTRIDER_UNROLL
  for (std::uint32_t i = 0; i < kDimsOfLane; ++i) {
    const std::uint32_t dim = lane + i * kRowThreads;
    if (dim < dims) range_of<float>(step, 6)[at * dims + dim] = out[i];
  }
  if (lane == 0) range_of<SplitState>(step, 7)[at] = {highest, total};
}

// In the order of splits, each thread some dims.
OUTRIDER_KERNEL_CODE void merge_all_splits(const StepArguments& step) {
  const auto numbers = numbers_of<MergeNumbers>(step);
  const std::uint32_t head = block_x();
  const std::uint32_t row = block_y();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const AttendRowWords reads = range_of<const AttendRowWords>(step, 1)[row];
  const float* const sums = range_of<const float>(step, 2);
  const SplitState* const states = range_of<const SplitState>(step, 3);
  const std::uint32_t n_splits = (reads.n_keys + kSplit - 1) / kSplit;
  const std::uint32_t first = reads.first_key / kSplit;
  const std::uint32_t dims = numbers.head_dim;
  for (std::uint32_t dim = lane_index(); dim < dims; dim += kRowThreads) {
    std::size_t at = (std::size_t{row} * numbers.max_splits + first) * numbers.n_heads + head;
    float sum = sums[at * dims + dim];
    SplitState state = states[at];
    for (std::uint32_t split = first + 1; split < n_splits; ++split) {
      at += numbers.n_heads;
      const SplitState further = states[at];
      const float highest = state.highest < further.highest ? further.highest : state.highest;
      const float beside = bits_of(highest) == kMinusInfinity ? 0.0F : highest;
      const float before = exponential_of_negative(difference_of(state.highest, beside));
      const float behind = exponential_of_negative(difference_of(further.highest, beside));
      sum = fused(sums[at * dims + dim], behind, product_of(sum, before));
      state.total = fused(further.total, behind, product_of(state.total, before));
      state.highest = highest;
    }
    range_of<float>(step, 4)[(std::size_t{row} * numbers.n_heads + head) * dims + dim] =
        product_of(sum, divided(1.0F, state.total));
  }
}

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_ATTEND_CUH_
