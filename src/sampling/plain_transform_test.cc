// SPDX-License-Identifier: Apache-2.0
// Compares the transform with a plain implementation of the same algorithm. That one looks at every
// token in double precision without shortcuts. Results are compared bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/elementary.h"
#include "base/lane_sum.h"
#include "sampling/raw_probs.h"
#include "sampling/transform.h"

namespace outrider {
namespace {
namespace plain {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The order "likelier" as an integer: keys order by logit, and among equals by lower id first. Not
// for NaN.
std::uint64_t rank_key(float logit, TokenId id) {
  // + 0 makes -0 equal to 0. Positive floats order as their bits do, negative ones the other way.
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);
  const std::uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (static_cast<std::uint64_t>(ordered) << 32) | ~static_cast<std::uint32_t>(id);
}

float logit_of(std::uint64_t key) {
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  return std::bit_cast<float>(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// The largest logit that is not NaN, the lowest id among equals; id 0 if all are NaN.
TokenId likeliest(std::span<const float> logits) {
  std::size_t best = 0;
  float best_logit = std::isnan(logits[0]) ? kMinusInfinity : logits[0];
  bool is_number = !std::isnan(logits[0]);
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > best_logit || (!is_number && logits[i] == logits[i])) {
      best = i;
      best_logit = logits[i];
      is_number = true;
    }
  }
  return static_cast<TokenId>(best);
}

void become_point_mass(TokenId id, Distribution& out) {
  out.ids.assign(1, id);
  out.probs.assign(1, 1.0);
}

// The k-th largest key among logits above -infinity; 0, which is below every key, if there are
// fewer. One pass keeps the best few: O(n) for any k, and for small k most logits fail the first
// comparison.
std::uint64_t top_k_cutoff(std::span<const float> logits, std::size_t k) {
  // Buffering k more (at least 256, for small k) makes one selection serve k new candidates.
  const std::size_t capacity = k + std::max<std::size_t>(k, 256);
  std::vector<std::uint64_t> best;
  best.reserve(std::min(capacity, logits.size()));
  const auto select = [&best, k] {
    const auto kth = best.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(best.begin(), kth, best.end(), std::greater<>());
    best.resize(k);
    return best.back();
  };
  // A later equal logit has a higher id than the k already kept, so it loses.
  float bar = kMinusInfinity;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar)) continue;
    best.push_back(rank_key(logits[i], static_cast<TokenId>(i)));
    if (best.size() == capacity) bar = logit_of(select());
  }
  if (best.size() < k) return 0;
  return select();
}

// The key of the last token of the nucleus: the token that brings the weight of the likeliest ones
// to top_p of the total. `weighted` is not normalised yet; total is its sum.
//
// Tokens are sorted into buckets by their distance from the largest logit, and only the bucket with
// the boundary is sorted fully. That is O(n) except for flat distributions, which share few
// buckets. Buckets are summed in the order of ids and visited in their own, so sums are the same on
// every machine.
std::uint64_t top_p_cutoff(std::span<const float> logits, float largest, double temperature,
                           const Distribution& weighted, double total, double top_p) {
  // 64 buckets per factor of e, so a bucket spans 1.6 percent in weight. The last one takes all
  // tokens below e^-64 of the likeliest.
  constexpr double kBucketsPerUnit = 64;
  constexpr std::size_t kLastBucket = 4095;
  const auto bucket_of = [=](TokenId id) {
    const double logit = logits[static_cast<std::size_t>(id)];
    const double distance = (static_cast<double>(largest) - logit) / temperature;
    const double bucket = distance * kBucketsPerUnit;
    return bucket < static_cast<double>(kLastBucket) ? static_cast<std::size_t>(bucket)
                                                     : kLastBucket;  // infinite logits as well
  };
  std::vector<double> bucket_weights(kLastBucket + 1, 0.0);
  for (std::size_t i = 0; i < weighted.ids.size(); ++i) {
    bucket_weights[bucket_of(weighted.ids[i])] += weighted.probs[i];
  }
  const double goal = top_p * total;
  double weight = 0;
  std::size_t boundary = 0;
  while (boundary <= kLastBucket && weight + bucket_weights[boundary] < goal) {
    weight += bucket_weights[boundary++];
  }
  if (boundary > kLastBucket) return 0;  // by rounding, the buckets' sum fell short of the total

  struct Candidate {
    std::uint64_t key;
    double weight;
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < weighted.ids.size(); ++i) {
    const TokenId id = weighted.ids[i];
    if (bucket_of(id) != boundary) continue;
    candidates.push_back({rank_key(logits[static_cast<std::size_t>(id)], id), weighted.probs[i]});
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.key > b.key; });
  for (const Candidate& candidate : candidates) {
    weight += candidate.weight;
    if (weight >= goal) return candidate.key;
  }
  return candidates.back().key;  // by rounding, this order's sum fell short of the bucket's
}

