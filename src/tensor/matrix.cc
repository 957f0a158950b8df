// SPDX-License-Identifier: Apache-2.0
#include "tensor/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <exception>

#include "base/float16.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using kernels::groups_of;
using kernels::kGroup;
using kernels::kTileColumns;

// The least part of a matrix that a thread takes at once, unless an even share is less: several
// microseconds of streaming, compared with which taking it (one exchange with another core's cache)
// is cheap. Except for each thread's first part, a part's first block is not prefetched; with many
// rows it is a third of the part. 24 and 48 KB were no faster.
constexpr std::int64_t kMinPartBytes = 96 * 1024;

// Tiles that kernels process in parallel streams; a part's remaining tiles come in one stream.
constexpr std::int64_t kTogether = 4;
// If a thread has kManyTogether times as many, parts are whole multiples of kTogether. With fewer,
// an even share matters more.
constexpr std::int64_t kManyTogether = 8;

// The most that a thread prefetches of its first part: half of the smallest L2 caches. (A gap
// between two products lasts 2 to 5 us, in which a core reads 50 to 130 KB.)
constexpr std::int64_t kMaxAheadBytes = 128 * 1024;

// A NaN weight must show in the logits and not vanish by rounding: its whole group gets a NaN
// scale.
constexpr std::uint16_t kNanScale = 0x7e00;

bool has_nan(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); });
}

// value rounded half to even and clamped to low..high; NaN gives low.
int round_within(float value, int low, int high) {
  const float rounded = std::nearbyint(value);
  if (!(rounded > static_cast<float>(low))) return low;
  return rounded < static_cast<float>(high) ? static_cast<int>(rounded) : high;
}

void quantize_group_int8(std::span<const float> values, std::int8_t* out, std::uint16_t& scale) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  const F16 rounded = to_f16(largest / 127);
  scale = rounded.bits;
  const float step = to_float(rounded);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i] = step == 0 ? std::int8_t{0}
                       : static_cast<std::int8_t>(round_within(values[i] / step, -127, 127));
  }
  if (has_nan(values)) scale = kNanScale;
}

void quantize_group_int4(std::span<const float> values, std::uint8_t* out, std::uint16_t& scale,
                         std::uint16_t& minimum) {
  float low = values[0];
  float high = values[0];
  for (const float value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const F16 rounded_low = to_f16(low);
  const F16 rounded_step = to_f16((high - low) / 15);
  minimum = rounded_low.bits;
  scale = rounded_step.bits;
  const float base = to_float(rounded_low);
  const float step = to_float(rounded_step);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i] = step == 0 ? std::uint8_t{0}
                       : static_cast<std::uint8_t>(round_within((values[i] - base) / step, 0, 15));
  }
  if (has_nan(values)) scale = kNanScale;
}

// The numbers of row `index` of n_rows, in a vector with equally many per row.
template <class Number>
const Number* part_of(const std::vector<Number>& numbers, int index, int n_rows) {
  return numbers.data() +
         numbers.size() / static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(index);
}

const void* values_of(const WeightRows& rows, WeightKind kind, int index, int n_rows) {
  switch (kind) {
    case WeightKind::f32:
      return part_of(rows.f32, index, n_rows);
    case WeightKind::bf16:
      return part_of(rows.bf16, index, n_rows);
    case WeightKind::int8:
      return part_of(rows.int8, index, n_rows);
    case WeightKind::int4:
      return part_of(rows.int4, index, n_rows);
    default:
      return part_of(rows.codes, index, n_rows);
  }
}

// The rows of `rows`, at most sixteen, in the packer's form; null past n_rows.
kernels::TileSource tile_source(const WeightRows& rows, WeightKind kind, int n_rows, int k) {
  kernels::TileSource source{};
  source.k = k;
  for (int i = 0; i < n_rows; ++i) {
    source.values[i] = values_of(rows, kind, i, n_rows);
    source.numbers[i] = {.scales = part_of(rows.scales, i, n_rows),
                         .minimums = part_of(rows.minimums, i, n_rows),
                         .sub_scales = part_of(rows.sub_scales, i, n_rows),
                         .sub_minimums = part_of(rows.sub_minimums, i, n_rows),
                         .f32_scales = part_of(rows.f32_scales, i, n_rows)};
  }
  return source;
}

}  // namespace

