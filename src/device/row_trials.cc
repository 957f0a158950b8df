#include "device/row_trials.h"

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
  const std::size_t gate_at = trial.add_input(numbers.awkward_floats(words_of(rows.most, n)));
  const std::size_t up = trial.add_input(numbers.awkward_floats(words_of(rows.most, n)));
  const std::size_t y = trial.add_output(words_of(rows.most, n) * sizeof(float), true);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {
        gate({ranges[facts], rows.most}, activation, n, ranges[gate_at], ranges[up], ranges[y])};
  };
  return trial;
}

Trial pieces_trial(const TrialRows& rows, int n_pieces, int n, bool has_own, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const Columns columns = columns_among(n_pieces * n);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x =
      add_changed(trial, words_of(rows.most, static_cast<int>(columns.stride)), numbers);
  const std::size_t weight =
      trial.add_input(numbers.awkward_floats(words_of(has_own ? n_pieces : 1, n)));
  const PieceNumbers shape = {.stride = columns.stride,
                              .first = columns.first,
                              .n = static_cast<std::uint32_t>(n),
                              .n_pieces = static_cast<std::uint32_t>(n_pieces),
                              .weight_step = has_own ? static_cast<std::uint32_t>(n) : 0U,
                              .most_rows = 0,
                              .epsilon = 1e-6F};
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {norm_in_place({ranges[facts], rows.most}, ranges[x], ranges[weight], shape)};
  };
  return trial;
}

Trial add_trial(const TrialRows& rows, int n, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t to = add_changed(trial, words_of(rows.most, n), numbers);
  const std::size_t from = trial.add_input(numbers.awkward_floats(words_of(rows.most, n)));
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {add_rows({ranges[facts], rows.most}, n, ranges[to], ranges[from])};
  };
  return trial;
}

Trial columns_trial(const TrialRows& rows, int n, std::uint32_t seed) {
  TrialNumbers numbers(seed);
  const Columns columns = columns_among(n);
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t x =
      add_changed(trial, words_of(rows.most, static_cast<int>(columns.stride)), numbers);
  const std::size_t bias = trial.add_input(numbers.awkward_floats(words_of(1, n)));
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    const Rows of_facts = {ranges[facts], rows.most};
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
  picked.reserve(static_cast<std::size_t>(rows.most));
  for (int row = 0; row < rows.most; ++row) {
    picked.push_back(static_cast<std::uint32_t>(numbers.below(rows.most)));
  }
  Trial trial;
  const std::size_t facts = trial.add_input(rows.facts());
  const std::size_t picked_at = trial.add_input(picked);
  const std::size_t from = trial.add_input(
      numbers.awkward_floats(words_of(rows.most, static_cast<int>(from_columns.stride))));
  const std::size_t to = trial.add_output(
      words_of(rows.most, static_cast<int>(to_columns.stride)) * sizeof(float), false);
  trial.steps = [=](std::span<const Range> ranges) -> std::vector<Step> {
    return {copy_rows({ranges[facts], rows.most}, picks ? &ranges[picked_at] : nullptr,
                      ranges[from], from_columns, ranges[to], to_columns)};
  };
  return trial;
}

}  // namespace outrider::device