double sum_of(const Distribution& weighted) {
  LaneSum sum;
  for (std::size_t i = 0; i < weighted.ids.size(); ++i) {
    sum.add(static_cast<std::size_t>(weighted.ids[i]), weighted.probs[i]);
  }
  return sum.total();
}

// Drops the entries for which keep(id, weight) is false.
template <typename Keep>
void filter(Distribution& weighted, const Keep& keep) {
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < weighted.ids.size(); ++i) {
    if (!keep(weighted.ids[i], weighted.probs[i])) continue;
    weighted.ids[n_kept] = weighted.ids[i];
    weighted.probs[n_kept++] = weighted.probs[i];
  }
  weighted.ids.resize(n_kept);
  weighted.probs.resize(n_kept);
}

// Fills out.probs, not yet normalised, for the ids already in out: e^((logit - largest) /
// temperature), which is 1 at the largest. Drops tokens of weight 0.
void weigh(std::span<const float> logits, float largest, double temperature, Distribution& out) {
  out.probs.resize(out.ids.size());
  if (largest == std::numeric_limits<float>::infinity()) {
    // The limit of growing logits: those at infinity share all probability.
    for (std::size_t i = 0; i < out.ids.size(); ++i) {
      out.probs[i] = logits[static_cast<std::size_t>(out.ids[i])] == largest ? 1.0 : 0.0;
    }
  } else {
    // Divides instead of multiplying by a reciprocal, so temperatures down to the least double
    // work.
    for (std::size_t i = 0; i < out.ids.size(); ++i) {
      const double logit = logits[static_cast<std::size_t>(out.ids[i])];
      out.probs[i] = (logit - static_cast<double>(largest)) / temperature;
    }
    for (double& prob : out.probs) prob = portable_exp(prob);
  }
  const auto positive = [](TokenId, double weight) { return weight > 0; };  // drops NaN as well
  const bool complete =
      std::all_of(out.probs.begin(), out.probs.end(), [](double weight) { return weight > 0; });
  if (!complete) filter(out, positive);
}

void normalise(Distribution& weighted) {
  const double scale = 1 / sum_of(weighted);
  for (double& prob : weighted.probs) prob *= scale;
}

void every_id(std::size_t n, Distribution& out) {
  out.ids.resize(n);
  std::iota(out.ids.begin(), out.ids.end(), TokenId{0});
}

void raw_distribution(std::span<const float> penalised, Distribution& out) {
  const TokenId first = likeliest(penalised);
  const float largest = penalised[static_cast<std::size_t>(first)];
  if (!(largest > kMinusInfinity)) return become_point_mass(first, out);
  every_id(penalised.size(), out);
  weigh(penalised, largest, 1.0, out);
  normalise(out);
}

void distribution(const SamplingParams& params, std::span<const float> penalised,
                  Distribution& out) {
  const bool greedy = params.temperature == 0 || params.top_k == 1;
  const TokenId first = likeliest(penalised);
  const float largest = penalised[static_cast<std::size_t>(first)];
  if (greedy || !(largest > kMinusInfinity)) {
    return become_point_mass(first, out);
  }
  const auto k = static_cast<std::size_t>(params.top_k);
  if (k > 0 && k < penalised.size()) {
    const std::uint64_t cutoff = top_k_cutoff(penalised, k);
    const float bar = cutoff == 0 ? kMinusInfinity : logit_of(cutoff);
    out.ids.clear();
    for (std::size_t i = 0; i < penalised.size(); ++i) {
      if (!(penalised[i] >= bar)) continue;
      const auto id = static_cast<TokenId>(i);
      if (rank_key(penalised[i], id) >= cutoff) out.ids.push_back(id);
    }
  } else {
    every_id(penalised.size(), out);
  }
  weigh(penalised, largest, params.temperature, out);
  if (params.top_p < 1) {
    const std::uint64_t cutoff =
        top_p_cutoff(penalised, largest, params.temperature, out, sum_of(out), params.top_p);
    filter(out, [&](TokenId id, double) {
      return rank_key(penalised[static_cast<std::size_t>(id)], id) >= cutoff;
    });
  }
  if (params.min_p > 0) {
    // The likeliest token weighs 1, so a weight is relative to the likeliest one's.
    filter(out, [&](TokenId, double weight) { return weight >= params.min_p; });
  }
  normalise(out);
}

