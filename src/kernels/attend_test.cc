// Attention of every table against the scalar table bit by bit, and the scalar table against
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/float16.h"
#include "kernels/table.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

using test_support::near;
using test_support::same_bits;

constexpr int kKeyCounts[] = {1, 3, 63, 64, 65, 128, 200};
constexpr int kHeadDims[] = {1, 8, 16, 20, 64, 128};
constexpr int kMostQueries = 4;

// Keys and values of two heads, the second one in use, positions scattered over the memory.
struct Cache {
  static constexpr int kHeads = 2;
  int dim;
  int n_keys;
  std::vector<float> keys, values;  // what the cache stands for: (n_keys, dim), logical order
  std::vector<float> f32;
  std::vector<std::uint16_t> bf16;
  std::vector<const void*> key_at, value_at;
  KvKind kind;

  Cache(KvKind the_kind, int head_dim, int n, unsigned seed) : dim(head_dim), n_keys(n) {
    kind = the_kind;
    const auto row = static_cast<std::size_t>(kHeads * dim);
    f32 = test_support::awkward_floats(2 * static_cast<std::size_t>(n) * row, seed);
    for (float& value : f32) {
      bf16.push_back(to_bf16(value).bits);
      if (kind == KvKind::bf16) value = to_float(to_bf16(value));
    }
    std::vector<std::size_t> slots(2 * static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = i;
    std::mt19937 generator(seed);
    std::shuffle(slots.begin(), slots.end(), generator);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::size_t at = slots[i] * row;
      const void* address = kind == KvKind::f32 ? static_cast<const void*>(&f32[at])
                                                : static_cast<const void*>(&bf16[at]);
      const bool is_key = i < static_cast<std::size_t>(n);
      (is_key ? key_at : value_at).push_back(address);
      std::vector<float>& plain = is_key ? keys : values;
      const auto begin = f32.begin() + static_cast<std::ptrdiff_t>(at) + dim;
      plain.insert(plain.end(), begin, begin + dim);
    }
  }

  AttendArgs args(const std::vector<float>& queries, int n_queries, std::vector<float>& out) const {
    AttendArgs args{};
    args.queries = queries.data();
    args.query_stride = static_cast<std::size_t>(dim) + 1;
    args.n_queries = n_queries;
    args.head_dim = dim;
    args.scale = 1 / std::sqrt(static_cast<float>(dim));
    args.kv = kind;
    args.keys = key_at.data();
    args.values = value_at.data();
    args.head_offset = static_cast<std::size_t>(dim);
    args.n_keys = n_keys;
    args.out_stride = static_cast<std::size_t>(dim) + 2;
    out.assign(static_cast<std::size_t>(n_queries) * args.out_stride, 777.0F);
    args.out = out.data();
    return args;
  }
};

std::vector<float> queries_for(int dim, unsigned seed) {
  return test_support::awkward_floats(kMostQueries * (static_cast<std::size_t>(dim) + 1), seed);
}

