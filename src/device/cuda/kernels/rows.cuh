// SPDX-License-Identifier: Apache-2.0
// What a pass does to its rows between products (kernel_steps.h, row_steps.h), in blocks of 64
// threads; and single operations, for known answers.
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_ROWS_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_ROWS_CUH_

#include "device/cuda/kernels/arithmetic.cuh"
#include "device/kernel_steps.h"
#include "device/row_steps.h"

namespace outrider::device::cuda {

inline constexpr std::uint32_t kRowThreads = 64;
inline constexpr std::uint32_t kVectorLanes = 16;  // of the processor's reductions

// Of steps that have an element a thread: which one, and of which row.
struct Place {
  std::uint32_t row;
  std::uint32_t element;
  bool is_there;
};
OUTRIDER_KERNEL_CODE Place place_among(const StepArguments& step, std::uint32_t max_rows,
                                       std::uint32_t n) {
  const std::uint32_t row = block_y();
  const std::uint32_t element = block_x() * kRowThreads + lane_index();
  const std::uint32_t n_rows = min_of(range_of<const std::uint32_t>(step, 0)[0], max_rows);
  return {row, element, row < n_rows && element < n};
}

struct NormMemory {
  float factor;
};

// By the root mean square, as kernels/rows.h has rms_norm: sixteen lanes add the squares, each
// those of its own elements in their order. x may be y.
OUTRIDER_KERNEL_CODE void normalise(const float* x, const float* weight, std::uint32_t n,
                                    float epsilon, float* y) {
  NormMemory& memory = block_memory<NormMemory>();
  const std::uint32_t lane = lane_index();
  if (lane < kWarp) {
    float squares = 0.0F;
    if (lane < kVectorLanes) {
      for (std::uint32_t i = lane; i < n; i += kVectorLanes) squares = fused(x[i], x[i], squares);
    }
    squares = tree_sum(squares);
    if (lane == 0) {
      const float mean = divided(squares, float_of_int(static_cast<int>(n)));
      memory.factor = divided(1.0F, root(sum_of(mean, epsilon)));
    }
  }
  wait_for_block();
  const float factor = memory.factor;
  for (std::uint32_t i = lane; i < n; i += kRowThreads) {
    y[i] = product_of(weight[i], product_of(x[i], factor));
  }
}

OUTRIDER_KERNEL_CODE void rms_norm_rows(const StepArguments& step) {
  const auto numbers = numbers_of<NormNumbers>(step);
  const std::uint32_t row = block_x();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const std::size_t at = std::size_t{row} * numbers.n;
  normalise(range_of<const float>(step, 1) + at, range_of<const float>(step, 2), numbers.n,
            numbers.epsilon, range_of<float>(step, 3) + at);
}

OUTRIDER_KERNEL_CODE void normalise_pieces(const StepArguments& step) {
  const auto numbers = numbers_of<PieceNumbers>(step);
  const std::uint32_t row = block_x();
  const std::uint32_t piece = block_y();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  float* const x = range_of<float>(step, 1) + std::size_t{row} * numbers.stride + numbers.first +
                   std::size_t{piece} * numbers.n;
  normalise(x, range_of<const float>(step, 2) + std::size_t{piece} * numbers.weight_step, numbers.n,
            numbers.epsilon, x);
}

struct LayerNormMemory {
  float mean;
  float factor;
};

// kernels/rows.h, layer_norm; sums as in normalise().
OUTRIDER_KERNEL_CODE void layer_norm_rows(const StepArguments& step) {
  const auto numbers = numbers_of<LayerNormNumbers>(step);
  const std::uint32_t lane = lane_index();
  const std::uint32_t row = block_x();
  const std::uint32_t n = numbers.n;
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const std::uint32_t source =
      numbers.picks != 0 ? range_of<const std::uint32_t>(step, 1)[row] : row;
  const float* const x = range_of<const float>(step, 2) + std::size_t{source} * n;
  const float* const weight = range_of<const float>(step, 3);
  const float* const bias = range_of<const float>(step, 4);
  float* const y = range_of<float>(step, 5) + std::size_t{row} * n;
  LayerNormMemory& memory = block_memory<LayerNormMemory>();
  const float width = float_of_int(static_cast<int>(n));
  if (lane < kWarp) {
    float sum = 0.0F;
    if (lane < kVectorLanes) {
      for (std::uint32_t i = lane; i < n; i += kVectorLanes) sum = sum_of(sum, x[i]);
    }
    sum = tree_sum(sum);
    if (lane == 0) memory.mean = divided(sum, width);
  }
  wait_for_block();
  const float mean = memory.mean;
  if (lane < kWarp) {
    float squares = 0.0F;
    if (lane < kVectorLanes) {
      for (std::uint32_t i = lane; i < n; i += kVectorLanes) {
        const float centred = difference_of(x[i], mean);
        squares = fused(centred, centred, squares);
      }
    }
    squares = tree_sum(squares);
    if (lane == 0) {
      const float variance = divided(squares, width);
      memory.factor = divided(1.0F, root(sum_of(variance, numbers.epsilon)));
    }
  }
  wait_for_block();
  const float factor = memory.factor;
  for (std::uint32_t i = lane; i < n; i += kRowThreads) {
    const float scaled = product_of(difference_of(x[i], mean), factor);
    y[i] = fused(weight[i], scaled, numbers.has_bias != 0 ? bias[i] : 0.0F);
  }
}

// The pairs (x[i], x[i + half]) of each head by a row's angles.
OUTRIDER_KERNEL_CODE void apply_rope_to_heads(const StepArguments& step) {
  const auto numbers = numbers_of<ApplyRopeNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n_heads * numbers.half);
  if (!place.is_there) return;
  const std::uint32_t head = place.element / numbers.half;
  const std::uint32_t i = place.element % numbers.half;
  float* const x = range_of<float>(step, 1) +
                   (std::size_t{place.row} * numbers.n_heads + head) * numbers.head_dim + i;
  const std::size_t angle = std::size_t{place.row} * numbers.half + i;
  const float cosine = range_of<const float>(step, 2)[angle];
  const float sine = range_of<const float>(step, 3)[angle];
  const float first = x[0];
  const float second = x[numbers.half];
  x[0] = difference_of(product_of(first, cosine), product_of(second, sine));
  x[numbers.half] = sum_of(product_of(second, cosine), product_of(first, sine));
}

