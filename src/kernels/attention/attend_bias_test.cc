// SPDX-License-Identifier: Apache-2.0
// Biases of scores (T5's, by distance): compares the scalar table with double, and every table's
// rows together with single queries, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/table.h"
#include "tests/support/attend_calls.h"
#include "tests/support/kernel_tables.h"

namespace outrider::kernels {
namespace {

using test::same_bits;

// Each query has its own number for each position, added after the scale and before the cap, within
// the window, in every split.
TEST(Attend, ABiasIsAddedToItsScores) {
  constexpr int kDim = 24;
  constexpr int kQueries = 3;
  constexpr double kScale = 0.3;
  for (const Arithmetic& arithmetic : {Arithmetic{KvKind::f32}, Arithmetic{KvKind::bf16}}) {
    const std::vector<float> queries = queries_for(kDim, 21);
    for (const int n_keys : {1, 70, 129, kSplitKeys + 90}) {
      FullCache cache(arithmetic, kDim, n_keys, 22);
      const auto stride = static_cast<std::size_t>(n_keys) + 5;  // NaN between queries
      std::vector<float> bias(kQueries * stride, std::numeric_limits<float>::quiet_NaN());
      for (std::size_t q = 0; q < kQueries; ++q) {
        for (int key = 0; key < n_keys; ++key) {
          bias[q * stride + static_cast<std::size_t>(key)] =
              static_cast<float>((key * 37 + static_cast<int>(q) * 11) % 23) * 0.375F - 4;
        }
      }
      for (const float softcap : {0.0F, 3.0F}) {
        for (const int first_key : {0, n_keys / 3}) {
          std::vector<float> out;
          Call call = cache.call(queries, kQueries, n_keys, out);
          call.args.scale = kScale;
          call.args.softcap = softcap;
          call.args.bias_stride = stride;
          call.rows[0].bias = bias.data();
          call.rows[0].first_key = first_key;
          call.run(kScalarTable);
          for (std::size_t q = 0; q < kQueries; ++q) {
            const auto at = [&](const std::vector<float>& rows, int key, int d) {
              return double{
                  rows[static_cast<std::size_t>(key) * kDim + static_cast<std::size_t>(d)]};
            };
            std::vector<double> scores;
            for (int key = first_key; key < n_keys; ++key) {
              double score = 0;
              for (int d = 0; d < kDim; ++d) {
                score += at(cache.keys, key, d) *
                         queries[q * call.args.query_stride + static_cast<std::size_t>(d)];
              }
              score = score * kScale + bias[q * stride + static_cast<std::size_t>(key)];
              scores.push_back(softcap == 0 ? score : softcap * std::tanh(score / softcap));
            }
            const double highest = *std::max_element(scores.begin(), scores.end());
            double total = 0;
            for (double& score : scores) total += score = std::exp(score - highest);
            for (int d = 0; d < kDim; ++d) {
              double expected = 0;
              double size = 0;
              double all = 0;
              for (int key = first_key; key < n_keys; ++key) {
                const double share = scores[static_cast<std::size_t>(key - first_key)] / total;
                expected += share * at(cache.values, key, d);
                size += share * std::fabs(at(cache.values, key, d));
                all += std::fabs(at(cache.values, key, d));
              }
              // A weight that is nearly 0 may be lost entirely; see attend_test.cc.
              const double lost = std::exp(-88) * all + 0x1p-149;
              EXPECT_NEAR(out[q * call.args.out_stride + static_cast<std::size_t>(d)], expected,
                          1e-4 * size + lost)
                  << n_keys << " keys from " << first_key << ", query " << q << ", cap " << softcap;
            }
          }
        }
      }
    }
  }
}

// Queries computed together, including rows of a tree, have the bits of each alone with its own
// biases, on every table and by every arithmetic.
TEST(Attend, BiasesKeepTheBitsOfSingleQueries) {
  constexpr int kDim = 20;
  constexpr int kQueries = 5;
  constexpr int kRows = 4;
  constexpr std::size_t kStride = kSplitKeys + 100;
  std::vector<float> bias(kRows * kQueries * kStride);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    bias[i] = static_cast<float>(i * 29 % 41) * 0.25F - 5;
  }
  for (const Arithmetic& arithmetic : kArithmetics) {
    const std::vector<float> queries = queries_for(kDim, 31);
    for (const int n_keys : {3, 64, 200, kSplitKeys + 70}) {
      FullCache cache(arithmetic, kDim, n_keys, 32);
      // The last positions are in slots of arbitrary order.
      const int n_contiguous = n_keys / 2;
      std::vector<int> order;
      for (int i = 0; i < n_keys; ++i) order.push_back(i < n_contiguous ? i : i * 7 % n_keys);
      Cache committed(arithmetic, kDim, n_keys);
      committed.copy(cache, order);
      for (const auto& [name, table] : tables_with(arithmetic)) {
        std::vector<std::vector<float>> outs;
        Call together = cache.call(kQueries);
        together.args.n_rows = kRows;
        together.args.bias_stride = kStride;
        outs.assign(kRows, std::vector<float>(kQueries * together.args.out_stride, 777.0F));
        for (std::size_t r = 0; r < kRows; ++r) {
          together.rows.push_back({.queries = queries.data(),
                                   .out = outs[r].data(),
                                   .states = nullptr,
                                   .n_keys = n_keys - static_cast<int>(r % 2),
                                   .first_key = 0,
                                   .n_contiguous = n_contiguous,
                                   .slots = order.data() + n_contiguous,
                                   .bias = bias.data() + r * kQueries * kStride});
        }
        together.run(*table);
        for (std::size_t r = 0; r < kRows; ++r) {
          std::vector<float> singles;
          for (std::size_t q = 0; q < kQueries; ++q) {
            std::vector<float> out;
            Call call = committed.call(queries, 1, together.rows[r].n_keys, out);
            call.rows[0].queries += q * call.args.query_stride;
            call.rows[0].bias = together.rows[r].bias + q * kStride;
            call.run(arithmetic.reference(*table));
            singles.insert(singles.end(), out.begin(), out.end());
          }
          EXPECT_TRUE(same_bits(outs[r], singles)) << name << " keys " << n_keys << " row " << r;
        }
        if (n_keys >= 64) {
          EXPECT_FALSE(same_bits(outs[0], outs[2])) << name;  // the biases make the difference
        }
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
