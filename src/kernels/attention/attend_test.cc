// SPDX-License-Identifier: Apache-2.0
// Attention of every table compared with the scalar table bit by bit, and the scalar table with
// double. Products of bf16 differ by table; each is compared with itself and with double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/float16.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/attention/whole_attention.h"
#include "kernels/table.h"
#include "tests/support/attend_calls.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

using test::near;
using test::same_bits;

constexpr int kKeyCounts[] = {1, 3, 63, 64, 65, 128, 200, kSplitKeys, 2 * kSplitKeys + 70};
constexpr int kHeadDims[] = {1, 8, 16, 20, 64, 128, 272, 576};

// A window reads only its own keys: those before it may hold anything and count as scores of minus
// infinity. A soft cap applies to scores before that. A sink, if any, is one more score without a
// value.
void expect_softmax_over_windows(const Arithmetic& arithmetic, float softcap,
                                 std::optional<float> sink = std::nullopt) {
  constexpr int kDim = 32;
  for (const int n_keys : {1, 70, 200, kSplitKeys + 100}) {
    const std::vector<float> queries = queries_for(kDim, 3);
    FullCache cache(arithmetic, kDim, n_keys, 5);
    for (const int window : {1, 5, 64, 100, 1000, kSplitKeys + 100}) {
      const int first_key = std::max(n_keys - window, 0);
      std::vector<double> weights;
      double total = 0;
      const double scale = 1 / std::sqrt(static_cast<double>(kDim));
      const auto at = [&](const std::vector<float>& rows, int key, int d) {
        return double{rows[static_cast<std::size_t>(key) * kDim + static_cast<std::size_t>(d)]};
      };
      std::vector<double> scores;
      for (int key = first_key; key < n_keys; ++key) {
        double score = 0;
        for (int d = 0; d < kDim; ++d) {
          score += at(cache.keys, key, d) * queries[static_cast<std::size_t>(d)];
        }
        score *= scale;
        scores.push_back(softcap == 0 ? score : softcap * std::tanh(score / softcap));
      }
      if (sink) scores.push_back(*sink);
      const double highest = *std::max_element(scores.begin(), scores.end());
      for (const double score : scores) total += weights.emplace_back(std::exp(score - highest));
      std::vector<float> out;
      Call call = cache.call(queries, 1, n_keys, out);
      call.rows[0].first_key = first_key;
      call.args.softcap = softcap;
      if (sink) call.sinks = {*sink};
      call.run(kScalarTable);
      for (int d = 0; d < kDim; ++d) {
        double expected = 0;
        double size = 0;
        double all = 0;
        for (int key = first_key; key < n_keys; ++key) {
          const double share = weights[static_cast<std::size_t>(key - first_key)] / total;
          expected += share * at(cache.values, key, d);
          size += share * std::fabs(at(cache.values, key, d));
          all += std::fabs(at(cache.values, key, d));
        }
        // Scores of some tens err by 2^-24 of the sums they are made of, and so do weights. Weights
        // below e^-88 of the largest are 0, and so are products below the smallest float.
        const double lost = std::exp(-88) * all + 0x1p-149;
        EXPECT_NEAR(out[static_cast<std::size_t>(d)], expected, 1e-4 * size + lost)
            << n_keys << " keys, window " << window << ", cap " << softcap << ", sink "
            << sink.value_or(0);
      }
    }
  }
}

TEST(Attend, AWindowIsTheSoftmaxOverItsOwnKeys) { expect_softmax_over_windows({KvKind::f32}, 0); }

// Caps far below the scores, among them and above.
TEST(Attend, ACapBendsScoresBeforeTheSoftmax) {
  for (const KvKind kv : {KvKind::f32, KvKind::bf16}) {
    for (const float softcap : {0.3F, 2.0F, 50.0F}) expect_softmax_over_windows({kv}, softcap);
  }
}

