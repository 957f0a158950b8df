// SPDX-License-Identifier: Apache-2.0
#include "io/blocks/super_block_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/float16.h"
#include "base/lanes.h"

namespace outrider {
namespace {

constexpr int kElements = 256;
constexpr int kRounds = 3;      // over step 4
constexpr int kMaxRepeats = 4;  // of a group's own fit
// Half of the smallest magnitude of f16 scales.
constexpr float kNothing = 0x1p-25F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// --- Sums over a group --------------------------------------------------------------------------

float sum_of(const Float4& lanes) { return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]); }

// To nearest, ties to even, for magnitudes below 2^22.
Float4 rounded(const Float4& values) {
  constexpr float kMagic = 0x1.8p23F;
  return (values + kMagic) - kMagic;
}

Float4 clamped(const Float4& values, float least, float most) {
  const Float4 low = {least, least, least, least};
  const Float4 high = {most, most, most, most};
  const Float4 raised = values < low ? low : values;
  return raised > high ? high : raised;
}

// How a group's elements get codes: the nearest to x * inverse + offset.
struct Coding {
  float inverse;
  float offset;
  float least;
  float most;
  Float4 codes(const Float4& x) const {
    return rounded(clamped(x * inverse + offset, least, most));
  }
};

// Sums over a group with codes q and elements x.
struct Sums {
  double q = 0;
  double qq = 0;
  double qx = 0;
};

// Over n elements, with the sums that do not depend on codes.
template <int n>
struct Group {
  const float* x = nullptr;
  double sum_x = 0;
  double sum_xx = 0;

  void start(const float* values) {
    x = values;
    Float4 sum = {};
    Float4 squares = {};
    for (int i = 0; i < n; i += 4) {
      const auto value = load_lanes<Float4>(x + i);
      sum += value;
      squares += value * value;
    }
    sum_x = double{sum_of(sum)};
    sum_xx = double{sum_of(squares)};
  }

  Sums sums(const Coding& coding) const {
    Float4 q_sum = {};
    Float4 qq_sum = {};
    Float4 qx_sum = {};
    for (int i = 0; i < n; i += 4) {
      const auto value = load_lanes<Float4>(x + i);
      const Float4 q = coding.codes(value);
      q_sum += q;
      qq_sum += q * q;
      qx_sum += q * value;
    }
    return {double{sum_of(q_sum)}, double{sum_of(qq_sum)}, double{sum_of(qx_sum)}};
  }

  // The error of step * code - minimum.
  float error(const Coding& coding, float step, float minimum) const {
    Float4 sum = {};
    for (int i = 0; i < n; i += 4) {
      const auto value = load_lanes<Float4>(x + i);
      const Float4 apart = coding.codes(value) * step - minimum - value;
      sum += apart * apart;
    }
    return sum_of(sum);
  }

  // Codes are stored from `zero` on.
  void store_codes(const Coding& coding, int zero, std::uint8_t* to) const {
    for (int i = 0; i < n; i += 4) {
      const Float4 q = coding.codes(load_lanes<Float4>(x + i));
      for (int lane = 0; lane < 4; ++lane) {
        to[i + lane] = static_cast<std::uint8_t>(static_cast<int>(q[lane]) + zero);
      }
    }
  }
};

bool is_nothing(const float* values) {
  return std::all_of(values, values + kElements, [](float x) { return std::fabs(x) < kNothing; });
}

// --- Scales -------------------------------------------------------------------------------------

// Rounds to f16, but never to zero unless the value is zero.
F16 scale_for(double value) {
  const F16 scale = to_f16(static_cast<float>(value));
  if (value == 0 || (scale.bits & 0x7fffU) != 0) return scale;
  return F16{static_cast<std::uint16_t>(scale.bits | 1U)};
}

float reciprocal_of(float step) { return step == 0 ? 0.0F : 1.0F / step; }

int nearest(float value, F16 unit, int least, int most) {
  const double multiple = double{value} * reciprocal_of(to_float(unit));
  return static_cast<int>(std::clamp(std::round(multiple), double(least), double(most)));
}