// erfc(x / sqrt(2)) / 2 for 0 <= x <= 15 (kernels/vectors/vector_math.h).
OUTRIDER_KERNEL_CODE float normal_tail(float x) {
  const float square = product_of(x, x);
  const float lost = fused(x, x, difference_of(0.0F, square));
  const float e = exponential(product_of(square, -0.5F));
  const float bell = fused(e, product_of(lost, -0.5F), e);
  const float t = divided(1.0F, fused(x, float_of(0x3e89374cU), 1.0F));
  float p = float_of(0x3cf78004U);         // 0.0302124098
  p = fused(p, t, float_of(0xbe0b262aU));  // -0.135887772
  p = fused(p, t, float_of(0x3e45e547U));  // 0.193257436
  p = fused(p, t, float_of(0xbdbd805bU));  // -0.0925299749
  p = fused(p, t, float_of(0x3dfb79f4U));  // 0.122791201
  p = fused(p, t, float_of(0x3d878aecU));  // 0.0661829412
  p = fused(p, t, float_of(0x3dd1d4d6U));  // 0.102456734
  p = fused(p, t, float_of(0x3dda49b0U));  // 0.10658586
  p = fused(p, t, float_of(0x3ddafebaU));  // 0.106931165
  return product_of(bell, product_of(p, t));
}

