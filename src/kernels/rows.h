// SPDX-License-Identifier: Apache-2.0
// Operations on single rows over a vector type V: quantisation and rounding of inputs, norm,
// rotation, gate, caps, sums.
#ifndef OUTRIDER_KERNELS_ROWS_H_
#define OUTRIDER_KERNELS_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_layout.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

// The two halves of one group of x (k), zeros past k.
template <FloatVector V>
struct GroupOfInputs {
  V low, high;

  GroupOfInputs(const float* x, int k, int group) {
    const int at = group * kGroup;
    const int n = k - at < kGroup ? k - at : kGroup;
    low = load_at<V>(x + at, 0, n);
    high = n > kLanes ? load_at<V>(x + at, kLanes, n) : V::zero();
  }
  V largest() const { return max(absolute(low), absolute(high)); }
  // 0, or NaN if an element is infinite or NaN.
  V taint() const { return low * V::zero() + high * V::zero(); }
};

// Sixteen groups at a time: their scales are divisions of one vector, and taint is tested once.
template <FloatVector V>
void quantize_row(const float* x, int k, const QuantizedRow& out) {
  const int n_groups = group_count(k);
  for (int first = 0; first < n_groups; first += kLanes) {
    const int n = n_groups - first < kLanes ? n_groups - first : kLanes;
    float largest[kLanes] = {};
    V taints = V::zero();
    for (int i = 0; i < n; ++i) {
      const GroupOfInputs<V> group(x, k, first + i);
      largest[i] = reduce_max(group.largest());
      taints = taints + group.taint();
    }
    const float any_taint = reduce_add(taints);
    float inverses[kLanes];
    float scales[kLanes];
    (V::broadcast(127.0F) / V::load(largest)).store(inverses);
    (V::load(largest) / V::broadcast(127.0F)).store(scales);
    for (int i = 0; i < n; ++i) {
      const GroupOfInputs<V> group(x, k, first + i);
      const std::size_t place = static_cast<std::size_t>(first + i) * out.slots;
      std::int8_t* q = out.values + place * kGroup;
      const bool zero = inverses[i] > 3.402823466e38F;
      const float taint = any_taint != any_taint ? reduce_add(group.taint()) : 0.0F;
      if (zero || taint != taint) {
        for (int j = 0; j < kGroup; ++j) q[j] = 0;
        // NaN if tainted, so that its products are NaN.
        out.scales[place] = taint != taint ? taint : 0.0F;
        out.sums[place] = 0;
        out.scaled_sums[place] = out.scales[place];
        continue;
      }
      const V q_low = round_even(group.low * V::broadcast(inverses[i]));
      const V q_high = round_even(group.high * V::broadcast(inverses[i]));
      q_low.store_int8(q);
      q_high.store_int8(q + kLanes);
      const float sum = reduce_add(q_low + q_high);  // at most 32 * 127: exact
      out.scales[place] = scales[i];
      out.sums[place] = static_cast<std::int32_t>(sum);
      out.scaled_sums[place] = sum * scales[i];
    }
  }
}

// x (kBlock). Returns the largest absolute value; `taint` becomes NaN if an element is infinite or
// NaN.
template <FloatVector V>
float largest_of_block(const float* x, float& taint) {
  V largest = V::zero();
  V taints = V::zero();
  for (int i = 0; i < kBlock; i += kLanes) {
    const V value = V::load(x + i);
    largest = max(largest, absolute(value));
    taints = taints + value * V::zero();
  }
  taint = reduce_add(taints);
  return reduce_max(largest);
}

template <FloatVector V>
void quantize_blocks(const float* x, int k, const QuantizedBlocks& out) {
  const auto slots = static_cast<std::size_t>(out.slots);
  for (std::size_t block = 0; block < static_cast<std::size_t>(blocks_of(k)); ++block) {
    const float* from = x + block * kBlock;
    float taint;
    const float largest = largest_of_block<V>(from, taint);
    const float inverse = 127.0F / largest;
    const bool tainted = taint != taint;
    const bool zero = tainted || inverse > 3.402823466e38F;
    out.scales[block * slots] = tainted ? taint : zero ? 0.0F : largest / 127.0F;
    for (int group = 0; group < kBlockGroups; ++group) {
      const int at = group * kGroup;
      const std::size_t run =
          block * (kBlock / kBlockRun) + static_cast<std::size_t>(at / kBlockRun);
      std::int8_t* q = out.values + run * slots * kBlockRun + at % kBlockRun;
      const std::size_t sum_at = block * slots * kBlockGroups + static_cast<std::size_t>(group);
      V low = V::zero();
      V high = V::zero();
      if (!zero) {
        low = round_even(V::load(from + at) * V::broadcast(inverse));
        high = round_even(V::load(from + at + kLanes) * V::broadcast(inverse));
      }
      low.store_int8(q);
      high.store_int8(q + kLanes);
      const float sum = reduce_add(low + high);  // at most 32 * 127: exact
      out.float_sums[sum_at] = sum;
      out.group_sums[sum_at] = static_cast<std::int16_t>(sum);
      if (out.half_sums == nullptr) continue;
      const float first = reduce_add(low);
      std::int16_t* halves = out.half_sums + 2 * sum_at;
      halves[0] = static_cast<std::int16_t>(first);
      halves[1] = static_cast<std::int16_t>(sum - first);
    }
  }
}