// The f16 whose multiples from `least` to `most` approximate the groups' values best. The largest
// value becomes `end` times the unit, or less: down to three quarters, where a unit is a third
// coarser.
template <std::size_t n>
F16 unit_for(const std::array<float, n>& wanted, int end, int least, int most) {
  constexpr int kTrials = 17;
  float largest = 0;
  for (const float value : wanted) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  F16 best = {};
  float min_error = kInfinity;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double multiple = end * (1 - trial / (4.0 * (kTrials - 1)));
    const F16 unit = scale_for(double{largest} / multiple);
    const Coding coding{reciprocal_of(to_float(unit)), 0, static_cast<float>(least),
                        static_cast<float>(most)};
    Float4 error = {};
    for (std::size_t i = 0; i < n; i += 4) {
      const auto value = load_lanes<Float4>(wanted.data() + i);
      const Float4 apart = coding.codes(value) * to_float(unit) - value;
      error += apart * apart;
    }
    if (sum_of(error) < min_error) {
      min_error = sum_of(error);
      best = unit;
    }
  }
  return best;
}

// --- Blocks with minimums -----------------------------------------------------------------------

constexpr int kGroup = 32;
constexpr int kGroups = kElements / kGroup;
constexpr int kMaxSubScale = 63;
using Affine = Group<kGroup>;

Coding coding_of(float step, float minimum, int top_code) {
  const float inverse = reciprocal_of(step);
  return {inverse, minimum * inverse, 0, static_cast<float>(top_code)};
}

struct Line {
  double step = 0;
  double minimum = 0;  // at least 0
  double error = kInfinity;
};

// Fits a line through codes with these sums: least squares, with a non-negative step and minimum.
Line line_of(const Affine& group, const Sums& sums) {
  Line line;
  const double determinant = kGroup * sums.qq - sums.q * sums.q;  // an integer, exactly
  const bool is_regular = determinant > 0;                        // otherwise all codes are equal
  if (is_regular) {
    line.step = (kGroup * sums.qx - sums.q * group.sum_x) / determinant;
    line.minimum = (sums.q * sums.qx - sums.qq * group.sum_x) / determinant;
  }
  if (!is_regular || line.minimum < 0) {
    line.step = sums.qq > 0 ? sums.qx / sums.qq : 0;
    line.minimum = 0;
  }
  if (line.step <= 0) return {};
  line.error = group.sum_xx + line.step * (line.step * sums.qq - 2 * sums.qx) +
               line.minimum * (line.minimum * kGroup + 2 * group.sum_x - 2 * line.step * sums.q);
  return line;
}

Line fit_line(const Affine& group, int top_code) {
  const auto [least, most] = std::minmax_element(group.x, group.x + kGroup);
  const float low = std::min(0.0F, *least);
  const float range = *most - low;
  Line best{0, -low, kInfinity};
  if (!(range > kNothing)) return best;
  const auto top = static_cast<float>(top_code);
  // The range is as wide as the number of codes, or up to one more or less, and begins at code 0 or
  // up to two thirds of a code below. (An outlier makes steps wide, and then the beginning of codes
  // matters.)
  constexpr std::array kWidths = {-1.0F, -0.5F, 0.0F, 0.5F, 1.0F};
  constexpr std::array kBeginnings = {0.0F, 1.0F / 3, 2.0F / 3};
  for (const float width : kWidths) {
    const float inverse = (top + width) / range;
    for (const float beginning : kBeginnings) {
      const Coding coding{inverse, -low * inverse - beginning, 0, top};
      const Line line = line_of(group, group.sums(coding));
      if (line.error < best.error) best = line;
    }
  }
  for (int i = 0; i < kMaxRepeats && best.step > 0; ++i) {
    const auto coding =
        coding_of(static_cast<float>(best.step), static_cast<float>(best.minimum), top_code);
    const Line line = line_of(group, group.sums(coding));
    if (!(line.error < best.error)) break;
    best = line;
  }
  return best;
}

// A block's scales, and its groups' integers.
struct AffineScales {
  F16 scale;
  F16 minimum;
  std::array<int, kGroups> sub_scales;
  std::array<int, kGroups> sub_minimums;
  float step(std::size_t group) const {
    return to_float(scale) * static_cast<float>(sub_scales[group]);
  }
  float sub_minimum(std::size_t group) const {
    return to_float(minimum) * static_cast<float>(sub_minimums[group]);
  }
  Coding coding(std::size_t group, int top_code) const {
    return coding_of(step(group), sub_minimum(group), top_code);
  }
};

