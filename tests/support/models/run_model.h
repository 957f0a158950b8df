// SPDX-License-Identifier: Apache-2.0
// Runs a model in tests: token sequences through forward(), rows of logits out.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_RUN_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_RUN_MODEL_H_

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "model/language_model.h"

namespace outrider::test {

using Row = std::vector<float>;
using Rows = std::vector<Row>;

inline Rows rows_of(const ForwardOutput& output) {
  Rows rows;
  for (int i = 0; i < output.logits.n_rows(); ++i) {
    const std::span<const float> row = output.logits_row(i);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

// One pass with one block; returns all rows. The nodes stay pending.
inline Rows run_block(LanguageModel& model, Sequence& sequence, std::span<const TokenId> tokens,
                      std::span<const int> parents = {}) {
  const TokenBlock block{&sequence, tokens, parents};
  ForwardOutput output;
  model.forward({&block, 1}, {}, output);
  return rows_of(output);
}

inline void keep_first(Sequence& sequence, int n) {
  std::vector<int> path(static_cast<std::size_t>(n));
  std::iota(path.begin(), path.end(), 0);
  sequence.keep(path);
}

// The same, and keeps all nodes.
inline Rows run_and_keep(LanguageModel& model, Sequence& sequence,
                         std::span<const TokenId> tokens) {
  Rows rows = run_block(model, sequence, tokens);
  keep_first(sequence, static_cast<int>(tokens.size()));
  return rows;
}

// One token for each pass.
inline Rows decode_one_by_one(LanguageModel& model, Sequence& sequence,
                              std::span<const TokenId> tokens) {
  Rows rows;
  for (const TokenId& token : tokens) {
    rows.push_back(run_and_keep(model, sequence, {&token, 1}).at(0));
  }
  return rows;
}

inline bool same_bits(const Row& left, const Row& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

// Expects that rows[i] has the bits of expected[first + i].
inline void expect_same_bits(const Rows& expected, std::size_t first, const Rows& rows) {
  ASSERT_LE(first + rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(same_bits(expected[first + i], rows[i])) << "row " << first + i;
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_RUN_MODEL_H_