void likeliest_tokens(std::span<const float> logits, int count, std::vector<TokenId>& ids) {
  ids.assign(1, likeliest(logits));
  if (count == 1 || !(logits[static_cast<std::size_t>(ids[0])] > kMinusInfinity)) return;
  const std::uint64_t cutoff = top_k_cutoff(logits, static_cast<std::size_t>(count));
  const float bar = cutoff == 0 ? kMinusInfinity : logit_of(cutoff);
  ids.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] >= bar) || logits[i] == kMinusInfinity) continue;
    const auto id = static_cast<TokenId>(i);
    if (rank_key(logits[i], id) >= cutoff) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(), [logits](TokenId a, TokenId b) {
    return rank_key(logits[static_cast<std::size_t>(a)], a) >
           rank_key(logits[static_cast<std::size_t>(b)], b);
  });
}

}  // namespace plain

// Compares bits, so that NaN and -0 count.
void expect_same(const Distribution& got, const Distribution& want, const std::string& where) {
  ASSERT_EQ(got.ids, want.ids) << where;
  ASSERT_EQ(got.probs.size(), want.probs.size()) << where;
  ASSERT_EQ(std::memcmp(got.probs.data(), want.probs.data(), got.probs.size() * sizeof(double)), 0)
      << where;
}

struct Row {
  std::string name;
  std::vector<float> logits;
};

// Realistic and odd logits: a few tokens far above a bell of the others; flat; all equal; on a grid
// (ties at every boundary); with -infinity, NaN, both infinities, subnormals.
Row make_row(std::mt19937_64& random, std::size_t n) {
  std::normal_distribution<double> normal;
  Row row;
  row.logits.resize(n);
  const double spread = std::vector<double>{1e-3, 0.3, 1, 2.5, 6, 40}[random() % 6];
  const double grid = std::vector<double>{0, 0, 0.25, 3}[random() % 4];
  const auto n_peaks = std::vector<std::size_t>{0, 1, 5, 100, 2000}[random() % 5];
  const double height = std::vector<double>{1, 6, 15}[random() % 3];
  row.name = "n " + std::to_string(n) + " spread " + std::to_string(spread) + " grid " +
             std::to_string(grid) + " peaks " + std::to_string(n_peaks) + " of " +
             std::to_string(height);
  for (float& logit : row.logits) {
    double value = spread * normal(random);
    if (grid > 0) value = grid * std::round(value / grid);
    logit = static_cast<float>(value);
  }
  const auto anywhere = [&]() -> float& { return row.logits[random() % n]; };
  for (std::size_t i = 0; i < n_peaks; ++i) {
    anywhere() = static_cast<float>(height + spread * normal(random));
  }
  const auto strange = random() % 10;
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (strange == 0) {
    for (std::size_t i = 0; i < n / 3 + 1; ++i) anywhere() = -infinity;
  } else if (strange == 1) {
    for (std::size_t i = 0; i < n / 3 + 1; ++i) anywhere() = nan;
  } else if (strange == 2) {
    for (int i = 0; i < 3; ++i) anywhere() = infinity;
  } else if (strange == 3) {
    for (int i = 0; i < 9; ++i) anywhere() = (i % 2 ? -1.0F : 1.0F) * 3e38F;
  } else if (strange == 4) {
    for (float& logit : row.logits) logit *= 1e-40F;
  } else if (strange == 5 && random() % 4 == 0) {
    std::fill(row.logits.begin(), row.logits.end(), random() % 2 ? -infinity : nan);
    anywhere() = random() % 2 ? -infinity : 2.0F;
  }
  row.name += " strange " + std::to_string(strange);
  return row;
}