// kernels/rows.h, silu_multiply, gelu_multiply and gelu_erf_multiply.
template <GateActivation kActivation>
OUTRIDER_KERNEL_CODE float activated(float value) {
  if constexpr (kActivation == GateActivation::gelu_erf) {
    float size = float_of(magnitude_of(bits_of(value)));
    size = 15.0F < size ? 15.0F : size;
    const float above = 0.0F > value ? 0.0F : value;
    return fused(difference_of(0.0F, size), normal_tail(size), above);
  } else {
    float inner = difference_of(0.0F, value);
    if constexpr (kActivation == GateActivation::gelu_tanh) {
      const float cubic = product_of(float_of(0x3d372713U), value);  // 0.044715
      inner = product_of(value, fused(cubic, value, 1.0F));
      inner = product_of(inner, float_of(0xbfcc422aU));  // -2 sqrt(2 / pi)
    }
    return divided(value, sum_of(1.0F, exponential(inner)));
  }
}

// y = activation(gate) * up.
template <GateActivation kActivation>
OUTRIDER_KERNEL_CODE void gate_rows(const StepArguments& step) {
  const auto numbers = numbers_of<GateNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  const std::size_t at = std::size_t{place.row} * numbers.n + place.element;
  const float gate = activated<kActivation>(range_of<const float>(step, 1)[at]);
  range_of<float>(step, 3)[at] = product_of(gate, range_of<const float>(step, 2)[at]);
}

template <GateActivation kActivation>
OUTRIDER_KERNEL_CODE void activate_rows(const StepArguments& step) {
  const auto numbers = numbers_of<GateNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  float* const x = range_of<float>(step, 1) + std::size_t{place.row} * numbers.n + place.element;
  *x = activated<kActivation>(*x);
}

OUTRIDER_KERNEL_CODE void soft_cap_rows(const StepArguments& step) {
  const auto numbers = numbers_of<CapNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  float* const x = range_of<float>(step, 1) + std::size_t{place.row} * numbers.n + place.element;
  *x = capped(*x, numbers.cap, numbers.inverse);
}

OUTRIDER_KERNEL_CODE void add_to_rows(const StepArguments& step) {
  const auto numbers = numbers_of<AddNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  const std::size_t at = std::size_t{place.row} * numbers.n + place.element;
  float* const to = range_of<float>(step, 1);
  to[at] = sum_of(to[at], range_of<const float>(step, 2)[at]);
}

OUTRIDER_KERNEL_CODE void add_bias_to_columns(const StepArguments& step) {
  const auto numbers = numbers_of<ColumnNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  float* const x = range_of<float>(step, 1) + std::size_t{place.row} * numbers.stride +
                   numbers.first + place.element;
  *x = sum_of(*x, range_of<const float>(step, 2)[place.element]);
}

OUTRIDER_KERNEL_CODE void scale_columns(const StepArguments& step) {
  const auto numbers = numbers_of<ColumnNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  float* const x = range_of<float>(step, 1) + std::size_t{place.row} * numbers.stride +
                   numbers.first + place.element;
  *x = product_of(*x, numbers.scale);
}

// Words, whatever they mean.
OUTRIDER_KERNEL_CODE void copy_columns(const StepArguments& step) {
  const auto numbers = numbers_of<CopyNumbers>(step);
  const Place place = place_among(step, numbers.max_rows, numbers.n);
  if (!place.is_there) return;
  const std::uint32_t source =
      numbers.picks != 0 ? range_of<const std::uint32_t>(step, 1)[place.row] : place.row;
  const std::uint32_t* const from = range_of<const std::uint32_t>(step, 2) +
                                    std::size_t{source} * numbers.from_stride + numbers.from_first;
  std::uint32_t* const to = range_of<std::uint32_t>(step, 3) +
                            std::size_t{place.row} * numbers.to_stride + numbers.to_first;
  to[place.element] = from[place.element];
}