template <FloatVector V>
void rms_norm(const float* x, const float* weight, int n, float epsilon, float* y) {
  V squares = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(x, i, n);
    squares = fma(value, value, squares);
  }
  const float mean = reduce_add(squares) / static_cast<float>(n);
  const V factor = V::broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int i = 0; i < n; i += kLanes) {
    store_at(load_at<V>(weight, i, n) * (load_at<V>(x, i, n) * factor), y, i, n);
  }
}

template <FloatVector V>
void layer_norm(const float* x, const float* weight, const float* bias, int n, float epsilon,
                float* y) {
  V sum = V::zero();
  for (int i = 0; i < n; i += kLanes) sum = sum + load_at<V>(x, i, n);
  const V mean = V::broadcast(reduce_add(sum) / static_cast<float>(n));
  V squares = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    store_at(load_at<V>(x, i, n) - mean, y, i, n);
    const V centred = load_at<V>(y, i, n);  // zeros, without the mean subtracted, after the end
    squares = fma(centred, centred, squares);
  }
  const float variance = reduce_add(squares) / static_cast<float>(n);
  const V factor = V::broadcast(1.0F / __builtin_sqrtf(variance + epsilon));
  for (int i = 0; i < n; i += kLanes) {
    const V shift = bias == nullptr ? V::zero() : load_at<V>(bias, i, n);
    store_at(fma(load_at<V>(weight, i, n), load_at<V>(y, i, n) * factor, shift), y, i, n);
  }
}

template <FloatVector V>
void apply_rope(float* x, const float* cosines, const float* sines, int half) {
  for (int i = 0; i < half; i += kLanes) {
    const V first = load_at<V>(x, i, half);
    const V second = load_at<V>(x + half, i, half);
    const V cosine = load_at<V>(cosines, i, half);
    const V sine = load_at<V>(sines, i, half);
    store_at(first * cosine - second * sine, x, i, half);
    store_at(second * cosine + first * sine, x + half, i, half);
  }
}

template <FloatVector V>
void silu_multiply(const float* gate, const float* up, int n, float* out) {
  const V one = V::broadcast(1.0F);
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(gate, i, n);
    const V silu = value / (one + exponential(V::zero() - value));
    store_at(silu * load_at<V>(up, i, n), out, i, n);
  }
}

// NaN stays NaN: min and max return their second argument if the first is NaN.
template <FloatVector V>
void clamped_swish_multiply(const float* gate, const float* up, int n, float limit, float* out) {
  const V one = V::broadcast(1.0F);
  const V most = V::broadcast(limit);
  const V least = V::broadcast(-limit);
  const V slope = V::broadcast(-1.702F);
  for (int i = 0; i < n; i += kLanes) {
    const V value = min(most, load_at<V>(gate, i, n));
    const V factor = min(most, max(least, load_at<V>(up, i, n))) + one;
    const V swish = value / (one + exponential(value * slope));
    store_at(swish * factor, out, i, n);
  }
}

template <FloatVector V>
void sigmoid_multiply(const float* gate, const float* up, int n, float* out) {
  const V one = V::broadcast(1.0F);
  for (int i = 0; i < n; i += kLanes) {
    const V sigmoid = one / (one + exponential(V::zero() - load_at<V>(gate, i, n)));
    store_at(sigmoid * load_at<V>(up, i, n), out, i, n);
  }
}

template <FloatVector V>
void gelu_multiply(const float* gate, const float* up, int n, float* out) {
  const V one = V::broadcast(1.0F);
  const V cubic = V::broadcast(0.044715F);
  const V twice = V::broadcast(-1.5957691216057308F);  // -2 sqrt(2 / pi)
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(gate, i, n);
    const V inner = value * fma(cubic * value, value, one);
    const V gelu = value / (one + exponential(inner * twice));
    store_at(gelu * load_at<V>(up, i, n), out, i, n);
  }
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|): no cancellation, however far below zero x is.
template <FloatVector V>
void gelu_erf_multiply(const float* gate, const float* up, int n, float* out) {
  const V farthest = V::broadcast(15.0F);
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(gate, i, n);
    const V size = min(farthest, absolute(value));
    const V gelu = fma(V::zero() - size, normal_tail(size), max(V::zero(), value));
    store_at(gelu * load_at<V>(up, i, n), out, i, n);
  }
}