void quantize_weights(std::span<const float> values, std::int64_t n_rows, std::int64_t k,
                      WeightKind kind, WeightRows& rows) {
  const auto n = static_cast<std::size_t>(n_rows * k);
  rows = WeightRows{};
  if (kind == WeightKind::f32) {
    rows.f32.assign(values.begin(), values.end());
    return;
  }
  if (kind == WeightKind::bf16) {
    rows.bf16.resize(n);
    for (std::size_t i = 0; i < n; ++i) rows.bf16[i] = to_bf16(values[i]).bits;
    return;
  }
  if (kind != WeightKind::int8 && kind != WeightKind::int4) {
    throw Error("quantise weights", "kind", "f32, bf16, int8 or int4", kernels::name_of(kind));
  }
  const auto groups = static_cast<std::int64_t>(groups_of(static_cast<int>(k)));
  const auto n_groups = static_cast<std::size_t>(n_rows * groups);
  rows.scales.resize(n_groups);
  if (kind == WeightKind::int8) rows.int8.resize(n);
  if (kind == WeightKind::int4) {
    rows.int4.resize(n);
    rows.minimums.resize(n_groups);
  }
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const auto at = static_cast<std::size_t>(row * k + group * kGroup);
      const auto length =
          static_cast<std::size_t>(std::min<std::int64_t>(kGroup, k - group * kGroup));
      const auto index = static_cast<std::size_t>(row * groups + group);
      const std::span<const float> part = values.subspan(at, length);
      if (kind == WeightKind::int8) {
        quantize_group_int8(part, rows.int8.data() + at, rows.scales[index]);
      } else {
        quantize_group_int4(part, rows.int4.data() + at, rows.scales[index], rows.minimums[index]);
      }
    }
  }
}

ActivationForms ActivationForms::of(WeightKind kind, const KernelTable& table) {
  const kernels::ActivationForm reads = table.format(kind).reads;
  const bool halves = reads == kernels::ActivationForm::block_halves;
  return {.int8 = reads == kernels::ActivationForm::int8,
          .blocks = halves || reads == kernels::ActivationForm::blocks,
          .block_halves = halves,
          .bf16 = reads == kernels::ActivationForm::bf16};
}

ActivationForms& ActivationForms::operator|=(const ActivationForms& other) {
  int8 |= other.int8;
  blocks |= other.blocks;
  block_halves |= other.block_halves;
  bf16 |= other.bf16;
  return *this;
}

void Activations::resize(int n_rows, int k, const ActivationForms& forms, Reads reads) {
  const auto grow = [](auto& vector, std::size_t n) {
    if (vector.size() < n) vector.resize(n);
  };
  n_rows_ = n_rows;
  k_ = k;
  // A product of n rows reads row_slots(n) of them, at most n + 15.
  slots_ = kernels::row_slots(reads == Reads::any_rows ? n_rows + 15 : n_rows);
  forms_ = forms;
  // No matrix in blocks can read it.
  if (k % kernels::kBlock != 0) forms_.blocks = false;
  grow(x_, static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(k));
  const std::size_t groups = static_cast<std::size_t>(slots_) * groups_of(k);
  if (forms.int8) {
    grow(q_, groups * kGroup);
    grow(scales_, groups);
    grow(sums_, groups);
    grow(scaled_sums_, groups);
  }
  if (forms_.blocks) {
    const std::size_t blocks = static_cast<std::size_t>(slots_) * kernels::blocks_of(k);
    grow(block_q_, blocks * kernels::kBlock);
    grow(block_scales_, blocks);
    grow(group_sums_, blocks * kernels::kBlockGroups);
    grow(float_sums_, blocks * kernels::kBlockGroups);
    if (forms.block_halves) grow(half_sums_, blocks * (2 * kernels::kBlockGroups));
  }
  if (forms.bf16) grow(rounded_, groups * kGroup);
}

void Activations::quantize_row(const KernelTable& table, int index) {
  quantize_part(table, index, 0, k_);
}