// Replaces one group's integers by the best of their neighbours; returns its error.
float improve(const Affine& group, std::size_t index, int top_code, AffineScales& scales) {
  const AffineScales before = scales;
  float least = kInfinity;
  AffineScales tried = before;
  for (int scale = -1; scale <= 1; ++scale) {
    for (int minimum = -1; minimum <= 1; ++minimum) {
      tried.sub_scales[index] = std::clamp(before.sub_scales[index] + scale, 0, kMaxSubScale);
      tried.sub_minimums[index] = std::clamp(before.sub_minimums[index] + minimum, 0, kMaxSubScale);
      const float error =
          group.error(tried.coding(index, top_code), tried.step(index), tried.sub_minimum(index));
      if (error < least) {
        least = error;
        scales.sub_scales[index] = tried.sub_scales[index];
        scales.sub_minimums[index] = tried.sub_minimums[index];
      }
    }
  }
  return least;
}

// Fits the block's scales by least squares to its integers and the resulting codes.
void refit(const std::array<Affine, kGroups>& groups, int top_code, AffineScales& scales) {
  double aa = 0;  // a: sub_scale * code, b: sub_minimum
  double ab = 0;
  double bb = 0;
  double ax = 0;
  double bx = 0;
  for (std::size_t i = 0; i < kGroups; ++i) {
    const Sums sums = groups[i].sums(scales.coding(i, top_code));
    const double a = scales.sub_scales[i];
    const double b = scales.sub_minimums[i];
    aa += a * a * sums.qq;
    ab += a * b * sums.q;
    bb += b * b * kGroup;
    ax += a * sums.qx;
    bx += b * groups[i].sum_x;
  }
  // value = scale * a - minimum * b
  const double determinant = aa * bb - ab * ab;
  double scale = aa > 0 ? ax / aa : 0;
  double minimum = 0;
  if (determinant > 0) {
    scale = (ax * bb - ab * bx) / determinant;
    minimum = (ax * ab - aa * bx) / determinant;
  } else if (aa == 0 && bb > 0) {
    minimum = -bx / bb;
  }
  if (scale < 0 || minimum < 0) return;
  scales.scale = scale_for(scale);
  scales.minimum = scale_for(minimum);
}

}  // namespace

void fit_with_minimums(const float* values, int top_code, BlockParts& parts) {
  parts = {};
  if (is_nothing(values)) return;
  std::array<Affine, kGroups> groups;
  std::array<float, kGroups> steps;
  std::array<float, kGroups> minimums;
  for (std::size_t i = 0; i < kGroups; ++i) {
    groups[i].start(values + kGroup * i);
    const Line line = fit_line(groups[i], top_code);
    steps[i] = static_cast<float>(line.step);
    minimums[i] = static_cast<float>(line.minimum);
  }
  AffineScales scales;
  scales.scale = unit_for(steps, kMaxSubScale, 0, kMaxSubScale);
  scales.minimum = unit_for(minimums, kMaxSubScale, 0, kMaxSubScale);
  for (std::size_t i = 0; i < kGroups; ++i) {
    scales.sub_scales[i] = nearest(steps[i], scales.scale, 0, kMaxSubScale);
    scales.sub_minimums[i] = nearest(minimums[i], scales.minimum, 0, kMaxSubScale);
  }
  AffineScales best = scales;
  double min_error = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    double error = 0;
    for (std::size_t i = 0; i < kGroups; ++i) error += improve(groups[i], i, top_code, scales);
    if (!(error < min_error)) break;
    min_error = error;
    best = scales;
    refit(groups, top_code, scales);
  }
  parts.scale = best.scale.bits;
  parts.minimum = best.minimum.bits;
  for (std::size_t i = 0; i < kGroups; ++i) {
    parts.sub_scales[i] = static_cast<std::int8_t>(best.sub_scales[i]);
    parts.sub_minimums[i] = static_cast<std::uint8_t>(best.sub_minimums[i]);
    groups[i].store_codes(best.coding(i, top_code), 0, parts.codes.data() + kGroup * i);
  }
}

// --- Blocks with signed sub-scales --------------------------------------------------------------