template <FloatVector V>
void soft_cap(float* x, int n, float cap) {
  const SoftCap<V> capped(cap);
  for (int i = 0; i < n; i += kLanes) store_at(capped.of(load_at<V>(x, i, n)), x, i, n);
}

template <FloatVector V>
void add_to(float* x, const float* y, int n) {
  for (int i = 0; i < n; i += kLanes) {
    store_at(load_at<V>(x, i, n) + load_at<V>(y, i, n), x, i, n);
  }
}

// Integer arithmetic that compilers vectorise.
template <FloatVector V>
void round_to_bf16(const float* x, int n, std::uint16_t* out) {
  for (int i = 0; i < n; ++i) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x[i]);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    out[i] = static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
  }
}

// A row of bf16 in groups, for round_row (table.h).
template <FloatVector V>
void round_row(const float* x, int k, std::uint16_t* out, int slots) {
  for (int group = 0; group < group_count(k); ++group) {
    std::uint16_t* place = out + static_cast<std::size_t>(group) * slots * kGroup;
    const int left = k - group * kGroup;
    const int n = left < kGroup ? left : kGroup;
    round_to_bf16<V>(x + group * kGroup, n, place);
    for (int i = n; i < kGroup; ++i) place[i] = 0;
  }
}

template <FloatVector V>
void round_to_int8(const float* x, int n, std::int8_t* out, float* scale) {
  V largest_lanes = V::zero();
  V taint_lanes = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(x, i, n);
    largest_lanes = max(largest_lanes, absolute(value));
    taint_lanes = taint_lanes + value * V::zero();
  }
  const float largest = reduce_max(largest_lanes);
  const float taint = reduce_add(taint_lanes);  // as in quantize_row
  const float inverse = 127.0F / largest;
  const bool zero = inverse > 3.402823466e38F;
  if (zero || taint != taint) {
    for (int i = 0; i < n; ++i) out[i] = 0;
    *scale = taint != taint ? taint : 0.0F;
    return;
  }
  for (int i = 0; i < n; i += kLanes) {
    const V q = round_even(load_at<V>(x, i, n) * V::broadcast(inverse));
    if (i + kLanes <= n) {
      q.store_int8(out + i);
    } else {
      std::int8_t all[kLanes];
      q.store_int8(all);
      for (int j = i; j < n; ++j) out[j] = all[j - i];
    }
  }
  *scale = largest / 127.0F;
}

// Calls use(dim, element) with the stored form of x (head_dim); returns the scale, if there is one.
template <FloatVector V, KvKind kind, class Use>
[[gnu::always_inline]] inline float for_stored(const float* x, int head_dim, const Use& use) {
  if constexpr (kind == KvKind::f32) {
    for (int dim = 0; dim < head_dim; ++dim) use(dim, x[dim]);
    return 1.0F;
  } else if constexpr (kind == KvKind::bf16) {
    for (int first = 0; first < head_dim; first += kLanes) {
      const int n = head_dim - first < kLanes ? head_dim - first : kLanes;
      std::uint16_t rounded[kLanes];
      round_to_bf16<V>(x + first, n, rounded);
      for (int i = 0; i < n; ++i) use(first + i, rounded[i]);
    }
    return 1.0F;
  } else {
    std::int8_t rounded[kMaxRoundedHeadDim];
    float scale;
    round_to_int8<V>(x, head_dim, rounded, &scale);
    for (int dim = 0; dim < head_dim; ++dim) use(dim, rounded[dim]);
    return scale;
  }
}

// at(layout, dim): the offset of an element.
template <FloatVector V, KvKind kind, class At>
[[gnu::always_inline]] inline void store_in_block(const float* x, int head_dim, std::byte* block,
                                                  int token, const At& at) {
  const KvLayout layout{kind, head_dim};
  const float scale = for_stored<V, kind>(x, head_dim, [&](int dim, auto element) {
    __builtin_memcpy(block + at(layout, dim), &element, sizeof element);
  });
  if (kind == KvKind::int8) {
    __builtin_memcpy(block + layout.scale_at(token), &scale, sizeof scale);
  }
}

template <FloatVector V, KvKind kind>
void store_key(const float* x, int head_dim, std::byte* block, int token) {
  store_in_block<V, kind>(x, head_dim, block, token, [=](const KvLayout& layout, int dim) {
    return layout.key_at(token, dim);
  });
}

template <FloatVector V, KvKind kind>
void store_value(const float* x, int head_dim, std::byte* block, int token) {
  store_in_block<V, kind>(x, head_dim, block, token, [=](const KvLayout& layout, int dim) {
    return layout.value_at(token, dim);
  });
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ROWS_H_
