#include "sampling/transform.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/elementary.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void require(bool holds, const char* parameter, const char* expected, double got) {
  if (!holds) throw UsageError("sampling", parameter, expected, fmt::format("{}", got));
}

// "Likelier" as one integer: the order of keys is that of logits, among equals the lower id first.
// Never asked of NaN.
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

// The largest logit that is a number, the lowest id among equals; id 0 if all are NaN.
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

// The k-th largest key among logits above -infinity; 0, which is below every key, where there are
// fewer. One walk that keeps the best few: O(n) whatever k, and for small k most logits fail the
// first comparison.
std::uint64_t top_k_cutoff(std::span<const float> logits, std::size_t k) {
  // Room for k again (and at least 256, for small k) makes a selection pay for k new candidates.
  const std::size_t capacity = k + std::max<std::size_t>(k, 256);
  std::vector<std::uint64_t> best;
  best.reserve(std::min(capacity, logits.size()));
  const auto select = [&best, k] {
    const auto kth = best.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(best.begin(), kth, best.end(), std::greater<>());
    best.resize(k);
    return best.back();
  };
  // An equal logit further on has a higher id than the k already kept: it loses too.
  float bar = kMinusInfinity;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar)) continue;
    best.push_back(rank_key(logits[i], static_cast<TokenId>(i)));
    if (best.size() == capacity) bar = logit_of(select());
  }
  if (best.size() < k) return 0;
  return select();
}

