// Attention of every table against the scalar table bit by bit, and the scalar table against
// double; by products of bf16, which are each table's own, against itself and double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
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
constexpr int kHeadDims[] = {1, 8, 16, 20, 64, 128, 272};
constexpr int kMostQueries = 9;  // more than go together

// What a table does with keys and values of some kind.
struct Arithmetic {
  KvKind kv;
  bool pairs = false;  // attend_bf16_pairs

  auto of(const KernelTable& table) const {
    return pairs ? table.attend_bf16_pairs : table.attend[static_cast<int>(kv)];
  }
  // Whose bits those of a table are, which it has this arithmetic for.
  const KernelTable& reference(const KernelTable& table) const {
    return pairs ? table : kScalarTable;
  }
};
constexpr Arithmetic kArithmetics[] = {
    {KvKind::f32}, {KvKind::bf16}, {KvKind::int8}, {KvKind::bf16, true}};

bool takes(const Arithmetic& arithmetic, int head_dim) {
  return head_dim <= kMostLaidHeadDim || (arithmetic.kv != KvKind::int8 && !arithmetic.pairs);
}

std::vector<test_support::NamedTable> tables_with(const Arithmetic& arithmetic) {
  std::vector<test_support::NamedTable> tables = test_support::runnable_tables();
  std::erase_if(tables, [&](const auto& named) { return arithmetic.of(*named.table) == nullptr; });
  return tables;
}

struct Call {
  Arithmetic arithmetic{KvKind::f32};
  AttendArgs args{};
  std::vector<AttendRow> rows;

  void run(const KernelTable& table) {
    args.rows = rows.data();
    arithmetic.of(table)(args);
  }
};

// Keys and values of two heads, the second one in use, positions scattered over the memory.
struct Cache {
  static constexpr int kHeads = 2;
  int dim;
  int n_keys;
  std::vector<float> keys, values;  // what the cache stands for: (n_keys, dim), logical order
  std::vector<float> f32;
  std::vector<std::uint16_t> bf16;
  std::vector<std::byte> int8;  // of each row the heads' scales, then their bytes
  std::vector<const void*> key_at, value_at;
  Arithmetic arithmetic;

  Cache(const Arithmetic& read_by, int head_dim, int n, unsigned seed)
      : dim(head_dim), n_keys(n), arithmetic(read_by) {
    const KvKind kind = arithmetic.kv;
    const auto row = static_cast<std::size_t>(kHeads * dim);
    f32 = test_support::awkward_floats(2 * static_cast<std::size_t>(n) * row, seed);
    for (float& value : f32) {
      bf16.push_back(to_bf16(value).bits);
      if (kind == KvKind::bf16) value = to_float(to_bf16(value));
    }
    const std::size_t int8_row = kHeads * (sizeof(float) + static_cast<std::size_t>(dim));
    if (kind == KvKind::int8) {
      int8.resize(f32.size() / row * int8_row);
      for (std::size_t head = 0; head < f32.size() / static_cast<std::size_t>(dim); ++head) {
        std::byte* const begin = &int8[head / kHeads * int8_row];
        float* const values = &f32[head * static_cast<std::size_t>(dim)];
        auto* const bytes = reinterpret_cast<std::int8_t*>(
            begin + kHeads * sizeof(float) + head % kHeads * static_cast<std::size_t>(dim));
        float scale = 0;
        kScalarTable.to_int8(values, dim, bytes, &scale);
        std::memcpy(begin + head % kHeads * sizeof(float), &scale, sizeof scale);
        for (int i = 0; i < dim; ++i) values[i] = static_cast<float>(bytes[i]) * scale;
      }
    }
    std::vector<std::size_t> slots(2 * static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = i;
    std::mt19937 generator(seed);
    std::shuffle(slots.begin(), slots.end(), generator);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::size_t at = slots[i] * row;
      const void* address = &f32[at];
      if (kind == KvKind::bf16) address = &bf16[at];
      if (kind == KvKind::int8) address = &int8[slots[i] * int8_row];
      const bool is_key = i < static_cast<std::size_t>(n);
      (is_key ? key_at : value_at).push_back(address);
      std::vector<float>& plain = is_key ? keys : values;
      const auto begin = f32.begin() + static_cast<std::ptrdiff_t>(at) + dim;
      plain.insert(plain.end(), begin, begin + dim);
    }
  }

