// SPDX-License-Identifier: Apache-2.0
#include "device/trials/row_trials.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

namespace outrider::device {
namespace {

std::size_t words_of(int rows, int n) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(n);
}

// Adds rows that are changed in place.
std::size_t add_changed(Trial& trial, std::size_t n_floats, TrialNumbers& numbers) {
  const std::size_t at = trial.add_input(numbers.awkward_floats(n_floats));
  trial.buffers[at].is_output = true;
  trial.buffers[at].holds_floats = true;
  return at;
}

// Columns of a row before and after the used ones.
constexpr int kBefore = 3;
constexpr int kBehind = 5;
Columns columns_among(int n) {
  return {.stride = static_cast<std::uint32_t>(kBefore + n + kBehind),
          .first = kBefore,
          .n = static_cast<std::uint32_t>(n)};
}

}  // namespace

Trial gate_trial(const TrialRows& rows, int n, std::uint32_t seed, GateActivation activation) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t gate_at = trial.add_input(numbers.awkward_floats(words_of(rows.max_rows, n)));
  const std::size_t up = trial.add_input(numbers.awkward_floats(words_of(rows.max_rows, n)));
  const std::size_t y = trial.add_output(words_of(rows.max_rows, n) * sizeof(float), true);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {gate({ranges[facts], rows.max_rows}, activation, n, ranges[gate_at], ranges[up],
                 ranges[y])};
  };
  return trial;
}

Trial activate_trial(const TrialRows& rows, int n, GateActivation activation, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = add_changed(trial, words_of(rows.max_rows, n), numbers);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {activate({ranges[facts], rows.max_rows}, activation, n, ranges[x])};
  };
  return trial;
}

Trial cap_trial(const TrialRows& rows, int n, float cap, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x = add_changed(trial, words_of(rows.max_rows, n), numbers);
  auto* const floats = trial.buffers[x].bytes.data();
  // Numbers far beyond the cap, infinities and NaN, in the last places.
  const float ends[] = {-std::numeric_limits<float>::infinity(), 0x1p100F, -0.0F,
                        std::numeric_limits<float>::quiet_NaN()};
  const std::size_t n_ends = std::min(std::size(ends), words_of(rows.max_rows, n) - 1);
  std::memcpy(floats + (words_of(rows.max_rows, n) - n_ends) * sizeof(float), ends,
              n_ends * sizeof(float));
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {cap_rows({ranges[facts], rows.max_rows}, n, ranges[x], cap)};
  };
  return trial;
}

Trial pieces_trial(const TrialRows& rows, int n_pieces, int n, bool has_own, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const Columns columns = columns_among(n_pieces * n);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x =
      add_changed(trial, words_of(rows.max_rows, static_cast<int>(columns.stride)), numbers);
  const std::size_t weight =
      trial.add_input(numbers.awkward_floats(words_of(has_own ? n_pieces : 1, n)));
  const PieceNumbers shape = {.stride = columns.stride,
                              .first = columns.first,
                              .n = static_cast<std::uint32_t>(n),
                              .n_pieces = static_cast<std::uint32_t>(n_pieces),
                              .weight_step = has_own ? static_cast<std::uint32_t>(n) : 0U,
                              .max_rows = 0,
                              .epsilon = 1e-6F};
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {norm_in_place({ranges[facts], rows.max_rows}, ranges[x], ranges[weight], shape)};
  };
  return trial;
}

Trial add_trial(const TrialRows& rows, int n, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t to = add_changed(trial, words_of(rows.max_rows, n), numbers);
  const std::size_t from = trial.add_input(numbers.awkward_floats(words_of(rows.max_rows, n)));
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {add_rows({ranges[facts], rows.max_rows}, n, ranges[to], ranges[from])};
  };
  return trial;
}

Trial columns_trial(const TrialRows& rows, int n, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const Columns columns = columns_among(n);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x =
      add_changed(trial, words_of(rows.max_rows, static_cast<int>(columns.stride)), numbers);
  const std::size_t bias = trial.add_input(numbers.awkward_floats(words_of(1, n)));
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    const Rows of_facts = {ranges[facts], rows.max_rows};
    return {add_bias(of_facts, ranges[x], columns, ranges[bias]),
            scale_rows(of_facts, ranges[x], columns, 0.7F)};
  };
  return trial;
}

Trial copy_trial(const TrialRows& rows, int n, bool picks, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const Columns from_columns = columns_among(n);
  const Columns to_columns = {.stride = from_columns.n + 2, .first = 1, .n = from_columns.n};
  std::vector<std::uint32_t> picked;
  picked.reserve(static_cast<std::size_t>(rows.max_rows));
  for (int row = 0; row < rows.max_rows; ++row) {
    picked.push_back(static_cast<std::uint32_t>(numbers.below(rows.max_rows)));
  }
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t picked_at = trial.add_input(picked);
  const std::size_t from = trial.add_input(
      numbers.awkward_floats(words_of(rows.max_rows, static_cast<int>(from_columns.stride))));
  const std::size_t to = trial.add_output(
      words_of(rows.max_rows, static_cast<int>(to_columns.stride)) * sizeof(float), false);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {copy_rows({ranges[facts], rows.max_rows}, picks ? &ranges[picked_at] : nullptr,
                      ranges[from], from_columns, ranges[to], to_columns)};
  };
  return trial;
}

Trial best_trial(const TrialRows& rows, int n, std::uint32_t seed) {
  using Limits = std::numeric_limits<float>;
  TrialNumbers numbers(seed);
  std::vector<float> x = numbers.awkward_floats(words_of(rows.max_rows, n));
  for (int row = 0; row < rows.max_rows; ++row) {
    const std::span<float> its = std::span(x).subspan(words_of(row, n), words_of(1, n));
    const auto put = [&](float value) { its[words_of(1, numbers.below(n))] = value; };
    switch (row % 6) {
      case 0:  // several equal numbers
        for (int i = 0; i < 5; ++i) put(0x1p90F);
        break;
      case 1:
        for (float& one : its) one = numbers.below(2) == 0 ? 0.0F : -0.0F;
        put(-1.0F);
        break;
      case 2:
        for (float& one : its) one = -Limits::infinity();
        its.front() = Limits::quiet_NaN();
        break;
      case 3:
        for (float& one : its) one = Limits::quiet_NaN();
        break;
      case 4:  // below 0 only, including subnormal ones
        for (float& one : its) {
          const float tiny = std::bit_cast<float>(numbers.bits() & 0x807fffffU);
          one = -std::abs(numbers.below(2) == 0 ? tiny : numbers.of_size(-126, 3));
        }
        put(-Limits::quiet_NaN());
        break;
      default:
        for (int i = 0; i < 3; ++i) put(Limits::infinity());
        for (int i = 0; i < 3; ++i) put(Limits::quiet_NaN());
        break;
    }
  }
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x_at = trial.add_input(x);
  const std::size_t parts =
      trial.add_output(words_of(rows.max_rows, parts_of_best(n)) * sizeof(BestOfRow), false);
  const std::size_t best = trial.add_output(words_of(rows.max_rows, 1) * sizeof(BestOfRow), false);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    const std::array<Step, 2> steps =
        best_of_rows({ranges[facts], rows.max_rows}, n, ranges[x_at], ranges[parts], ranges[best]);
    return {steps.begin(), steps.end()};
  };
  return trial;
}

}  // namespace outrider::device