// The key of the last token of the nucleus: the likeliest tokens, the last of which brings their
// weight to top_p of the total. `weighted` is not normalised yet; total is its sum.
//
// Tokens are dealt into buckets by their distance from the largest logit, and only the bucket in
// which the boundary falls is sorted: O(n) but for flat distributions, which share few buckets.
// Buckets are summed in the order of ids and walked in their own: the same sums on every machine.
std::uint64_t top_p_cutoff(std::span<const float> logits, float largest, double temperature,
                           const Distribution& weighted, double total, double top_p) {
  // 64 to a factor of e: a bucket spans 1.6 percent in weight. The last one takes all that weighs
  // less than e^-64 of the likeliest.
  constexpr double kBucketsPerUnit = 64;
  constexpr std::size_t kLastBucket = 4095;
  const auto bucket_of = [=](TokenId id) {
    const double logit = logits[static_cast<std::size_t>(id)];
    const double distance = (static_cast<double>(largest) - logit) / temperature;
    const double bucket = distance * kBucketsPerUnit;
    return bucket < static_cast<double>(kLastBucket) ? static_cast<std::size_t>(bucket)
                                                     : kLastBucket;  // infinite logits too
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
  if (boundary > kLastBucket) return 0;  // rounding: the buckets' sum fell short of the whole

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
  return candidates.back().key;  // rounding again: this order's sum fell short of the bucket's
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
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
// temperature), which is 1 at the largest. Tokens of weight 0 leave.
void weigh(std::span<const float> logits, float largest, double temperature, Distribution& out) {
  out.probs.resize(out.ids.size());
  if (largest == std::numeric_limits<float>::infinity()) {
    // The limit of growing logits: those at infinity share everything.
    for (std::size_t i = 0; i < out.ids.size(); ++i) {
      out.probs[i] = logits[static_cast<std::size_t>(out.ids[i])] == largest ? 1.0 : 0.0;
    }
  } else {
    // Divided, not multiplied by a reciprocal: temperatures down to the least double work.
    for (std::size_t i = 0; i < out.ids.size(); ++i) {
      const double logit = logits[static_cast<std::size_t>(out.ids[i])];
      out.probs[i] = (logit - static_cast<double>(largest)) / temperature;
    }
    portable_exp_each(out.probs);
  }
  const auto positive = [](TokenId, double weight) { return weight > 0; };  // NaN leaves as well
  const bool complete =
      std::all_of(out.probs.begin(), out.probs.end(), [](double weight) { return weight > 0; });
  if (!complete) filter(out, positive);
}

void normalise(Distribution& weighted) {
  const double total = sum_of(weighted.probs);
  for (double& prob : weighted.probs) prob /= total;
}

void every_id(std::size_t n, Distribution& out) {
  out.ids.resize(n);
  std::iota(out.ids.begin(), out.ids.end(), TokenId{0});
}

}  // namespace

void TokenHistory::add_prompt(std::span<const TokenId> tokens) {
  for (TokenId token : tokens) counts_[token].in_prompt = true;
}

void TokenHistory::add_generated(TokenId token) { ++counts_[token].generated; }

Transform::Transform(SamplingParams params, int vocabulary_size)
    : params_(std::move(params)), vocabulary_size_(vocabulary_size) {
  const SamplingParams& p = params_;
  require(std::isfinite(p.temperature) && p.temperature >= 0, "temperature", "a number >= 0",
          p.temperature);
  require(p.top_k >= 0, "top-k", "a count >= 0", p.top_k);
  require(p.top_p > 0 && p.top_p <= 1, "top-p", "above 0 and at most 1", p.top_p);
  require(p.min_p >= 0 && p.min_p <= 1, "min-p", "from 0 to 1", p.min_p);
  require(std::isfinite(p.repetition_penalty) && p.repetition_penalty > 0, "repetition penalty",
          "a number > 0", p.repetition_penalty);
  require(std::isfinite(p.presence_penalty), "presence penalty", "a number", p.presence_penalty);
  require(std::isfinite(p.frequency_penalty), "frequency penalty", "a number", p.frequency_penalty);
  for (const auto& [id, bias] : p.logit_bias) {
    require(id >= 0 && id < vocabulary_size, "logit bias",
            fmt::format("a token id below {}", vocabulary_size).c_str(), id);
    require(bias < std::numeric_limits<float>::infinity(), "logit bias",
            "a number, or -infinity to ban the token", bias);
  }
  require(vocabulary_size > 0, "vocabulary size", "a count > 0", vocabulary_size);
}

bool Transform::has_penalties() const {
  return !params_.logit_bias.empty() || params_.repetition_penalty != 1 ||
         params_.presence_penalty != 0 || params_.frequency_penalty != 0;
}

void Transform::penalise(std::span<float> logits, const TokenHistory& history,
                         std::span<const TokenId> path) const {
  for (const auto& [id, bias] : params_.logit_bias) {
    const auto index = static_cast<std::size_t>(id);
    if (index < logits.size()) logits[index] += bias;
  }
  if (params_.repetition_penalty == 1 && params_.presence_penalty == 0 &&
      params_.frequency_penalty == 0) {
    return;
  }
  // Each token's steps touch its own logit alone, so the order of tokens does not matter; the steps
  // are taken in double and rounded once.
  const auto apply = [&](TokenId id, std::ptrdiff_t n_generated) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) return;
    float& logit = logits[static_cast<std::size_t>(id)];
    double value = logit;
    value = value < 0 ? value * params_.repetition_penalty : value / params_.repetition_penalty;
    if (n_generated > 0) {
      value -= params_.presence_penalty;
      value -= params_.frequency_penalty * static_cast<double>(n_generated);
    }
    logit = static_cast<float>(value);
  };
  for (const auto& [id, count] : history.counts()) {
    apply(id, count.generated + std::count(path.begin(), path.end(), id));
  }
  for (auto token = path.begin(); token != path.end(); ++token) {
    if (history.counts().contains(*token)) continue;                // done above
    if (std::find(path.begin(), token, *token) != token) continue;  // done at its first place
    apply(*token, std::count(token, path.end(), *token));
  }
}

void Transform::raw_distribution(std::span<const float> penalised, Distribution& out) const {
  const TokenId first = likeliest(penalised);
  const float largest = penalised[static_cast<std::size_t>(first)];
  if (!(largest > kMinusInfinity)) return become_point_mass(first, out);
  every_id(penalised.size(), out);
  weigh(penalised, largest, 1.0, out);
  normalise(out);
}

void Transform::distribution(std::span<const float> penalised, Distribution& out) const {
  const TokenId first = likeliest(penalised);
  const float largest = penalised[static_cast<std::size_t>(first)];
  if (greedy() || !(largest > kMinusInfinity)) {
    return become_point_mass(first, out);
  }
  const auto k = static_cast<std::size_t>(params_.top_k);
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
  weigh(penalised, largest, params_.temperature, out);
  if (params_.top_p < 1) {
    const std::uint64_t cutoff = top_p_cutoff(penalised, largest, params_.temperature, out,
                                              sum_of(out.probs), params_.top_p);
    filter(out, [&](TokenId id, double) {
      return rank_key(penalised[static_cast<std::size_t>(id)], id) >= cutoff;
    });
  }
  if (params_.min_p > 0) {
    // The likeliest token weighs 1, so a weight is its share of the likeliest one's.
    filter(out, [&](TokenId, double weight) { return weight >= params_.min_p; });
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

}  // namespace outrider