  // One row, its first n_shared keys handed over as shared.
  Call call(const std::vector<float>& queries, int n_queries, int n_shared,
            std::vector<float>& out) const {
    Call call;
    AttendArgs& args = call.args;
    args.query_stride = static_cast<std::size_t>(dim) + 1;
    args.n_queries = n_queries;
    args.head_dim = dim;
    args.scale = 1 / std::sqrt(static_cast<float>(dim));
    call.arithmetic = arithmetic;
    const KvKind kind = arithmetic.kv;
    args.shared_keys = key_at.data();
    args.shared_values = value_at.data();
    args.n_shared = n_shared;
    const std::size_t element = kind == KvKind::f32 ? 4 : (kind == KvKind::bf16 ? 2 : 1);
    args.head_offset = static_cast<std::size_t>(dim) * element;
    if (kind == KvKind::int8) args.head_offset += kHeads * sizeof(float);
    args.head_scale = sizeof(float);
    args.out_stride = static_cast<std::size_t>(dim) + 2;
    out.assign(static_cast<std::size_t>(n_queries) * args.out_stride, 777.0F);
    args.n_rows = 1;
    call.rows = {{.queries = queries.data(),
                  .out = out.data(),
                  .n_keys = n_keys,
                  .keys = key_at.data() + n_shared,
                  .values = value_at.data() + n_shared}};
    return call;
  }
};

std::vector<float> queries_for(int dim, unsigned seed) {
  return test_support::awkward_floats(kMostQueries * (static_cast<std::size_t>(dim) + 1), seed);
}