// Sinks far below all scores, among them and far above; counted once for any number of splits.
TEST(Attend, ASinkJoinsTheSoftmaxOnce) {
  for (const KvKind kv : {KvKind::f32, KvKind::bf16}) {
    for (const float sink : {-200.0F, -1.5F, 0.0F, 4.0F, 90.0F, 1e30F}) {
      expect_softmax_over_windows({kv}, 0, sink);
    }
  }
  expect_softmax_over_windows({KvKind::f32}, 2, 1);
}

// Each query has its own sink, with the same bits on every table, for any number of rows together.
TEST(Attend, SinksKeepTheBitsOfSingleQueries) {
  constexpr int kDim = 20;
  constexpr int kQueries = 5;
  const std::vector<float> sinks = {0.5F, -3, 7, 0, 1e30F};
  for (const Arithmetic& arithmetic : kArithmetics) {
    const std::vector<float> queries = queries_for(kDim, 11);
    for (const int n_keys : {3, 200, kSplitKeys + 70}) {
      FullCache cache(arithmetic, kDim, n_keys, 12);
      for (const auto& [name, table] : tables_with(arithmetic)) {
        std::vector<float> singles;
        for (int q = 0; q < kQueries; ++q) {
          std::vector<float> out;
          Call call = cache.call(queries, 1, n_keys, out);
          call.rows[0].queries += static_cast<std::size_t>(q) * call.args.query_stride;
          call.sinks = {sinks[static_cast<std::size_t>(q)]};
          call.run(arithmetic.reference(*table));
          singles.insert(singles.end(), out.begin(), out.end());
        }
        std::vector<float> out;
        Call call = cache.call(queries, kQueries, n_keys, out);
        call.sinks = sinks;
        call.run(*table);
        EXPECT_TRUE(same_bits(out, singles)) << name << " keys " << n_keys;
        // A sink far above all scores leaves nothing of the values.
        EXPECT_EQ(out[4 * call.args.out_stride], 0) << name;
      }
    }
  }
}

// By every arithmetic of every table: with two keys of scores 0 and -x, the second one's weight is
// e^(cap * tanh(-x / cap)) times the first one's. A cap above 0 also bounds -infinity.
TEST(Attend, EveryArithmeticCapsItsScores) {
  constexpr float kCap = 1.5F;
  const std::vector<float> query = {1e30F};
  for (const Arithmetic& arithmetic : kArithmetics) {
    for (const auto& [name, table] : tables_with(arithmetic)) {
      for (const float x : {0.25F, 1.0F, 4.0F, 1e30F}) {
        const std::vector<float>& queries = x == 1e30F ? query : kOne;
        Cache cache(arithmetic, 1, 2);
        cache.store_key(0, {0.0F});
        cache.store_key(1, {-x});
        cache.store_value(0, {0.0F});
        cache.store_value(1, {1.0F});
        std::vector<float> out;
        Call call = cache.call(queries, 1, 2, out);
        call.args.softcap = kCap;
        call.run(*table);
        const double weight = std::exp(kCap * std::tanh(-x / double{kCap}));
        // A weight rounded to bf16 errs by 2^-9, one as an int8 word by 2^-15.
        EXPECT_NEAR(out[0], weight / (1 + weight), arithmetic.pairs ? 0x1p-9 : 0x1p-14)
            << name << " kind " << static_cast<int>(arithmetic.kv) << " score " << -x;
      }
    }
  }
}

TEST(Attend, EveryTableAndQueryCountGivesTheReferencesSingleQueries) {
  for (const Arithmetic& arithmetic : kArithmetics) {
    for (const int dim : kHeadDims) {
      if (!takes(arithmetic, dim)) continue;
      const std::vector<float> queries = queries_for(dim, static_cast<unsigned>(dim));
      for (const int n_keys : kKeyCounts) {
        FullCache cache(arithmetic, dim, n_keys, static_cast<unsigned>(dim * 1000 + n_keys));
        std::vector<float> singles;
        const KernelTable* singles_of = nullptr;
        for (const auto& [name, table] : tables_with(arithmetic)) {
          const KernelTable& reference = arithmetic.reference(*table);
          if (singles_of != &reference) singles.clear();
          for (int q = 0; q < kMaxQueries && singles_of != &reference; ++q) {
            std::vector<float> out;
            Call call = cache.call(queries, 1, n_keys, out);
            call.rows[0].queries += static_cast<std::size_t>(q) * call.args.query_stride;
            call.run(reference);
            singles.insert(singles.end(), out.begin(), out.end());  // the gap keeps 777
          }
          singles_of = &reference;
          for (int n_queries = 1; n_queries <= kMaxQueries; ++n_queries) {
            std::vector<float> out;
            cache.call(queries, n_queries, n_keys, out).run(*table);
            const std::vector<float> expected(
                singles.begin(), singles.begin() + static_cast<std::ptrdiff_t>(out.size()));
            ASSERT_TRUE(same_bits(out, expected))
                << name << " dim " << dim << " keys " << n_keys << " queries " << n_queries;
          }
        }
      }
    }
  }
}

