// SPDX-License-Identifier: Apache-2.0
#include "device/trials/trials.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/tables.h"

namespace outrider::device {
namespace {

std::vector<float> edge_floats() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> edges = {0.0F,
                              Limits::denorm_min(),
                              std::bit_cast<float>(0x007fffffU),  // the largest subnormal
                              Limits::min(),
                              std::bit_cast<float>(0x00800001U),
                              0x1p-75F,
                              0x1.000002p-63F,
                              0x1p-24F,
                              0.5F,
                              std::bit_cast<float>(0x3f7fffffU),
                              1.0F,
                              std::bit_cast<float>(0x3f800001U),
                              1.5F,
                              3.0F,
                              0x1.fffffep23F,
                              0x1p24F,
                              0x1.000002p63F,
                              0x1p127F,
                              Limits::max(),
                              Limits::infinity()};
  const std::size_t n = edges.size();
  for (std::size_t i = 0; i < n; ++i) edges.push_back(-edges[i]);
  edges.push_back(Limits::quiet_NaN());
  return edges;
}

int n_operands(Function function) {
  switch (function) {
    case Function::fused:
    case Function::fused_by_integers:
    case Function::native_fused:
      return 3;
    case Function::divide:
    case Function::divide_by_integers:
    case Function::native_divide:
    case Function::native_multiply:
    case Function::native_add:
      return 2;
    default:
      return 1;
  }
}

bool gives_float(Function function) {
  return function != Function::to_f16 && function != Function::to_bf16;
}

struct Operands {
  std::vector<float> a, b, c;
  void add(float of_a, float of_b, float of_c) {
    a.push_back(of_a);
    b.push_back(of_b);
    c.push_back(of_c);
  }
};

void add_edges(Function function, Operands& to) {
  const std::vector<float> edges = edge_floats();
  const std::vector<float> none = {0.0F};
  for (const float a : edges) {
    for (const float b : n_operands(function) > 1 ? edges : none) {
      for (const float c : n_operands(function) > 2 ? edges : none) to.add(a, b, c);
    }
  }
}

// c near -a b: the result depends on the bits that a rounded product would lose.
float cancelling(TrialNumbers& numbers, float a, float b) {
  const float product = a * b;
  const auto off = static_cast<std::uint32_t>(numbers.below(5) - 2);
  return -std::bit_cast<float>(std::bit_cast<std::uint32_t>(product) + off);
}

void add_random(Function function, int n, std::uint32_t seed, Operands& to) {
  TrialNumbers numbers(seed);
  for (int i = 0; i < n; ++i) {
    switch (function) {
      case Function::round_even:
        to.add(numbers.of_size(-3, 22), 0.0F, 0.0F);
        continue;
      case Function::exponential:
      case Function::exponential_of_negative:
        to.add(i % 8 == 0 ? numbers.any_float() : numbers.of_size(-20, 7), 0.0F, 0.0F);
        continue;
      default:
        break;
    }
    const float a = i % 4 == 0 ? numbers.any_float() : numbers.of_size(-40, 40);
    const float b = i % 4 == 0 ? numbers.any_float() : numbers.of_size(-40, 40);
    switch (i % 4) {
      case 0:
        to.add(a, b, numbers.any_float());
        break;
      case 1:
        to.add(a, b, cancelling(numbers, a, b));
        break;
      case 2: {  // c of similar size as the product
        const float of_size = a * b * numbers.of_size(-30, 30);
        to.add(a, b, of_size);
        break;
      }
      default: {  // results around the smallest normal number
        const float small = numbers.of_size(-126, -60);
        to.add(a, small, numbers.of_size(-126, -60) * numbers.of_size(-40, 0));
        break;
      }
    }
  }
}

std::size_t words_of(int rows, int n) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(n);
}

// Buffers of quantised rows, and their indices among a trial's ranges.
struct QuantizedAt {
  std::size_t values, scales, sums, scaled_sums;
  int slots;

  static QuantizedAt add_to(Trial& trial, int max_rows, int k) {
    const int slots = std::max(kernels::row_slots(max_rows), 1);
    const std::size_t n = words_of(kernels::groups_of(k), slots);
    return {trial.add_output(n * kernels::kGroup, false), trial.add_output(n * 4, true),
            trial.add_output(n * 4, false), trial.add_output(n * 4, true), slots};
  }
  QuantizedRanges of(std::span<const Range> ranges) const {
    return {ranges[values], ranges[scales], ranges[sums], ranges[scaled_sums], slots};
  }
};