TEST(Attend, EveryTableAndQueryCountGivesTheReferencesSingleQueries) {
  for (const Arithmetic& arithmetic : kArithmetics) {
    for (const int dim : kHeadDims) {
      if (!takes(arithmetic, dim)) continue;
      const std::vector<float> queries = queries_for(dim, static_cast<unsigned>(dim));
      for (const int n_keys : kKeyCounts) {
        const Cache cache(arithmetic, dim, n_keys, static_cast<unsigned>(dim * 1000 + n_keys));
        for (const auto& [name, table] : tables_with(arithmetic)) {
          std::vector<float> singles;
          for (int q = 0; q < kMostQueries; ++q) {
            std::vector<float> out;
            Call call = cache.call(queries, 1, 0, out);
            call.rows[0].queries += static_cast<std::size_t>(q) * call.args.query_stride;
            call.run(arithmetic.reference(*table));
            singles.insert(singles.end(), out.begin(), out.end());  // the gap stays 777
          }
          for (int n_queries = 1; n_queries <= kMostQueries; ++n_queries) {
            std::vector<float> out;
            const int n_chunks = n_keys / kChunkKeys;
            cache.call(queries, n_queries, n_queries % (n_chunks + 1) * kChunkKeys, out)
                .run(*table);
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

// Rows of a tree: what they share is read once, the rest is each row's own. Every row gets the bits
// it gets alone.
class RowsTogether : public ::testing::TestWithParam<int> {};

TEST_P(RowsTogether, GetTheBitsOfSingleRows) {
  const int dim = GetParam();
  constexpr int kQueries = kMostQueries;
  constexpr int kKeys = 300;
  std::mt19937 generator(5);
  for (const Arithmetic& arithmetic : kArithmetics) {
    const Cache cache(arithmetic, dim, kKeys, 9);
    for (const int n_shared : {0, 64, 128}) {
      for (const auto& [n_rows, n_alike] :
           {std::pair{2, 0}, {5, 1}, {5, 16}, {3, 50}, {kMostAttendRows, 63}}) {
        const std::size_t out_size = kQueries * (static_cast<std::size_t>(dim) + 2);
        std::vector<std::vector<float>> queries;
        std::vector<std::vector<float>> outs(static_cast<std::size_t>(n_rows));
        std::vector<std::vector<const void*>> keys(static_cast<std::size_t>(n_rows));
        std::vector<std::vector<const void*>> values(static_cast<std::size_t>(n_rows));
        std::vector<float> ignored;
        Call together = cache.call(queries_for(dim, 0), kQueries, n_shared, ignored);
        together.args.n_rows = n_rows;
        together.args.n_alike = n_alike;
        together.rows.clear();
        for (std::size_t r = 0; r < outs.size(); ++r) {
          queries.push_back(queries_for(dim, static_cast<unsigned>(r)));
          outs[r].assign(out_size, 777.0F);
          // Behind what is shared, what is still alike; then a walk of its own, of any length, the
          // first one's of none.
          for (std::size_t i = 0; i < static_cast<std::size_t>(n_alike); ++i) {
            keys[r].push_back(cache.key_at[static_cast<std::size_t>(n_shared) + i]);
            values[r].push_back(cache.value_at[static_cast<std::size_t>(n_shared) + i]);
          }
          const int n_least = n_shared + n_alike == 0 ? 1 : 0;
          const int n_own = n_least + (r == 0 ? 0 : static_cast<int>(generator() % 150));
          for (int i = 0; i < n_own; ++i) {
            const std::size_t any = generator() % kKeys;
            keys[r].push_back(cache.key_at[any]);
            values[r].push_back(cache.value_at[any]);
          }
          together.rows.push_back({.queries = queries[r].data(),
                                   .out = outs[r].data(),
                                   .n_keys = n_shared + n_alike + n_own,
                                   .keys = keys[r].data(),
                                   .values = values[r].data()});
        }
        for (const auto& [name, table] : tables_with(arithmetic)) {
          together.run(*table);
          for (std::size_t r = 0; r < outs.size(); ++r) {
            std::vector<const void*> all_keys(cache.key_at.begin(),
                                              cache.key_at.begin() + n_shared);
            std::vector<const void*> all_values(cache.value_at.begin(),
                                                cache.value_at.begin() + n_shared);
            all_keys.insert(all_keys.end(), keys[r].begin(), keys[r].end());
            all_values.insert(all_values.end(), values[r].begin(), values[r].end());
            std::vector<float> expected;
            Call alone = cache.call(queries[r], kQueries, 0, expected);
            alone.rows[0].n_keys = together.rows[r].n_keys;
            alone.rows[0].keys = all_keys.data();
            alone.rows[0].values = all_values.data();
            alone.run(arithmetic.reference(*table));
            ASSERT_TRUE(same_bits(outs[r], expected))
                << name << " shared " << n_shared << " alike " << n_alike << " rows " << n_rows
                << " row " << r;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, RowsTogether, ::testing::Values(1, 24, 64, 80, 256));

// A score is off by at most delta = (dim + 2) u sum |q| |k| scale and, as a difference from the
// highest, by u times the spread of the scores, once more for each chunk that rescales; e^x turns
// an absolute error into a relative one, with another 2 ulp of its own, in numerator and
// denominator. Sums over n keys, twice, add 2 n u. A weight below 2^-126 may be 0.
//
// With keys and values in int8 a query is off by half a step of its words, and so is, in every
// chunk, each weight times the scale of its value, which then counts for at most 127.
//
// By products of bf16 each element of a query and each weight is off by 2^-8 of its size (a weight
// in the sum of values and in the total alike; by 2^-14 before it is rounded), and subnormal
// numbers are 0.
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
        const Cache cache(arithmetic, dim, n_keys, static_cast<unsigned>(dim * 1000 + n_keys));
        std::vector<float> ignored;
        const AttendArgs args = cache.call(queries, 1, 0, ignored).args;
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
        // Beyond 104 below the highest a weight is 0 and its error without effect.
        const double spread = std::min(highest - *bounds.first, 104.0);
        const int n_chunks = (n_keys + kChunkKeys - 1) / kChunkKeys;
        double relative = 2 * (2 * delta + spread * kUnit * (n_chunks + 1)) +
                          (2 * n_keys + 16 * n_chunks) * kUnit;
        if (arithmetic.pairs) relative += 2 * 1.01 * (kBf16Unit + 0x1p-14);
        double total = 0;
        for (double& score : scores) total += score = std::exp(score - highest);
        // Of each chunk, the largest weight times its value's largest element.
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
        // Tables that share their bits share their errors: the scalar one stands for them.
        for (const auto& [name, table] : tables_with(arithmetic)) {
          if (&arithmetic.reference(*table) != table) continue;
          std::vector<float> out;
          cache.call(queries, 1, 0, out).run(*table);
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

// Beside a key whose weight is 1, one whose score is lower by -x: what it counts for, by products
// of bf16, is the bf16 number next to e^x, or the other one where e^x lies between both but for
// 2^-14.
TEST(Attend, WeightsByProductsOfBf16AreTheNearest) {
  for (const auto& [name, table] : tables_with({KvKind::bf16, true})) {
    for (int step = 0; step < 1000; ++step) {
      const float x = to_float(to_bf16(-0.01F * static_cast<float>(step)));
      const std::uint16_t keys[] = {to_bf16(0.0F).bits, to_bf16(x).bits};
      const std::uint16_t values[] = {to_bf16(0.0F).bits, to_bf16(1.0F).bits};
      const void* key_at[] = {&keys[0], &keys[1]};
      const void* value_at[] = {&values[0], &values[1]};
      const float query = 1.0F;
      float out = -1;
      Call call;
      call.arithmetic = {KvKind::bf16, true};
      call.rows = {
          {.queries = &query, .out = &out, .n_keys = 2, .keys = key_at, .values = value_at}};
      call.args.n_rows = 1;
      call.args.n_queries = 1;
      call.args.head_dim = 1;
      call.args.scale = 1.0F;
      call.run(*table);
      const auto is_weight = [&](double weight) {
        const double nearest = double{to_float(to_bf16(static_cast<float>(weight)))};
        // Three roundings to float; neighbours are 2^-9 of a quarter apart, and more.
        return std::fabs(out * (1 + nearest) - nearest) <= 4 * 0x1p-24 * nearest;
      };
      const double weight = std::exp(double{x});
      EXPECT_TRUE(is_weight(weight * (1 - 0x1p-14)) || is_weight(weight * (1 + 0x1p-14)))
          << name << " e^" << x << " " << weight << " " << out / (1 - out);
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
      Call call;
      call.rows = {{.queries = &query,
                    .out = &out,
                    .n_keys = kKeys,
                    .keys = key_at.data(),
                    .values = value_at.data()}};
      call.args.n_rows = 1;
      call.args.n_queries = 1;
      call.args.head_dim = 1;
      call.args.scale = 1.0F;
      call.run(*table);
      EXPECT_EQ(out, direction > 0 ? static_cast<float>(kKeys - 1) : 0.0F) << name;
    }
  }
}

// What is no number in a query, in keys or in values shows in whoever reads it, and in nobody else.
TEST(Attend, NotANumberShowsWhereItIsRead) {
  constexpr int kDim = 24;
  constexpr int kKeys = 100;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Arithmetic& arithmetic : kArithmetics) {
    const KvKind kind = arithmetic.kv;
    for (const int bad : {3, kKeys - 1}) {
      for (const bool in_keys : {true, false}) {
        Cache cache(arithmetic, kDim, kKeys, 3);
        const void*& at = (in_keys ? cache.key_at : cache.value_at)[static_cast<std::size_t>(bad)];
        std::vector<float> f32(2 * kDim, nan);
        std::vector<std::uint16_t> bf16(2 * kDim, to_bf16(nan).bits);
        std::vector<std::byte> int8(2 * (sizeof(float) + kDim));
        for (const std::size_t head : {0, 1}) {
          std::memcpy(&int8[head * sizeof(float)], &nan, sizeof nan);
        }
        at = f32.data();
        if (kind == KvKind::bf16) at = bf16.data();
        if (kind == KvKind::int8) at = int8.data();
        for (const auto& [name, table] : tables_with(arithmetic)) {
          for (const int n_keys : {bad, bad + 1, kKeys}) {
            std::vector<float> out;
            const std::vector<float> queries = queries_for(kDim, 1);
            Call call = cache.call(queries, 1, 0, out);
            call.rows[0].n_keys = n_keys;
            call.run(*table);
            for (std::size_t i = 0; i < kDim; ++i) {
              ASSERT_EQ(std::isnan(out[i]), n_keys > bad) << name << " key " << bad;
            }
          }
        }
      }
    }
    const Cache cache(arithmetic, kDim, kKeys, 3);
    std::vector<float> queries = queries_for(kDim, 1);
    queries[5] = nan;
    for (const auto& [name, table] : tables_with(arithmetic)) {
      std::vector<float> out;
      cache.call(queries, 2, kChunkKeys, out).run(*table);
      for (std::size_t i = 0; i < kDim; ++i) {
        ASSERT_TRUE(std::isnan(out[i])) << name;
        ASSERT_FALSE(std::isnan(out[i + kDim + 2])) << name;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