TEST(Attend, EveryTableAndQueryCountGivesTheScalarTablesSingleQueries) {
  for (const KvKind kind : {KvKind::f32, KvKind::bf16}) {
    for (const int dim : kHeadDims) {
      const std::vector<float> queries = queries_for(dim, static_cast<unsigned>(dim));
      for (const int n_keys : kKeyCounts) {
        const Cache cache(kind, dim, n_keys, static_cast<unsigned>(dim * 1000 + n_keys));
        std::vector<float> singles;
        for (int q = 0; q < kMostQueries; ++q) {
          std::vector<float> out;
          AttendArgs args = cache.args(queries, 1, out);
          args.queries += static_cast<std::size_t>(q) * args.query_stride;
          kScalarTable.attend(args);
          singles.insert(singles.end(), out.begin(), out.end());  // the gap stays 777
        }
        for (const auto& [name, table] : test_support::runnable_tables()) {
          for (int n_queries = 1; n_queries <= kMostQueries; ++n_queries) {
            std::vector<float> out;
            table->attend(cache.args(queries, n_queries, out));
            singles.resize(std::max(singles.size(), out.size()));
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

// A score is off by at most delta = (dim + 2) u sum |q| |k| scale and, as a difference from the
// highest, by u times the spread of the scores, once more for each chunk that rescales; e^x turns
// an absolute error into a relative one, with another 2 ulp of its own, in numerator and
// denominator. Sums over n keys, twice, add 2 n u.
TEST(Attend, ScalarTableMatchesDoubleArithmetic) {
  constexpr double kUnit = 0x1p-24;
  for (const KvKind kind : {KvKind::f32, KvKind::bf16}) {
    for (const int dim : kHeadDims) {
      const std::vector<float> queries = queries_for(dim, static_cast<unsigned>(dim));
      for (const int n_keys : kKeyCounts) {
        const Cache cache(kind, dim, n_keys, static_cast<unsigned>(dim * 1000 + n_keys));
        std::vector<float> out;
        const AttendArgs args = cache.args(queries, 1, out);
        kScalarTable.attend(args);
        std::vector<double> scores;
        double delta = 0;
        for (int i = 0; i < n_keys; ++i) {
          double score = 0;
          double magnitudes = 0;
          for (int j = 0; j < dim; ++j) {
            const double term = double{queries[static_cast<std::size_t>(j)]} *
                                cache.keys[static_cast<std::size_t>(i * dim + j)];
            score += term;
            magnitudes += std::fabs(term);
          }
          scores.push_back(score * args.scale);
          delta = std::max(delta, (dim + 2) * kUnit * magnitudes * args.scale);
        }
        const auto bounds = std::minmax_element(scores.begin(), scores.end());
        const double highest = *bounds.second;
        // Beyond 104 below the highest a weight is 0 and its error without effect.
        const double spread = std::min(highest - *bounds.first, 104.0);
        const int n_chunks = (n_keys + kChunkKeys - 1) / kChunkKeys;
        const double relative = 2 * (2 * delta + spread * kUnit * (n_chunks + 1)) +
                                (2 * n_keys + 16 * n_chunks) * kUnit;
        double total = 0;
        for (double& score : scores) total += score = std::exp(score - highest);
        for (int j = 0; j < dim; ++j) {
          double expected = 0;
          double magnitudes = 0;
          for (int i = 0; i < n_keys; ++i) {
            const double term = scores[static_cast<std::size_t>(i)] / total *
                                cache.values[static_cast<std::size_t>(i * dim + j)];
            expected += term;
            magnitudes += std::fabs(term);
          }
          ASSERT_TRUE(near(out[static_cast<std::size_t>(j)], expected,
                           relative * magnitudes + n_keys * 0x1p-149))
              << "dim " << dim << " keys " << n_keys;
        }
      }
    }
  }
}

// Scores far apart, in both orders: the highest alone counts, nothing overflows on the way.
TEST(Attend, SurvivesExtremeScores) {
  for (const auto& [name, table] : test_support::runnable_tables()) {
    for (const float direction : {-1.0F, 1.0F}) {
      constexpr int kKeys = 130;
      std::vector<float> keys(kKeys);
      std::vector<float> values(kKeys);
      std::vector<const void*> key_at;
      std::vector<const void*> value_at;
      for (std::size_t i = 0; i < kKeys; ++i) {
        keys[i] = direction * static_cast<float>(i) * 1e30F;
        values[i] = static_cast<float>(i);
        key_at.push_back(&keys[i]);
        value_at.push_back(&values[i]);
      }
      const float query = 1.0F;
      float out = -1;
      AttendArgs args{};
      args.queries = &query;
      args.n_queries = 1;
      args.head_dim = 1;
      args.scale = 1.0F;
      args.kv = KvKind::f32;
      args.keys = key_at.data();
      args.values = value_at.data();
      args.n_keys = kKeys;
      args.out = &out;
      table->attend(args);
      EXPECT_EQ(out, direction > 0 ? static_cast<float>(kKeys - 1) : 0.0F) << name;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