// Rows to be quantised. Some groups hold only zeros or subnormals, or a large number. In every
// fourth row some groups hold an infinity, a NaN or the largest float, which may make its products
// NaN.
std::vector<float> rows_to_quantize(const TrialRows& rows, int k, TrialNumbers& numbers) {
  std::vector<float> x = numbers.awkward_floats(words_of(rows.max_rows, k));
  for (int row = 0; row < rows.max_rows; ++row) {
    for (int group = 0; group < kernels::groups_of(k); ++group) {
      const int n = std::min(k - group * kernels::kGroup, kernels::kGroup);
      float* const first = x.data() + words_of(row, k) + words_of(group, kernels::kGroup);
      float& one = first[numbers.below(n)];
      switch (numbers.below(24)) {
        case 0:
          if (row % 4 == 3) one = std::numeric_limits<float>::infinity();
          break;
        case 1:
          if (row % 4 == 3) one = std::numeric_limits<float>::quiet_NaN();
          break;
        case 2:
          std::fill_n(first, n, 0.0F);
          break;
        case 3:
          for (int i = 0; i < n; ++i) first[i] *= 0x1p-130F;
          break;
        case 4:
          one = row % 4 == 3 ? std::numeric_limits<float>::max() : 0x1p90F;
          break;
        default:
          break;
      }
    }
  }
  return x;
}

std::vector<std::byte> packed_weights(kernels::WeightKind kind, int n_columns, int k,
                                      TrialNumbers& numbers) {
  const kernels::WeightFormat& format = kernels::kScalarTable.format(kind);
  const std::size_t tile_bytes = format.tile_bytes(k);
  const int n_tiles = (n_columns + kernels::kTileColumns - 1) / kernels::kTileColumns;
  const auto n_groups = static_cast<std::size_t>(kernels::groups_of(k));
  std::vector<std::byte> packed(static_cast<std::size_t>(n_tiles) * tile_bytes);
  for (int tile = 0; tile < n_tiles; ++tile) {
    std::vector<std::vector<std::uint8_t>> codes;
    std::vector<std::vector<std::uint16_t>> scales;
    std::vector<std::vector<std::uint16_t>> minimums;
    kernels::TileSource source{};
    source.k = k;
    const int here = std::min(n_columns - tile * kernels::kTileColumns, kernels::kTileColumns);
    for (int column = 0; column < here; ++column) {
      const std::uint8_t mask = kind == kernels::WeightKind::int4 ? 0x0f : 0xff;
      codes.emplace_back();
      for (int i = 0; i < k; ++i) {
        codes.back().push_back(static_cast<std::uint8_t>(numbers.bits()) & mask);
      }
      scales.emplace_back();
      minimums.emplace_back();
      for (std::size_t i = 0; i < n_groups; ++i) {  // includes subnormals and zeros of both signs
        scales.back().push_back(static_cast<std::uint16_t>(numbers.bits() & 0xa3ffU));
        minimums.back().push_back(static_cast<std::uint16_t>(numbers.bits() & 0xb7ffU));
      }
    }
    for (int column = 0; column < here; ++column) {
      const auto at = static_cast<std::size_t>(column);
      source.values[column] = codes[at].data();
      source.numbers[column].scales = scales[at].data();
      source.numbers[column].minimums = minimums[at].data();
    }
    format.pack_tile(source, packed.data() + static_cast<std::size_t>(tile) * tile_bytes);
  }
  return packed;
}

}  // namespace

Trial arithmetic_trial(Function function, int n_random, std::uint32_t seed) {
  Operands operands;
  if (function == Function::from_f16 || function == Function::from_bf16) {
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
      operands.add(std::bit_cast<float>(bits), 0.0F, 0.0F);
    }
  } else {
    if (function == Function::round_even) {
      for (int i = -256; i <= 256; ++i) operands.add(0.5F * static_cast<float>(i), 0.0F, 0.0F);
    } else {
      add_edges(function, operands);
    }
    add_random(function, n_random, seed, operands);
  }
  Trial trial;
  const int n = static_cast<int>(operands.a.size());
  trial.add_input(operands.a);
  trial.add_input(operands.b);
  trial.add_input(operands.c);
  trial.add_output(operands.a.size() * sizeof(float), gives_float(function));
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {arithmetic(function, n, ranges[0], ranges[1], ranges[2], ranges[3])};
  };
  return trial;
}

Trial quantize_trial(const TrialRows& rows, int k, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = trial.add_input(rows_to_quantize(rows, k, numbers));
  const QuantizedAt out = QuantizedAt::add_to(trial, rows.max_rows, k);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {quantize_rows({ranges[facts], rows.max_rows}, ranges[x], k, out.of(ranges))};
  };
  return trial;
}