void Activations::quantize_part(const KernelTable& table, int index, int first, int n) {
  const std::size_t place = static_cast<std::size_t>(first / kGroup) * slots_ + index;
  const float* x = row(index) + first;
  if (forms_.int8) {
    table.quantize_row(x, n,
                       {.values = q_.data() + place * kGroup,
                        .scales = scales_.data() + place,
                        .sums = sums_.data() + place,
                        .scaled_sums = scaled_sums_.data() + place,
                        .slots = slots_});
  }
  if (forms_.blocks) {
    const auto slots = static_cast<std::size_t>(slots_);
    const std::size_t block = static_cast<std::size_t>(first / kernels::kBlock) * slots + index;
    const std::size_t run = static_cast<std::size_t>(first / kernels::kBlockRun) * slots + index;
    const std::size_t sums = block * kernels::kBlockGroups;
    table.quantize_blocks(
        x, n,
        {.values = block_q_.data() + run * kernels::kBlockRun,
         .scales = block_scales_.data() + block,
         .group_sums = group_sums_.data() + sums,
         .float_sums = float_sums_.data() + sums,
         .half_sums = forms_.block_halves ? half_sums_.data() + 2 * sums : nullptr,
         .slots = slots_});
  }
  if (forms_.bf16) table.round_row(x, n, rounded_.data() + place * kGroup, slots_);
}

Matrix::Matrix(const WeightReader& reader, const KernelTable& table) : table_(&table) {
  const std::int64_t n_rows = reader.n_rows();
  const std::int64_t k = reader.k();
  // Fits into int even when rounded up to whole tiles and groups.
  constexpr std::int64_t kMax = INT_MAX - 64;
  if (n_rows < 1 || k < 1 || n_rows > kMax || k > kMax) {
    throw Error("pack matrix", "shape", fmt::format("between 1 and {} rows and columns", kMax),
                fmt::format("{} x {}", n_rows, k));
  }
  kind_ = reader.kind();
  n_columns_ = static_cast<int>(n_rows);
  k_ = static_cast<int>(k);
  n_bytes_ = table.format(kind_).tile_bytes(k_) * static_cast<std::size_t>(n_tiles());
}

