// SPDX-License-Identifier: Apache-2.0
// The slots of the gated delta rule and of Mamba-2's step. Compares every table with the scalar one
// bit by bit, the scalar table with the definition of table.h in double, and columns together with
// single ones.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernels/table.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

using test::awkward_floats;
using test::same_bits;

struct Head {
  int key_dim;
  int n;
  std::vector<float> state, key, value, query;
  float beta = 0.625F;
  float decay = 0.9375F;

  Head(int rows, int columns, unsigned seed)
      : key_dim(rows),
        n(columns),
        state(numbers(rows * columns, seed)),
        key(numbers(rows, seed + 1)),
        value(numbers(columns, seed + 2)),
        query(numbers(rows, seed + 3)) {}

  // Between -1 and 1: sums of a few hundred stay in a range where f32 is accurate to 1e-5.
  static std::vector<float> numbers(int count, unsigned seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    unsigned bits = seed * 2654435761U + 1;
    for (float& value : values) {
      bits = bits * 1664525U + 1013904223U;
      value = static_cast<float>(static_cast<int>(bits >> 8) - (1 << 23)) / (1 << 23);
    }
    return values;
  }
};

struct Stepped {
  std::vector<float> state, out;
};

// A slot of tables, and whether it subtracts the state's prediction for the key.
struct Rule {
  const char* name;
  void (*KernelTable::*step)(const DeltaStep& step);
  bool subtracts;
};

class StateStep : public ::testing::TestWithParam<Rule> {
 protected:
  static Stepped step(const KernelTable& table, const Head& head, int first, int n);
  static void step(const KernelTable& table, const DeltaStep& step) {
    (table.*GetParam().step)(step);
  }
};

// Columns [first, first + n) into a separate state.
Stepped StateStep::step(const KernelTable& table, const Head& head, int first, int n) {
  Stepped stepped;
  stepped.state.assign(static_cast<std::size_t>(head.key_dim * n), -7);
  stepped.out.assign(static_cast<std::size_t>(n), -7);
  step(table, {.from = head.state.data() + first,
               .from_stride = static_cast<std::size_t>(head.n),
               .to = stepped.state.data(),
               .to_stride = static_cast<std::size_t>(n),
               .key = head.key.data(),
               .value = head.value.data() + first,
               .beta = head.beta,
               .decay = head.decay,
               .query = head.query.data(),
               .out = stepped.out.data(),
               .key_dim = head.key_dim,
               .n = n});
  return stepped;
}

constexpr int kColumns[] = {1, 5, 15, 16, 17, 48, 63, 64, 65, 80, 128, 130};

TEST_P(StateStep, EveryTableGivesTheSameBits) {
  for (const int n : kColumns) {
    for (const int key_dim : {1, 3, 16, 100}) {
      Head head(key_dim, n, static_cast<unsigned>(n));
      if (n == 17) head.state = awkward_floats(head.state.size(), 3);
      const Stepped expected = step(kScalarTable, head, 0, n);
      for (const auto& [name, table] : test::runnable_tables()) {
        const Stepped stepped = step(*table, head, 0, n);
        EXPECT_TRUE(same_bits(stepped.state, expected.state)) << name << " n " << n;
        EXPECT_TRUE(same_bits(stepped.out, expected.out)) << name << " n " << n;
      }
    }
  }
}

// Each of about a hundred additions rounds by half a unit of numbers below 20, which is 1e-6.
TEST_P(StateStep, FollowsItsDefinition) {
  for (const int n : kColumns) {
    const Head head(64, n, 77);
    const Stepped stepped = step(kScalarTable, head, 0, n);
    for (int column = 0; column < n; ++column) {
      const auto at = [&](int row) { return static_cast<std::size_t>(row * n + column); };
      double memory = 0;
      for (int row = 0; row < head.key_dim; ++row) {
        memory +=
            double{head.key[static_cast<std::size_t>(row)]} * head.decay * head.state[at(row)];
      }
      const auto place = static_cast<std::size_t>(column);
      if (!GetParam().subtracts) memory = 0;
      const double delta = head.beta * (head.value[place] - memory);
      double out = 0;
      for (int row = 0; row < head.key_dim; ++row) {
        const auto i = static_cast<std::size_t>(row);
        const double state = double{head.decay} * head.state[at(row)] + head.key[i] * delta;
        EXPECT_NEAR(stepped.state[at(row)], state, 1e-4);
        out += head.query[i] * state;
      }
      EXPECT_NEAR(stepped.out[place], out, 1e-4);
    }
  }
}

TEST_P(StateStep, ColumnsDoNotDependOnOneAnother) {
  const Head head(40, 130, 5);
  for (const auto& [name, table] : test::runnable_tables()) {
    const Stepped whole = step(*table, head, 0, head.n);
    for (const auto& [first, n] : {std::pair{0, 64}, std::pair{64, 64}, std::pair{7, 1},
                                   std::pair{3, 20}, std::pair{100, 30}}) {
      const Stepped part = step(*table, head, first, n);
      for (int row = 0; row < head.key_dim; ++row) {
        for (int column = 0; column < n; ++column) {
          EXPECT_EQ(part.state[static_cast<std::size_t>(row * n + column)],
                    whole.state[static_cast<std::size_t>(row * head.n + first + column)])
              << name;
        }
      }
    }
  }
}

// In place, and without output: the same state.
TEST_P(StateStep, MayTakeTheStateInPlace) {
  for (const auto& [name, table] : test::runnable_tables()) {
    const Head head(33, 70, 8);
    const Stepped expected = step(*table, head, 0, head.n);
    std::vector<float> state = head.state;
    const auto stride = static_cast<std::size_t>(head.n);
    step(*table, {.from = state.data(),
                  .from_stride = stride,
                  .to = state.data(),
                  .to_stride = stride,
                  .key = head.key.data(),
                  .value = head.value.data(),
                  .beta = head.beta,
                  .decay = head.decay,
                  .query = nullptr,
                  .out = nullptr,
                  .key_dim = head.key_dim,
                  .n = head.n});
    EXPECT_TRUE(same_bits(state, expected.state)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StateStep,
                         ::testing::Values(Rule{"delta", &KernelTable::delta_step, true},
                                           Rule{"mamba", &KernelTable::mamba_step, false}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrider::kernels