Trial product_trial(kernels::WeightKind kind, const TrialRows& rows, int n_columns, int k,
                    std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = trial.add_input(rows_to_quantize(rows, k, numbers));
  const std::size_t tiles = trial.add_input(packed_weights(kind, n_columns, k, numbers));
  const QuantizedAt prepared = QuantizedAt::add_to(trial, rows.max_rows, k);
  const std::size_t y = trial.add_output(words_of(rows.max_rows, n_columns) * sizeof(float), true);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    const Rows of_facts = {ranges[facts], rows.max_rows};
    return {quantize_rows(of_facts, ranges[x], k, prepared.of(ranges)),
            product(of_facts, {kind, ranges[tiles], n_columns, k}, prepared.of(ranges), ranges[y])};
  };
  return trial;
}

Trial product_parts_trial(kernels::WeightKind kind, const TrialRows& rows, int n_columns, int k,
                          std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = trial.add_input(rows_to_quantize(rows, k, numbers));
  constexpr int kFirst = kernels::kTileColumns;
  const std::size_t tiles = trial.add_input(packed_weights(kind, kFirst, k, numbers));
  const std::size_t more_tiles =
      trial.add_input(packed_weights(kind, n_columns - kFirst, k, numbers));
  const QuantizedAt prepared = QuantizedAt::add_to(trial, rows.max_rows, k);
  const std::size_t y = trial.add_output(words_of(rows.max_rows, n_columns) * sizeof(float), true);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    const Rows of_facts = {ranges[facts], rows.max_rows};
    const QuantizedRanges from = prepared.of(ranges);
    return {quantize_rows(of_facts, ranges[x], k, from),
            product(of_facts, {kind, ranges[tiles], kFirst, k, 0, n_columns}, from, ranges[y]),
            product(of_facts, {kind, ranges[more_tiles], n_columns - kFirst, k, kFirst, n_columns},
                    from, ranges[y])};
  };
  return trial;
}

Trial norm_trial(const TrialRows& rows, int n, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = trial.add_input(numbers.awkward_floats(words_of(rows.max_rows, n)));
  const std::size_t weight = trial.add_input(numbers.awkward_floats(words_of(1, n)));
  const std::size_t y = trial.add_output(words_of(rows.max_rows, n) * sizeof(float), true);
  const NormNumbers shape = {.n = static_cast<std::uint32_t>(n), .max_rows = 0, .epsilon = 1e-5F};
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {rms_norm({ranges[facts], rows.max_rows}, ranges[x], ranges[weight], shape, ranges[y])};
  };
  return trial;
}

Trial layer_norm_trial(const TrialRows& rows, int n, bool has_bias, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = trial.add_input(numbers.awkward_floats(words_of(rows.max_rows, n)));
  const std::size_t weight = trial.add_input(numbers.awkward_floats(words_of(1, n)));
  const std::size_t bias = trial.add_input(numbers.awkward_floats(words_of(1, n)));
  std::vector<std::uint32_t> picked(static_cast<std::size_t>(rows.max_rows));
  for (std::uint32_t& row : picked) row = static_cast<std::uint32_t>(numbers.below(rows.max_rows));
  const std::size_t picked_at = trial.add_input(picked);
  const std::size_t y = trial.add_output(words_of(rows.max_rows, n) * sizeof(float), true);
  const NormNumbers shape = {.n = static_cast<std::uint32_t>(n), .max_rows = 0, .epsilon = 1e-5F};
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {layer_norm({ranges[facts], rows.max_rows}, has_bias ? &ranges[picked_at] : nullptr,
                       ranges[x], ranges[weight], has_bias ? &ranges[bias] : nullptr, shape,
                       ranges[y])};
  };
  return trial;
}

Trial apply_rope_trial(const TrialRows& rows, int n_heads, int half, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const int head_dim = 2 * half + seed % 3;  // elements after the rotated ones are kept
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x =
      trial.add_input(numbers.awkward_floats(words_of(rows.max_rows * n_heads, head_dim)));
  trial.buffers[x].is_output = true;
  trial.buffers[x].holds_floats = true;
  std::vector<float> cosines;
  std::vector<float> sines;
  for (std::size_t i = 0; i < words_of(rows.max_rows, half); ++i) {
    cosines.push_back(numbers.of_size(-20, 0));
    sines.push_back(numbers.of_size(-20, 0));
  }
  const std::size_t cosines_at = trial.add_input(cosines);
  const std::size_t sines_at = trial.add_input(sines);
  const ApplyRopeNumbers shape = {.n_heads = static_cast<std::uint32_t>(n_heads),
                                  .head_dim = static_cast<std::uint32_t>(head_dim),
                                  .half = static_cast<std::uint32_t>(half),
                                  .max_rows = 0};
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {apply_rope({ranges[facts], rows.max_rows}, ranges[x], ranges[cosines_at],
                       ranges[sines_at], shape)};
  };
  return trial;
}

}  // namespace outrider::device