SamplingParams make_params(std::mt19937_64& random, std::size_t n) {
  SamplingParams params;
  params.temperature =
      std::vector<double>{0, 1e-320, 1e-4, 0.1, 0.8, 0.8, 1, 1, 2, 50, 1e5, 1e300}[random() % 12];
  if (random() % 3 == 0) {
    params.top_k =
        static_cast<int>(std::vector<std::size_t>{1, 2, 40, n / 2, n - 1, n, n + 5}[random() % 7]);
  }
  if (random() % 3 != 0) {
    params.top_p = std::vector<double>{1e-12, 0.1,   0.5,    0.9,      0.95,       0.95,
                                       0.99,  0.999, 0.9999, 1 - 1e-9, 1 - 0x1p-53}[random() % 11];
  }
  if (random() % 4 == 0) params.min_p = std::vector<double>{1e-9, 0.05, 1}[random() % 3];
  return params;
}

TEST(Transform, EqualsThePlainOneBitForBit) {
  std::mt19937_64 random(7);
  Distribution got;
  Distribution want;
  for (int trial = 0; trial < 600; ++trial) {
    // Sizes around those of blocks and chunks, and sizes of real vocabularies.
    const std::vector<std::size_t> sizes = {1,   2,   63,  64,  65,   255,
                                            256, 257, 511, 513, 1000, 4096 + random() % 100};
    const std::size_t n = trial % 60 == 0   ? 128'256
                          : trial % 10 == 0 ? 32'000
                                            : sizes[random() % sizes.size()];
    const Row row = make_row(random, n);
    for (int i = 0; i < 3; ++i) {
      const SamplingParams params = make_params(random, n);
      const std::string where = row.name + " T " + std::to_string(params.temperature) + " k " +
                                std::to_string(params.top_k) + " p " +
                                std::to_string(params.top_p) + " min " +
                                std::to_string(params.min_p);
      Transform(params, static_cast<int>(n)).distribution(row.logits, got);
      plain::distribution(params, row.logits, want);
      expect_same(got, want, where);
    }
    Transform({}, static_cast<int>(n)).raw_distribution(row.logits, got);
    plain::raw_distribution(row.logits, want);
    expect_same(got, want, row.name);
    const RawProbs single(row.logits);
    for (TokenId id = 0; id < static_cast<TokenId>(n); ++id) {
      ASSERT_EQ(single.prob(id), want.prob(id)) << row.name << ", token " << id;
    }
    for (const int count : {1, 3, 40, static_cast<int>(n)}) {
      std::vector<TokenId> got_ids;
      std::vector<TokenId> want_ids;
      likeliest_tokens(row.logits, count, got_ids);
      plain::likeliest_tokens(row.logits, count, want_ids);
      ASSERT_EQ(got_ids, want_ids) << row.name << " count " << count;
    }
  }
}

// The hardest boundary for the shortcut: the nucleus ends exactly at a token for the plain
// implementation's sum, or one rounding beside it.
TEST(Transform, EqualsThePlainOneWhereTheNucleusEndsWithinRounding) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  Distribution got;
  Distribution want;
  for (int trial = 0; trial < 80; ++trial) {
    std::vector<float> logits(trial % 2 ? 32'000 : 5000);
    for (float& logit : logits) logit = static_cast<float>(normal(random));
    for (int i = 0; i < 50; ++i) {
      logits[random() % logits.size()] = static_cast<float>(12 + 2 * normal(random));
    }
    SamplingParams params{.temperature = 0.8};
    plain::distribution(params, logits, want);
    std::vector<double> probs = want.probs;
    std::sort(probs.begin(), probs.end(), std::greater<>());
    double sum = 0;
    const std::size_t last = random() % 40;
    for (std::size_t i = 0; i <= last; ++i) sum += probs[i];
    for (const double top_p : {std::nextafter(sum, 0.0), sum, std::nextafter(sum, 2.0),
                               sum * (1 - 1e-6), sum * (1 + 1e-6), sum * (1 - 1e-5)}) {
      params.top_p = std::min(top_p, 1.0);
      Transform(params, static_cast<int>(logits.size())).distribution(logits, got);
      plain::distribution(params, logits, want);
      expect_same(got, want, std::to_string(trial));
    }
  }
}

}  // namespace
}  // namespace outrider