namespace {

constexpr int kSignedGroup = 16;
constexpr int kSignedGroups = kElements / kSignedGroup;
constexpr int kMinCode = -32;
constexpr int kMaxCode = 31;
constexpr int kMinSubScale = -128;
constexpr int kMaxSignedSubScale = 127;
using Signed = Group<kSignedGroup>;

Coding signed_coding(float inverse) {
  return {inverse, 0, static_cast<float>(kMinCode), static_cast<float>(kMaxCode)};
}

float step_of(F16 scale, int sub_scale) { return to_float(scale) * static_cast<float>(sub_scale); }

Coding signed_coding(F16 scale, int sub_scale) {
  return signed_coding(reciprocal_of(step_of(scale, sub_scale)));
}

float larger_magnitude(float left, float right) {
  return std::fabs(left) < std::fabs(right) ? right : left;
}

// The step of one group, positive or negative.
double fit_step(const Signed& group) {
  // The element of largest magnitude becomes -32, changed by up to this many tenths of a code.
  constexpr int kWidths = 9;
  float extreme = 0;
  for (int i = 0; i < kSignedGroup; ++i) extreme = larger_magnitude(extreme, group.x[i]);
  if (!(std::fabs(extreme) > kNothing)) return 0;
  double best = 0;
  double most = 0;  // of the error's reduction by a step
  const auto consider = [&](const Coding& coding) {
    const Sums sums = group.sums(coding);
    if (!(sums.qq > 0) || !(sums.qx * sums.qx > most * sums.qq)) return false;
    most = sums.qx * sums.qx / sums.qq;
    best = sums.qx / sums.qq;
    return true;
  };
  for (int width = -kWidths; width <= kWidths; ++width) {
    const float code = static_cast<float>(kMinCode) + 0.1F * static_cast<float>(width);
    consider(signed_coding(code / extreme));
  }
  for (int i = 0; i < kMaxRepeats; ++i) {
    if (!consider(signed_coding(reciprocal_of(static_cast<float>(best))))) break;
  }
  return best;
}

struct SignedScales {
  F16 scale;
  std::array<int, kSignedGroups> sub_scales;
};

// As for blocks with minimums.
float improve(const Signed& group, F16 scale, int& sub_scale) {
  const int before = sub_scale;
  float least = kInfinity;
  for (const int tried : {before, before - 1, before + 1}) {
    if (tried < kMinSubScale || tried > kMaxSignedSubScale) continue;
    const float error = group.error(signed_coding(scale, tried), step_of(scale, tried), 0);
    if (error < least) {
      least = error;
      sub_scale = tried;
    }
  }
  return least;
}

void refit(const std::array<Signed, kSignedGroups>& groups, SignedScales& scales) {
  double aa = 0;  // a: sub_scale * code
  double ax = 0;
  for (std::size_t i = 0; i < kSignedGroups; ++i) {
    const Sums sums = groups[i].sums(signed_coding(scales.scale, scales.sub_scales[i]));
    const double a = scales.sub_scales[i];
    aa += a * a * sums.qq;
    ax += a * sums.qx;
  }
  if (aa > 0) scales.scale = scale_for(ax / aa);
}

}  // namespace

void fit_signed(const float* values, BlockParts& parts) {
  parts = {};
  parts.codes.fill(-kMinCode);
  if (is_nothing(values)) return;
  std::array<Signed, kSignedGroups> groups;
  std::array<float, kSignedGroups> steps;
  for (std::size_t i = 0; i < kSignedGroups; ++i) {
    groups[i].start(values + kSignedGroup * i);
    steps[i] = static_cast<float>(fit_step(groups[i]));
  }
  SignedScales scales;
  scales.scale = unit_for(steps, kMinSubScale, kMinSubScale, kMaxSignedSubScale);
  for (std::size_t i = 0; i < kSignedGroups; ++i) {
    scales.sub_scales[i] = nearest(steps[i], scales.scale, kMinSubScale, kMaxSignedSubScale);
  }
  SignedScales best = scales;
  double min_error = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    double error = 0;
    for (std::size_t i = 0; i < kSignedGroups; ++i) {
      error += double{improve(groups[i], scales.scale, scales.sub_scales[i])};
    }
    if (!(error < min_error)) break;
    min_error = error;
    best = scales;
    refit(groups, scales);
  }
  parts.scale = best.scale.bits;
  for (std::size_t i = 0; i < kSignedGroups; ++i) {
    parts.sub_scales[i] = static_cast<std::int8_t>(best.sub_scales[i]);
    groups[i].store_codes(signed_coding(best.scale, best.sub_scales[i]), -kMinCode,
                          parts.codes.data() + kSignedGroup * i);
  }
}

}  // namespace outrider