// Rows of a tree: keys in place are read once for all; the rest is each row's own, in slots of
// arbitrary order. Every row gets the bits that it gets alone with all its keys in place.
void expect_bits_of_single_rows(int dim, float softcap) {
  constexpr int kQueries = kMaxQueries;
  constexpr int kSlots = kSplitKeys + 200;
  std::mt19937 generator(5);
  for (const Arithmetic& arithmetic : kArithmetics) {
    FullCache cache(arithmetic, dim, kSlots, 9);
    for (const int n_contiguous : {0, 1, 63, 64, 130, kSplitKeys - 70}) {
      for (const int n_rows : {3, kMaxAttendRows}) {
        const std::size_t out_size = kQueries * (static_cast<std::size_t>(dim) + 2);
        std::vector<std::vector<float>> queries;
        std::vector<std::vector<float>> outs(static_cast<std::size_t>(n_rows));
        std::vector<std::vector<int>> slots(static_cast<std::size_t>(n_rows));
        Call together = cache.call(kQueries);
        together.args.n_rows = n_rows;
        together.args.softcap = softcap;
        for (std::size_t r = 0; r < outs.size(); ++r) {
          queries.push_back(queries_for(dim, static_cast<unsigned>(r)));
          outs[r].assign(out_size, 777.0F);
          // At least that much is in place; then, except for the first row, slots of arbitrary
          // numbers.
          const int n_here = n_contiguous + static_cast<int>(generator() % 3 * (generator() % 40));
          const int n_least = n_here == 0 ? 1 : 0;
          const int n_own = n_least + (r == 0 ? 0 : static_cast<int>(generator() % 150));
          for (int i = 0; i < n_own; ++i)
            slots[r].push_back(static_cast<int>(generator() % kSlots));
          // Some rows have a window.
          const int first_key =
              generator() % 2 == 0 ? 0 : static_cast<int>(generator() % (n_here + n_own));
          together.rows.push_back({.queries = queries[r].data(),
                                   .out = outs[r].data(),
                                   .states = nullptr,
                                   .n_keys = n_here + n_own,
                                   .first_key = first_key,
                                   .n_contiguous = n_here,
                                   .slots = slots[r].data()});
        }
        std::vector<std::vector<float>> alone(outs.size());
        const KernelTable* alone_on = nullptr;
        for (const auto& [name, table] : tables_with(arithmetic)) {
          const KernelTable& reference = arithmetic.reference(*table);
          for (std::size_t r = 0; r < outs.size() && alone_on != &reference; ++r) {
            const AttendRow& row = together.rows[r];
            std::vector<int> order(static_cast<std::size_t>(row.n_contiguous));
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
            order.insert(order.end(), slots[r].begin(), slots[r].end());
            Cache committed(arithmetic, dim, row.n_keys);
            committed.copy(cache, order);
            Call own = committed.call(queries[r], kQueries, row.n_keys, alone[r]);
            own.rows[0].first_key = row.first_key;
            own.args.softcap = softcap;
            own.run(reference);
          }
          alone_on = &reference;
          together.run(*table);
          for (std::size_t r = 0; r < outs.size(); ++r) {
            ASSERT_TRUE(same_bits(outs[r], alone[r]))
                << name << " kind " << static_cast<int>(arithmetic.kv) << " in place "
                << n_contiguous << " rows " << n_rows << " row " << r;
          }
        }
      }
    }
  }
}

