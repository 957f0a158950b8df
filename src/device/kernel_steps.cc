// SPDX-License-Identifier: Apache-2.0
#include "device/kernel_steps.h"

#include <algorithm>

#include "device/make_step.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

// Groups of 32 elements per workgroup of quantize_rows.
constexpr std::uint32_t kGroupsTogether = kLanesOfGroup / 8;
constexpr std::uint32_t kMaxRowsTogether = 8;

}  // namespace

int rows_of(const std::byte* facts, std::uint32_t max_rows) {
  FactWords words;
  std::memcpy(words.data(), facts, sizeof words);
  return static_cast<int>(std::min(words[kFactRows], max_rows));
}

Step quantize_rows(const Rows& rows, const Range& x, int k, const QuantizedRanges& out) {
  Step step = step_of(Kernel::quantize_rows,
                      {reads(rows.facts), reads(x), writes(out.values), writes(out.scales),
                       writes(out.sums), writes(out.scaled_sums)},
                      QuantizeNumbers{word(k), word(out.slots), word(rows.max_rows)});
  step.grid = {parts_of(word(kernels::groups_of(k)), kGroupsTogether), word(rows.max_rows), 1};
  return step;
}

Step product(const Rows& rows, const WeightRange& weights, const QuantizedRanges& x,
             const Range& y) {
  const bool has_minimums = weights.kind == kernels::WeightKind::int4;
  if (!has_minimums && weights.kind != kernels::WeightKind::int8) {
    throw Error("record", "product", "weights in int8 or int4", kernels::name_of(weights.kind));
  }
  std::vector<Use> uses = {reads(rows.facts), reads(weights.tiles), reads(x.values),
                           reads(x.scales)};
  if (has_minimums) uses.push_back(reads(x.scaled_sums));
  const bool is_whole = weights.all_columns == 0;
  uses.push_back(is_whole ? writes(y) : changes(y));  // the other columns are unchanged
  Step step = step_of(
      has_minimums ? Kernel::product_int4 : Kernel::product_int8, std::move(uses),
      ProductNumbers{word(weights.n_columns), word(weights.k), word(x.slots), word(rows.max_rows),
                     word(is_whole ? weights.n_columns : weights.all_columns),
                     word(weights.first_column)});
  while (step.variant < kMaxRowsTogether && step.variant < word(rows.max_rows)) step.variant *= 2;
  step.grid = {parts_of(word(weights.n_columns), word(kernels::kTileColumns)),
               parts_of(word(rows.max_rows), step.variant), 1};
  return step;
}

Step rms_norm(const Rows& rows, const Range& x, const Range& weight, const NormNumbers& shape,
              const Range& y) {
  Step step = step_of(Kernel::rms_norm, {reads(rows.facts), reads(x), reads(weight), writes(y)},
                      NormNumbers{shape.n, word(rows.max_rows), shape.epsilon});
  step.grid = {word(rows.max_rows), 1, 1};
  return step;
}

Step layer_norm(const Rows& rows, const Range* picked, const Range& x, const Range& weight,
                const Range* bias, const NormNumbers& shape, const Range& y) {
  const Range& of_bias = bias != nullptr ? *bias : weight;  // not read without a bias
  const Range& of_rows = picked != nullptr ? *picked : rows.facts;
  Step step = step_of(
      Kernel::layer_norm,
      {reads(rows.facts), reads(of_rows), reads(x), reads(weight), reads(of_bias), writes(y)},
      LayerNormNumbers{shape.n, word(rows.max_rows), shape.epsilon, bias != nullptr ? 1U : 0U,
                       picked != nullptr ? 1U : 0U});
  step.grid = {word(rows.max_rows), 1, 1};
  return step;
}

Step apply_rope(const Rows& rows, const Range& x, const Range& cosines, const Range& sines,
                const ApplyRopeNumbers& shape) {
  Step step =
      step_of(Kernel::apply_rope,
              {reads(rows.facts), {x, Access::read_write}, reads(cosines), reads(sines)},
              ApplyRopeNumbers{shape.n_heads, shape.head_dim, shape.half, word(rows.max_rows)});
  step.grid = {parts_of(shape.n_heads * shape.half, kLanesOfGroup), word(rows.max_rows), 1};
  return step;
}

Step arithmetic(Function function, int n, const Range& a, const Range& b, const Range& c,
                const Range& y) {
  Step step = step_of(Kernel::arithmetic, {reads(a), reads(b), reads(c), writes(y)},
                      ArithmeticNumbers{word(n), function});
  step.variant = static_cast<std::uint32_t>(function);
  // Uses two axes: on some devices one has too few workgroups for millions of numbers.
  const std::uint32_t groups = parts_of(word(n), kLanesOfGroup);
  constexpr std::uint32_t kOfAxis = 1024;
  step.grid = {std::min(groups, kOfAxis), parts_of(groups, kOfAxis), 1};
  return step;
}

}  // namespace outrider::device