Matrix Matrix::pack(const WeightReader& reader, const KernelTable& table, int n_threads) {
  Matrix matrix(reader, table);
  matrix.tiles_ = allocate_pooled_memory(matrix.n_bytes_);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(n_threads));
  run_team(n_threads, [&](const Team& team) {
    try {
      WeightRows rows;
      matrix.pack_tiles(reader, team.share(matrix.n_tiles()), rows);
    } catch (...) {
      failures[static_cast<std::size_t>(team.index())] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return matrix;
}

Matrix Matrix::in_file(std::shared_ptr<const WeightReader> reader, const KernelTable& table) {
  Matrix matrix(*reader, table);
  matrix.reader_ = std::move(reader);
  return matrix;
}

namespace {

class RowsOfReader final : public WeightReader {
 public:
  RowsOfReader(const WeightReader& all, const Range& rows) : all_(&all), rows_(rows) {}

  WeightKind kind() const override { return all_->kind(); }
  std::int64_t n_rows() const override { return rows_.end - rows_.begin; }
  std::int64_t k() const override { return all_->k(); }
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override {
    all_->read(rows_.begin + first_row, n_rows, rows);
  }

 private:
  const WeightReader* all_;
  Range rows_;
};

}  // namespace

Matrix Matrix::pack_rows(const Range& rows, int n_threads) const {
  return pack(RowsOfReader(*reader_, rows), *table_, n_threads);
}

Matrix Matrix::placed_at(PooledMemory memory) const {
  Matrix matrix = *this;
  matrix.tiles_ = std::move(memory);
  return matrix;
}

void Matrix::pack_tiles(const Range& tiles, WeightRows& rows) const {
  pack_tiles(*reader_, tiles, rows);
}

void Matrix::pack_tiles(const WeightReader& reader, const Range& tiles, WeightRows& rows) const {
  const kernels::WeightFormat& format = table_->format(kind_);
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t first = tile * kTileColumns;
    const std::int64_t n = std::min<std::int64_t>(kTileColumns, n_columns_ - first);
    reader.read(first, n, rows);
    format.pack_tile(tile_source(rows, kind_, static_cast<int>(n), k_),
                     tiles_.get() + tile * tile_bytes());
  }
}

kernels::MatmulArgs Matrix::arguments(const Activations& x, const Range& rows, float* y,
                                      std::size_t y_stride) const {
  // Forms that x lacks stay empty.
  const auto from = [&rows](const auto& numbers, std::size_t of_row) {
    return numbers.empty() ? nullptr
                           : numbers.data() + static_cast<std::size_t>(rows.begin) * of_row;
  };
  return {
      .tiles = tiles_.get(),
      .first_tile = 0,
      .n_tiles = 0,
      .n_columns = n_columns_,
      .k = k_,
      .n_rows = static_cast<int>(rows.end - rows.begin),
      .x = from(x.x_, static_cast<std::size_t>(x.k_)),
      .x_stride = static_cast<std::size_t>(x.k_),
      .slots = x.slots_,
      .quantized = from(x.q_, kGroup),
      .quantized_scales = from(x.scales_, 1),
      .quantized_sums = from(x.sums_, 1),
      .scaled_sums = from(x.scaled_sums_, 1),
      .block_values = from(x.block_q_, kernels::kBlockRun),
      .block_scales = from(x.block_scales_, 1),
      .group_sums = from(x.group_sums_, kernels::kBlockGroups),
      .float_sums = from(x.float_sums_, kernels::kBlockGroups),
      .half_sums = from(x.half_sums_, std::size_t{2} * kernels::kBlockGroups),
      .rounded = from(x.rounded_, kGroup),
      .y = y,
      .y_stride = y_stride,
  };
}

void Matrix::multiply(const Team& team, const Activations& x, float* y,
                      std::size_t y_stride) const {
  kernels::MatmulArgs args = arguments(x, {0, x.n_rows_}, y, y_stride);
  const Parts parts = parts_for(team);
  team.parallel_for_dynamic(parts.n, parts.min_size, [&](const Range& part) {
    args.first_tile = static_cast<int>(part.begin * parts.n_tiles);
    args.n_tiles =
        static_cast<int>(std::min(part.end * parts.n_tiles, n_tiles())) - args.first_tile;
    table_->format(kind_).matmul(args);
  });
}

void Matrix::multiply_part(const Activations& x, const Range& rows, const Range& groups, float* y,
                           std::size_t y_stride) const {
  kernels::MatmulArgs args = arguments(x, rows, y, y_stride);
  args.first_tile = static_cast<int>(groups.begin * kTogether);
  args.n_tiles = static_cast<int>(std::min(groups.end * kTogether, n_tiles())) - args.first_tile;
  table_->format(kind_).matmul(args);
}

std::int64_t Matrix::n_groups() const { return (n_tiles() + kTogether - 1) / kTogether; }

std::int64_t Matrix::min_groups() const {
  const std::int64_t min_tiles = std::max<std::int64_t>(kMinPartBytes / tile_bytes(), kTogether);
  return (min_tiles + kTogether - 1) / kTogether;
}

void Matrix::set_prefetch(const Team& team) const {
  const Parts parts = parts_for(team);
  const Range part = team.first_part(parts.n, parts.min_size);
  const auto bytes_before = [&](std::int64_t group) {
    return std::min(group * parts.n_tiles, n_tiles()) * tile_bytes();
  };
  const std::int64_t begin = bytes_before(part.begin);
  const std::int64_t n_bytes = std::min(bytes_before(part.end) - begin, kMaxAheadBytes);
  team.set_prefetch(tiles_.get() + begin, static_cast<std::size_t>(n_bytes));
}

std::int64_t Matrix::n_tiles() const { return (n_columns_ + kTileColumns - 1) / kTileColumns; }

Matrix::Parts Matrix::parts_for(const Team& team) const {
  const std::int64_t min_size = std::max<std::int64_t>(kMinPartBytes / tile_bytes(), kTogether);
  if (n_tiles() < kManyTogether * kTogether * team.size()) {
    return {.n = n_tiles(), .n_tiles = 1, .min_size = min_size};
  }
  return {.n = n_groups(), .n_tiles = kTogether, .min_size = min_groups()};
}

}  // namespace outrider