class RowsTogether : public ::testing::TestWithParam<int> {};

TEST_P(RowsTogether, GetTheBitsOfSingleRows) { expect_bits_of_single_rows(GetParam(), 0); }

TEST(Attend, CappedRowsTogetherGetTheBitsOfSingleRows) {
  for (const int dim : {24, 80}) expect_bits_of_single_rows(dim, 1.5F);
}

INSTANTIATE_TEST_SUITE_P(HeadDims, RowsTogether, ::testing::Values(1, 24, 64, 80, 256));

// Keys whose first elements are their values: on every table the bits equal those of separate
// values (which are then as wide as keys), for rows with all keys in place and rows of a tree.
// Nothing is read at the place of separate values, and nothing is written after a value.
TEST(Attend, ValuesInKeysHaveTheBitsOfValuesOfTheirOwn) {
  for (const Arithmetic& arithmetic : kArithmetics) {
    for (const auto& [dim, value_dim] :
         {std::pair{28, 20}, std::pair{24, 24}, std::pair{33, 1}, std::pair{576, 512}}) {
      for (const int n_keys : {1, 66, 200, kSplitKeys + 70}) {
        const auto width = static_cast<std::size_t>(dim);
        Cache cache(arithmetic, dim, n_keys);
        const std::vector<float> all =
            test::awkward_floats(static_cast<std::size_t>(n_keys) * width, 7);
        for (int slot = 0; slot < n_keys; ++slot) {
          const auto from = all.begin() + slot * dim;
          const std::vector<float> key(from, from + dim);
          cache.store_key(slot, key);
          cache.store_value(slot, key);
        }
        const std::vector<float> queries = queries_for(dim, 2);
        const int n_half = n_keys / 2;
        std::vector<int> slots;
        for (int i = n_half; i < n_keys; ++i) slots.push_back(i * 7 % n_keys);
        const std::size_t out_size = kMaxQueries * (width + 2);
        const auto run = [&](const KernelTable& table, bool in_keys) {
          std::vector<std::vector<float>> outs(4, std::vector<float>(out_size, 777.0F));
          Call call = cache.call(kMaxQueries);
          call.args.n_rows = 4;
          const auto add = [&](std::size_t r, int n, int n_contiguous) {
            call.rows.push_back({.queries = queries.data(),
                                 .out = outs[r].data(),
                                 .states = nullptr,
                                 .n_keys = n,
                                 .first_key = 0,
                                 .n_contiguous = n_contiguous,
                                 .slots = slots.data()});
          };
          add(0, n_keys, n_keys);
          add(1, n_keys, n_half);
          add(2, n_half + 1, n_half);
          add(3, n_half + 1, n_half + 1);
          if (in_keys) {
            call.args.values_in_keys = value_dim;
            call.args.values_at = 0;  // belongs to another head and is not written
          }
          call.run(table);
          return outs;
        };
        std::vector<std::vector<float>> expected;
        const KernelTable* expected_of = nullptr;
        for (const auto& [name, table] : tables_with(arithmetic)) {
          const KernelTable& reference = arithmetic.reference(*table);
          if (expected_of != &reference) expected = run(reference, false);
          expected_of = &reference;
          const auto outs = run(*table, true);
          for (std::size_t r = 0; r < outs.size(); ++r) {
            for (std::size_t q = 0; q < kMaxQueries; ++q) {
              const auto at = static_cast<std::ptrdiff_t>(q * (width + 2));
              const auto part = [&](const std::vector<float>& out, int first, int n) {
                return std::vector<float>(out.begin() + at + first, out.begin() + at + first + n);
              };
              ASSERT_TRUE(same_bits(part(outs[r], 0, value_dim), part(expected[r], 0, value_dim)))
                  << name << " kind " << static_cast<int>(arithmetic.kv) << " dims " << dim << ", "
                  << value_dim << " keys " << n_keys << " row " << r << " query " << q;
              const int n_behind = dim + 2 - value_dim;
              ASSERT_EQ(part(outs[r], value_dim, n_behind),
                        std::vector<float>(static_cast<std::size_t>(n_behind), 777.0F));
            }
          }
        }
      }
    }
  }
}