// Larger for the larger number; equal for 0 and -0; 0 for NaN.
OUTRIDER_KERNEL_CODE std::uint32_t rank_of(std::uint32_t bits) {
  if (magnitude_of(bits) > kInfinity) return 0;
  if (bits == kSignBit) bits = 0;
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

struct BestMemory {
  std::uint32_t ranks[kRowThreads];
  BestOfRow best[kRowThreads];
};

// The largest number of a part of each row; with kReadsParts, of what parts gave. Numbers are
// compared as integers in the same order.
template <bool kReadsParts>
OUTRIDER_KERNEL_CODE void find_best(const StepArguments& step) {
  constexpr std::uint32_t kNone = ~0U;
  const auto numbers = numbers_of<BestNumbers>(step);
  const std::uint32_t row = block_y();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const std::uint32_t lane = lane_index();
  const std::uint32_t begin = block_x() * numbers.part;
  const std::uint32_t end = min_of(begin + numbers.part, numbers.n);
  const std::size_t first = std::size_t{row} * numbers.n;
  BestMemory& memory = block_memory<BestMemory>();
  std::uint32_t rank = 0;
  BestOfRow best = {kNone, 0};
  for (std::uint32_t i = begin + lane; i < end; i += kRowThreads) {
    BestOfRow one;
    if constexpr (kReadsParts) {
      one = range_of<const BestOfRow>(step, 1)[first + i];
    } else {
      one = {i, range_of<const std::uint32_t>(step, 1)[first + i]};
    }
    const std::uint32_t rank_of_one = rank_of(one.bits);
    if (best.index == kNone || rank_of_one > rank) {
      rank = rank_of_one;
      best = one;
    }
  }
  memory.ranks[lane] = rank;
  memory.best[lane] = best;
  wait_for_block();
  if (lane != 0) return;
  for (std::uint32_t i = 1; i < kRowThreads; ++i) {
    const BestOfRow other = memory.best[i];
    if (memory.ranks[i] > rank || (memory.ranks[i] == rank && other.index < best.index)) {
      rank = memory.ranks[i];
      best = other;
    }
  }
  range_of<BestOfRow>(step, 2)[std::size_t{row} * numbers.n_parts + block_x()] = best;
}

OUTRIDER_KERNEL_CODE std::uint32_t answer(Function function, float a, float b, float c) {
  switch (function) {
    case Function::fused:
    case Function::fused_by_integers:
    case Function::native_fused:
      return bits_of(fused(a, b, c));
    case Function::divide:
    case Function::divide_by_integers:
    case Function::native_divide:
      return bits_of(divided(a, b));
    case Function::root:
    case Function::root_by_integers:
    case Function::native_root:
      return bits_of(root(a));
    case Function::exponential:
      return bits_of(exponential(a));
    case Function::exponential_of_negative:
      return bits_of(exponential_of_negative(a));
    case Function::round_even:
      return bits_of(round_even(a));
    case Function::from_f16:
      return bits_of(from_f16(bits_of(a) & 0xffffU));
    case Function::to_f16:
      return to_f16(a);
    case Function::from_bf16:
      return bits_of(from_bf16(bits_of(a) & 0xffffU));
    case Function::to_bf16:
      return to_bf16(a);
    case Function::native_multiply:
      return bits_of(product_of(a, b));
    case Function::native_add:
      return bits_of(sum_of(a, b));
  }
  return 0;
}

OUTRIDER_KERNEL_CODE void answer_all(const StepArguments& step) {
  const auto numbers = numbers_of<ArithmeticNumbers>(step);
  const std::uint32_t i = (block_y() * blocks_along_x() + block_x()) * kRowThreads + lane_index();
  if (i >= numbers.n) return;
  range_of<std::uint32_t>(step, 3)[i] =
      answer(numbers.function, range_of<const float>(step, 0)[i], range_of<const float>(step, 1)[i],
             range_of<const float>(step, 2)[i]);
}

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_ROWS_CUH_