// A score errs by at most delta = (dim + 2) u sum |q| |k| scale; as a difference from the highest,
// also by u times the spread of the scores, once more for each chunk that rescales and each merged
// split. e^x turns an absolute error into a relative one, and adds 2 ulp of its own, in numerator
// and denominator. Sums over n keys, twice, add 2 n u. A weight below 2^-126 may be 0.
//
// With int8 keys and values, a query errs by half a step of its words. So does, in every chunk,
// each weight times the scale of its value, which then counts at most 127 times.
//
// With bf16 products, each element of a query and each weight errs by 2^-8 of its size (a weight
// equally in the sum of values and in the total; by 2^-14 before rounding), and subnormal numbers
// are 0.
TEST(Attend, MatchesDoubleArithmetic) {
  constexpr double kUnit = 0x1p-24;
  constexpr double kBf16Unit = 0x1p-8;
  constexpr double kHalfStep = 0.5 / 16256;  // of the largest
  for (const Arithmetic& arithmetic : kArithmetics) {
    const KvKind kind = arithmetic.kv;
    for (const int dim : kHeadDims) {
      if (!takes(arithmetic, dim)) continue;
      const std::vector<float> queries = queries_for(dim, static_cast<unsigned>(dim));
      for (const int n_keys : kKeyCounts) {
        FullCache cache(arithmetic, dim, n_keys, static_cast<unsigned>(dim * 1000 + n_keys));
        std::vector<float> ignored;
        const AttendArgs args = cache.call(queries, 1, n_keys, ignored).args;
        double largest_query = 0;
        for (std::size_t j = 0; j < static_cast<std::size_t>(dim); ++j) {
          largest_query = std::max(largest_query, std::fabs(double{queries[j]}));
        }
        std::vector<double> scores;
        double delta = 0;
        for (int i = 0; i < n_keys; ++i) {
          double score = 0;
          double magnitudes = 0;
          double key_magnitudes = 0;
          for (int j = 0; j < dim; ++j) {
            const double term = double{queries[static_cast<std::size_t>(j)]} *
                                cache.keys[static_cast<std::size_t>(i * dim + j)];
            score += term;
            magnitudes += std::fabs(term);
            key_magnitudes += std::fabs(double{cache.keys[static_cast<std::size_t>(i * dim + j)]});
          }
          scores.push_back(score * args.scale);
          double off = (dim + 2) * kUnit * magnitudes;
          if (kind == KvKind::int8) off += 1.01 * kHalfStep * largest_query * key_magnitudes;
          if (arithmetic.pairs) {
            off +=
                1.01 * kBf16Unit * magnitudes + 0x1p-126 * (key_magnitudes + dim * largest_query);
          }
          delta = std::max(delta, off * args.scale);
        }
        const auto bounds = std::minmax_element(scores.begin(), scores.end());
        const double highest = *bounds.second;
        // More than 104 below the highest, a weight is 0 and its error has no effect.
        const double spread = std::min(highest - *bounds.first, 104.0);
        const int n_chunks = (n_keys + kChunkKeys - 1) / kChunkKeys;
        const int n_scalings = n_chunks + splits_of(n_keys) - 1;
        double relative = 2 * (2 * delta + spread * kUnit * (n_scalings + 1)) +
                          (2 * n_keys + 16 * n_scalings) * kUnit;
        if (arithmetic.pairs) relative += 2 * 1.01 * (kBf16Unit + 0x1p-14);
        double total = 0;
        for (double& score : scores) total += score = std::exp(score - highest);
        // For each chunk, the largest weight times its value's largest element.
        std::vector<double> largest(static_cast<std::size_t>(n_chunks));
        double largest_value = 0;
        for (int i = 0; i < n_keys; ++i) {
          for (int j = 0; j < dim; ++j) {
            const double value =
                std::fabs(double{cache.values[static_cast<std::size_t>(i * dim + j)]});
            double& of_chunk = largest[static_cast<std::size_t>(i / kChunkKeys)];
            of_chunk = std::max(of_chunk, scores[static_cast<std::size_t>(i)] / total * value);
            largest_value = std::max(largest_value, value);
          }
        }
        double rounded = n_keys * (0x1p-149 + 0x1p-126 * largest_value);
        if (arithmetic.pairs) rounded += 0x1p-125;
        if (kind == KvKind::int8) {
          for (int i = 0; i < n_keys; ++i) {
            rounded += (1.01 + 2 * relative) * kHalfStep *
                       largest[static_cast<std::size_t>(i / kChunkKeys)];
          }
        }
        // Tables with equal bits have equal errors: the scalar one represents them.
        for (const auto& [name, table] : tables_with(arithmetic)) {
          if (&arithmetic.reference(*table) != table) continue;
          std::vector<float> out;
          cache.call(queries, 1, n_keys, out).run(*table);
          for (int j = 0; j < dim; ++j) {
            double expected = 0;
            double magnitudes = 0;
            for (int i = 0; i < n_keys; ++i) {
              const double term = scores[static_cast<std::size_t>(i)] / total *
                                  cache.values[static_cast<std::size_t>(i * dim + j)];
              expected += term;
              magnitudes += std::fabs(term);
            }
            ASSERT_TRUE(
                near(out[static_cast<std::size_t>(j)], expected, relative * magnitudes + rounded))
                << name << " dim " << dim << " keys " << n_keys;
          }
        }
      }
    }
  }
}

// One key of weight 1, and one with a score of -x. With bf16 products the latter's weight is the
// bf16 number nearest to e^x, or the other neighbour if e^x is within 2^-14 of their middle.
TEST(Attend, WeightsByProductsOfBf16AreTheNearest) {
  for (const auto& [name, table] : tables_with({KvKind::bf16, true})) {
    for (int step = 0; step < 1000; ++step) {
      const float x = to_float(to_bf16(-0.01F * static_cast<float>(step)));
      Cache cache({KvKind::bf16, true}, 1, 2);
      cache.store_key(0, {0.0F});
      cache.store_key(1, {x});
      cache.store_value(0, {0.0F});
      cache.store_value(1, {1.0F});
      std::vector<float> outs;
      cache.call(kOne, 1, 2, outs).run(*table);
      const float out = outs[0];
      const auto is_weight = [&](double weight) {
        const double nearest = double{to_float(to_bf16(static_cast<float>(weight)))};
        // Three roundings to float; neighbours differ by at least 2^-9 of a quarter.
        return std::fabs(out * (1 + nearest) - nearest) <= 4 * 0x1p-24 * nearest;
      };
      const double weight = std::exp(double{x});
      EXPECT_TRUE(is_weight(weight * (1 - 0x1p-14)) || is_weight(weight * (1 + 0x1p-14)))
          << name << " e^" << x << " " << weight << " " << out / (1 - out);
    }
  }
}

// Scores far apart, in both orders: only the highest counts, and nothing overflows.
TEST(Attend, SurvivesExtremeScores) {
  for (const auto& [name, table] : test::runnable_tables()) {
    for (const float direction : {-1.0F, 1.0F}) {
      constexpr int kKeys = kSplitKeys + 130;
      Cache cache({KvKind::f32}, 1, kKeys);
      for (int i = 0; i < kKeys; ++i) {
        cache.store_key(i, {direction * static_cast<float>(i) * 1e30F});
        cache.store_value(i, {static_cast<float>(i)});
      }
      std::vector<float> out;
      cache.call(kOne, 1, kKeys, out).run(*table);
      EXPECT_EQ(out[0], direction > 0 ? static_cast<float>(kKeys - 1) : 0.0F) << name;
    }
  }
}

// Scores of -infinity have no weight anywhere, including whole chunks and splits. If there are no
// others, the result is 0.
TEST(Attend, ScoresOfMinusInfinityWeighNothing) {
  constexpr int kKeys = 2 * kSplitKeys + 70;
  const std::vector<float> query = {1e30F};
  for (const Arithmetic& arithmetic : kArithmetics) {
    for (const auto& [name, table] : tables_with(arithmetic)) {
      for (const int finite : {0, kChunkKeys, kSplitKeys - 1, kSplitKeys, kKeys - 1, kKeys}) {
        Cache cache(arithmetic, 1, kKeys);
        for (int i = 0; i < kKeys; ++i) {
          cache.store_key(i, {i == finite ? 0.0F : -1e30F});
          cache.store_value(i, {i == finite ? 2.0F : 3.0F});
        }
        std::vector<float> out;
        cache.call(query, 1, kKeys, out).run(*table);
        if (finite < kKeys) {
          EXPECT_EQ(out[0], 2.0F) << name << " key " << finite;
        } else {
          EXPECT_TRUE(std::isnan(out[0])) << name;
        }
      }
    }
  }
}

// Scores rise or fall by less than the point where weights vanish, over four splits: each counts
// relative to the highest of all.
TEST(Attend, EverySplitCounts) {
  constexpr int kKeys = 3 * kSplitKeys + 10;
  constexpr double kSteepness = 8.0 / kKeys;
  for (const auto& [name, table] : test::runnable_tables()) {
    for (const double direction : {-1.0, 1.0}) {
      Cache cache({KvKind::f32}, 1, kKeys);
      double total = 0;
      double sum = 0;
      for (int i = 0; i < kKeys; ++i) {
        const auto score = static_cast<float>(direction * kSteepness * i);
        const auto value = static_cast<float>(i / kSplitKeys + 1);
        cache.store_key(i, {score});
        cache.store_value(i, {value});
        total += std::exp(double{score});
        sum += std::exp(double{score}) * value;
      }
      std::vector<float> out;
      cache.call(kOne, 1, kKeys, out).run(*table);
      // As in MatchesDoubleArithmetic: 2 n u of the sums, and little more for exact scores.
      EXPECT_NEAR(out[0], sum / total, 3 * kKeys * 0x1p-24 * sum / total) << name;
    }
  }
}

// NaN in a query, in keys or in values appears in all rows that read it, and in no other: not in
// those whose last key is before it.
TEST(Attend, NotANumberShowsWhereItIsRead) {
  constexpr int kDim = 24;
  constexpr int kKeys = kSplitKeys + 100;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> of_floats = {std::numeric_limits<float>::quiet_NaN()};
  // int8 cannot hold infinity either.
  const std::vector<float> of_int8 = {of_floats[0], kInfinity, -kInfinity};
  for (const Arithmetic& arithmetic : kArithmetics) {
    const auto& no_numbers = arithmetic.kv == KvKind::int8 ? of_int8 : of_floats;
    for (const float no_number : no_numbers) {
      for (const int bad : {3, 4, kSplitKeys - 1, kSplitKeys, kKeys - 2, kKeys - 1}) {
        for (const bool in_keys : {true, false}) {
          FullCache cache(arithmetic, kDim, kKeys, 3);
          const std::vector<float> bad_row(kDim, no_number);
          in_keys ? cache.store_key(bad, bad_row) : cache.store_value(bad, bad_row);
          for (const auto& [name, table] : tables_with(arithmetic)) {
            for (const int n_keys : {bad, bad + 1, kKeys}) {
              std::vector<float> out;
              const std::vector<float> queries = queries_for(kDim, 1);
              cache.call(queries, 1, n_keys, out).run(*table);
              for (std::size_t i = 0; i < kDim; ++i) {
                ASSERT_EQ(std::isnan(out[i]), n_keys > bad) << name << " key " << bad;
              }
            }
          }
        }
      }
      FullCache cache(arithmetic, kDim, kKeys, 3);
      std::vector<float> queries = queries_for(kDim, 1);
      queries[5] = no_number;
      for (const auto& [name, table] : tables_with(arithmetic)) {
        std::vector<float> out;
        cache.call(queries, 2, kKeys, out).run(*table);
        for (std::size_t i = 0; i < kDim; ++i) {
          ASSERT_TRUE(std::isnan(out[i])) << name;
          ASSERT_FALSE(std::isnan(out[i + kDim + 2])) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
