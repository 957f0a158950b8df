// SPDX-License-Identifier: Apache-2.0
#include "sampling/transform.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "base/elementary.h"
#include "base/lane_sum.h"
#include "outrider/error.h"
#include "sampling/logit_blocks.h"
#include "sampling/row_kernels.h"

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMinusInfinity = -kInfinity;

void require(bool holds, const char* parameter, const char* expected, double got) {
  if (!holds) throw UsageError("sampling", parameter, expected, fmt::format("{}", got));
}

void become_point_mass(TokenId id, Distribution& out) {
  out.ids.assign(1, id);
  out.probs.assign(1, 1.0);
}

// Weight buckets: 64 per factor of e, so each spans 1.6 percent. The last one takes all tokens
// below e^-64 of the likeliest.
constexpr double kBucketsPerUnit = 64;
constexpr std::uint16_t kLastBucket = 4095;

// Working memory of a transform, reused from row to row.
struct Scratch {
  LogitBlocks blocks;
  Distribution weighted;               // tokens that truncation has not dropped
  std::vector<std::uint16_t> buckets;  // (weighted.ids.size()): of each token's weight
  std::vector<double> bucket_weights;  // (kLastBucket + 1)
  struct Candidate {
    std::uint64_t key;
    double weight;
  };
  std::vector<Candidate> candidates;

  // Reserves for rows of n logits (see Distribution::reserve).
  void reserve(std::size_t n) {
    if (buckets.capacity() >= n) return;
    weighted.reserve(n);
    buckets.reserve(n);
    bucket_weights.reserve(kLastBucket + 1);
    candidates.reserve(n);  // a row of equal logits has all in one bucket
  }
  std::uint64_t key(TokenId id) const {
    return rank_key(blocks.logits()[static_cast<std::size_t>(id)], id);
  }
};

// All threads share a transform, and rows are transformed in many places: each thread has its own
// scratch.
Scratch& scratch_of_thread() {
  thread_local Scratch scratch;
  return scratch;
}

// Moves those of the first n entries for which keep(index) holds to the front and returns their
// number. The vectors keep their size.
template <typename Keep>
std::size_t bring_forward(std::size_t n, Distribution& weighted, const Keep& keep) {
  TokenId* const ids = weighted.ids.data();
  double* const probs = weighted.probs.data();
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool kept = keep(i);  // called first: it may read an entry that is overwritten
    ids[n_kept] = ids[i];
    probs[n_kept] = probs[i];
    n_kept += kept ? 1 : 0;  // branch-free: for flat distributions the branch is unpredictable
  }
  return n_kept;
}

// Computes the weights of some logits, and their buckets unless that is null; returns how many
// weights are 0. At largest = infinity, logits at infinity share all probability (the limit of
// growing logits).
std::size_t weigh_chunk(const float* logits, float largest, double temperature,
                        std::span<double> weights, std::uint16_t* buckets) {
  const int n = static_cast<int>(weights.size());
  if (largest < kInfinity) {
    return static_cast<std::size_t>(softmax_weights({.logits = logits,
                                                     .n = n,
                                                     .largest = largest,
                                                     .temperature = temperature,
                                                     .weights = weights.data(),
                                                     .buckets = buckets,
                                                     .buckets_per_unit = kBucketsPerUnit,
                                                     .last_bucket = kLastBucket}));
  }
  std::size_t n_weightless = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const bool counts = logits[i] == largest;
    weights[i] = counts ? 1.0 : 0.0;
    if (buckets != nullptr) buckets[i] = counts ? 0 : kLastBucket;
    n_weightless += counts ? 0 : 1;
  }
  return n_weightless;
}

// Fills weighted.probs, not yet normalised, for the ids already there: e^((logit - largest) /
// temperature), which is 1 at the largest. Fills buckets, unless null, with the bucket of each.
// Drops tokens of weight 0. Returns the sum of the weights.
double weigh(std::span<const float> logits, float largest, double temperature,
             Distribution& weighted, std::vector<std::uint16_t>* buckets) {
  const std::size_t n = weighted.ids.size();
  weighted.probs.resize(n);
  if (buckets != nullptr) buckets->resize(n);
  const bool whole_row = n == logits.size();
  LaneSum total;
  std::size_t n_weightless = 0;
  // In chunks that stay in L1 between steps.
  constexpr std::size_t kChunk = 512;
  static_assert(kChunk % LaneSum::kLanes == 0);
  float gathered[kChunk];
  for (std::size_t first = 0; first < n; first += kChunk) {
    const std::span<double> chunk =
        std::span(weighted.probs).subspan(first, std::min(kChunk, n - first));
    const float* from = logits.data() + first;
    if (!whole_row) {
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        gathered[i] = logits[static_cast<std::size_t>(weighted.ids[first + i])];
      }
      from = gathered;
    }
    n_weightless += weigh_chunk(from, largest, temperature, chunk,
                                buckets == nullptr ? nullptr : buckets->data() + first);
    if (whole_row) {
      total.add_each(chunk.size(), [chunk](std::size_t i) { return chunk[i]; });
    } else {
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        total.add(static_cast<std::size_t>(weighted.ids[first + i]), chunk[i]);
      }
    }
  }
  if (n_weightless > 0) {
    const auto stays = [&weighted](std::size_t i) { return weighted.probs[i] > 0; };
    if (buckets != nullptr) {
      std::size_t n_kept = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (stays(i)) (*buckets)[n_kept++] = (*buckets)[i];
      }
      buckets->resize(n_kept);
    }
    const std::size_t n_kept = bring_forward(n, weighted, stays);
    weighted.ids.resize(n_kept);
    weighted.probs.resize(n_kept);
  }
  return total.total();
}

// The end of the nucleus: the token that brings the weight of the likeliest ones to a goal.
struct Boundary {
  std::uint16_t bucket = kLastBucket;
  std::uint64_t key = 0;  // of the last token; 0, which is below every key, if all are needed
  double above = 0;       // the weight of the tokens before it
  double reached = 0;     // the weight with it
};

// Finds the boundary among the scratch's weighted tokens. Only the bucket with the boundary is
// sorted: O(n) except for flat distributions, which share few buckets. Buckets are summed in the
// order of ids and visited in their own, so sums are the same on every machine.
Boundary find_boundary(double goal, Scratch& scratch) {
  // Spans of this thread's scratch: a loop over the thread-local would look it up in each
  // iteration.
  const std::span<const TokenId> ids = scratch.weighted.ids;
  const std::span<const double> weights = scratch.weighted.probs;
  const std::span<const std::uint16_t> buckets = scratch.buckets;
  scratch.bucket_weights.assign(kLastBucket + 1, 0.0);
  const std::span<double> bucket_weights = scratch.bucket_weights;
  for (std::size_t i = 0; i < ids.size(); ++i) bucket_weights[buckets[i]] += weights[i];
  Boundary boundary;
  double weight = 0;
  std::size_t bucket = 0;
  while (bucket <= kLastBucket && weight + bucket_weights[bucket] < goal) {
    weight += bucket_weights[bucket++];
  }
  if (bucket > kLastBucket) {  // by rounding, the buckets' sum fell short of the total
    boundary.above = boundary.reached = weight;
    return boundary;
  }
  boundary.bucket = static_cast<std::uint16_t>(bucket);

  std::vector<Scratch::Candidate>& candidates = scratch.candidates;
  candidates.clear();
  const std::uint16_t last = boundary.bucket;
  // The bucket holds few tokens: counting many at once is faster than testing each.
  constexpr std::size_t kTogether = 64;
  for (std::size_t first = 0; first < ids.size(); first += kTogether) {
    const std::size_t end = std::min(first + kTogether, ids.size());
    int n_there = 0;
    for (std::size_t i = first; i < end; ++i) n_there += buckets[i] == last ? 1 : 0;
    for (std::size_t i = first; n_there > 0; ++i) {
      if (buckets[i] != last) continue;
      candidates.push_back({scratch.key(ids[i]), weights[i]});
      --n_there;
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& a, const auto& b) { return a.key > b.key; });
  boundary.reached = weight;
  for (const Scratch::Candidate& candidate : candidates) {
    boundary.key = candidate.key;
    boundary.above = boundary.reached;
    boundary.reached += candidate.weight;
    // By rounding, this order's sum may fall short of the goal.
    if (boundary.reached >= goal) break;
  }
  return boundary;
}

// Moves the scratch's weighted tokens up to the boundary to the front; returns their number.
std::size_t cut(const Boundary& boundary, Scratch& scratch) {
  const std::span<const std::uint16_t> buckets = scratch.buckets;
  const std::uint16_t last = boundary.bucket;
  return bring_forward(scratch.weighted.ids.size(), scratch.weighted, [&, last](std::size_t i) {
    if (buckets[i] != last) return buckets[i] < last;
    return scratch.key(scratch.weighted.ids[i]) >= boundary.key;
  });
}

void every_id(std::size_t n, Distribution& out) {
  out.ids.resize(n);
  std::iota(out.ids.begin(), out.ids.end(), TokenId{0});
}

// Finds the nucleus of a peaked row without exact weights for the many unlikely tokens. Returns its
// size; its tokens are the first of the scratch's weighted ones. Returns 0, with undefined tokens,
// if the row is too flat for this to be faster, or if only exact weights tell where the nucleus
// ends.
//
// All tokens lighter than the (1 - top_p) / n-th part of the total weigh less together than what
// may be missing from the nucleus. So the nucleus is among the others, whose weights are exact. The
// weight of the light ones is known roughly, which suffices if its error moves the goal past no
// token.
std::size_t find_nucleus_of_peaked_row(double temperature, double top_p, Scratch& scratch) {
  const LogitBlocks& blocks = scratch.blocks;
  const std::span<const float> logits = blocks.logits();
  const float largest = blocks.largest();
  if (logits.size() > kMaxWeighed || temperature < kMinWeighedTemperature ||
      temperature > kMaxWeighedTemperature || largest == kInfinity) {
    return 0;
  }
  // The total is at least the sum of each block's largest weight. Whether rounding mattered is
  // checked below from the sums.
  const double min_total =
      std::max(1.0, rough_weight_below(blocks.maxima(), kInfinity, largest, temperature));
  const double light = (1 - top_p) * min_total / static_cast<double>(logits.size());
  const auto bar = static_cast<float>(largest + temperature * portable_log(light));
  // An exact weight costs several rough ones; if more than this share of the row needs one, little
  // is gained.
  const std::size_t most = logits.size() / 8;
  std::vector<TokenId>& ids = scratch.weighted.ids;
  if (!blocks.collect_from(bar, most, ids)) return 0;
  const double near = weigh(logits, largest, temperature, scratch.weighted, &scratch.buckets);
  const double rest = rough_weight_below(logits, bar, largest, temperature);
  const double total = near + rest;
  const double goal = top_p * total;
  const Boundary boundary = find_boundary(goal, scratch);
  // The exact sums that are compared with the goal are rounded too, here and in the full pass that
  // this replaces: up to 2^20 additions, 2^-53 each.
  const double margin = kRoughError * rest + 4 * 0x1p-33 * total;
  if (boundary.above < goal - margin && boundary.reached > goal + margin) {
    return cut(boundary, scratch);
  }
  return 0;
}

// Visits the ids below n_ids that a mask lacks, in ascending order.
template <typename Visit>
void for_each_forbidden(std::span<const std::uint64_t> mask, std::size_t n_ids,
                        const Visit& visit) {
  for (std::size_t first = 0; first < n_ids; first += 64) {
    std::uint64_t forbidden = first / 64 < mask.size() ? ~mask[first / 64] : ~std::uint64_t{0};
    if (n_ids - first < 64) forbidden &= (std::uint64_t{1} << (n_ids - first)) - 1;
    for (; forbidden != 0; forbidden &= forbidden - 1) {
      visit(static_cast<TokenId>(first) + std::countr_zero(forbidden));
    }
  }
}

// total is at least 1, the likeliest token's weight, so its reciprocal is finite.
void normalise(double total, Distribution& weighted) {
  const double scale = 1 / total;
  for (double& prob : weighted.probs) prob *= scale;
}

// Copies the first n weighted tokens as a distribution, in two passes.
void copy_normalised(const Distribution& weighted, std::size_t n, Distribution& out) {
  out.ids.resize(n);
  out.probs.resize(n);
  // Plain pointers: for the compiler, a stored id could alias a vector's size.
  const TokenId* const ids = weighted.ids.data();
  const double* const weights = weighted.probs.data();
  TokenId* const out_ids = out.ids.data();
  double* const out_probs = out.probs.data();
  LaneSum sum;
  for (std::size_t i = 0; i < n; ++i) {
    out_ids[i] = ids[i];
    sum.add(static_cast<std::size_t>(ids[i]), weights[i]);
  }
  const double scale = 1 / sum.total();
  for (std::size_t i = 0; i < n; ++i) out_probs[i] = weights[i] * scale;
}

}  // namespace

void TokenHistory::reserve(std::size_t n_tokens) {
  counts_.reserve(n_tokens);
  const std::size_t n_places = std::bit_ceil(2 * std::max<std::size_t>(n_tokens, 8));
  if (places_.size() >= n_places) return;
  places_.assign(n_places, -1);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    places_[place_of(counts_[i].token)] = static_cast<std::int32_t>(i);
  }
}

void TokenHistory::add_prompt(std::span<const TokenId> tokens) {
  for (TokenId token : tokens) count_of(token).in_prompt = true;
}

void TokenHistory::add_generated(TokenId token) {
  ++count_of(token).generated;
  if (masks_ != nullptr) generated_.push_back(token);
  if (matcher_ == nullptr) return;
  state_ = matcher_->advance(state_, token);
  if (matcher_->is_full()) {
    const std::shared_ptr<GrammarMatcher> next = matcher_->next();
    state_ = next->take_over(*matcher_, state_);
    matcher_ = next;
  }
}

void TokenHistory::constrain(std::shared_ptr<GrammarMatcher> matcher) {
  matcher_ = std::move(matcher);
  state_ = matcher_->start();
}

int TokenHistory::state_behind(std::span<const TokenId> path) const {
  int state = state_;
  for (const TokenId token : path) state = matcher_->advance(state, token);
  return state;
}

TokenHistory::Count& TokenHistory::count_of(TokenId token) {
  if (2 * (counts_.size() + 1) > places_.size()) reserve(2 * (counts_.size() + 1));
  std::int32_t& place = places_[place_of(token)];
  if (place < 0) {
    place = static_cast<std::int32_t>(counts_.size());
    counts_.push_back({.token = token, .in_prompt = false, .generated = 0});
  }
  return counts_[static_cast<std::size_t>(place)];
}

std::size_t TokenHistory::place_of(TokenId token) const {
  // Neighbouring ids, such as those of one script, must not collide: multiplying by the golden
  // ratio's fraction (Knuth) spreads the upper bits.
  const std::uint32_t spread = static_cast<std::uint32_t>(token) * 0x9E3779B9u;
  const std::size_t mask = places_.size() - 1;
  std::size_t place = (spread ^ (spread >> 16)) & mask;
  while (places_[place] >= 0 && counts_[static_cast<std::size_t>(places_[place])].token != token) {
    place = (place + 1) & mask;
  }
  return place;
}

Transform::Transform(SamplingParams params, int vocabulary_size) : params_(std::move(params)) {
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
                         std::span<const TokenId> path, std::vector<TokenLogit>* replaced) const {
  if (replaced != nullptr) {
    // Reserves for all that may come, so that a deeper path allocates nothing in the decode loop.
    // 256 tokens are as many as a pass has rows (kPrefillRows); a longer path reallocates once.
    constexpr std::size_t kPathTokens = 256;
    const std::size_t n_path = (path.size() / kPathTokens + 1) * kPathTokens;
    replaced->reserve(replaced->size() + params_.logit_bias.size() + history.capacity() + n_path);
  }
  const auto write = [&](TokenId id, float value) {
    float& logit = logits[static_cast<std::size_t>(id)];
    if (replaced != nullptr) replaced->push_back({.token = id, .logit = logit});
    logit = value;
  };
  for (const auto& [id, bias] : params_.logit_bias) {
    const auto index = static_cast<std::size_t>(id);
    if (index < logits.size()) write(id, logits[index] + bias);
  }
  const auto allow = [&](std::span<const std::uint64_t> allowed) {
    if (replaced != nullptr) replaced->reserve(replaced->size() + logits.size());
    for_each_forbidden(allowed, logits.size(), [&write](TokenId id) { write(id, kMinusInfinity); });
  };
  // Applied last, since it overrules the rest.
  const auto mask = [&] {
    if (history.is_constrained()) {
      allow(history.matcher().allowed(history.state_behind(path)));
    }
    if (!history.is_masked()) return;
    if (const auto allowed = history.masks().allowed(history.generated(), path)) allow(*allowed);
  };
  if (params_.repetition_penalty == 1 && params_.presence_penalty == 0 &&
      params_.frequency_penalty == 0) {
    return mask();
  }
  // Each token's steps touch its own logit only, so the order of tokens does not matter. The steps
  // are computed in double and rounded once.
  const auto apply = [&](TokenId id, std::ptrdiff_t n_generated) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) return;
    double value = logits[static_cast<std::size_t>(id)];
    value = value < 0 ? value * params_.repetition_penalty : value / params_.repetition_penalty;
    if (n_generated > 0) {
      value -= params_.presence_penalty;
      value -= params_.frequency_penalty * static_cast<double>(n_generated);
    }
    write(id, static_cast<float>(value));
  };
  for (const TokenHistory::Count& count : history.counts()) {
    apply(count.token, count.generated + std::count(path.begin(), path.end(), count.token));
  }
  for (auto token = path.begin(); token != path.end(); ++token) {
    if (history.contains(*token)) continue;                         // done above
    if (std::find(path.begin(), token, *token) != token) continue;  // done at its first place
    apply(*token, std::count(token, path.end(), *token));
  }
  mask();
}

bool Transform::keeps_raw() const {
  return params_.temperature == 1 && params_.top_k == 0 && params_.top_p == 1 && params_.min_p == 0;
}

void Transform::raw_distribution(std::span<const float> penalised, Distribution& out) const {
  LogitBlocks& blocks = scratch_of_thread().blocks;
  blocks.scan(penalised);
  if (!(blocks.largest() > kMinusInfinity)) return become_point_mass(blocks.likeliest(), out);
  every_id(penalised.size(), out);
  normalise(weigh(penalised, blocks.largest(), 1.0, out, nullptr), out);
}

void Transform::distribution(std::span<const float> penalised, Distribution& out) const {
  Scratch& scratch = scratch_of_thread();
  LogitBlocks& blocks = scratch.blocks;
  blocks.scan(penalised);
  const float largest = blocks.largest();
  if (greedy() || !(largest > kMinusInfinity)) {
    return become_point_mass(blocks.likeliest(), out);
  }
  const double temperature = params_.temperature;
  const std::size_t most = max_support(penalised.size());
  out.reserve(most);
  const bool top_k = most < penalised.size();
  const bool top_p = params_.top_p < 1;
  if (!top_k && !top_p && params_.min_p == 0) {
    every_id(penalised.size(), out);
    return normalise(weigh(penalised, largest, temperature, out, nullptr), out);
  }

  // Truncates in scratch, so that out needs memory for its support only.
  Distribution& weighted = scratch.weighted;
  scratch.reserve(penalised.size());
  std::size_t n = 0;
  if (top_p && !top_k) n = find_nucleus_of_peaked_row(temperature, params_.top_p, scratch);
  if (n == 0) {
    if (top_k) {
      const std::uint64_t cutoff = blocks.top_k_cutoff(most);
      weighted.ids.clear();
      blocks.for_each_from(cutoff == 0 ? kMinusInfinity : logit_of(cutoff),
                           [&](TokenId id, float logit) {
                             if (rank_key(logit, id) >= cutoff) weighted.ids.push_back(id);
                           });
    } else {
      every_id(penalised.size(), weighted);
    }
    const double total =
        weigh(penalised, largest, temperature, weighted, top_p ? &scratch.buckets : nullptr);
    n = top_p ? cut(find_boundary(params_.top_p * total, scratch), scratch) : weighted.ids.size();
  }
  if (params_.min_p > 0) {
    // The likeliest token weighs 1, so a weight is relative to the likeliest one's.
    n = bring_forward(n, weighted,
                      [&](std::size_t i) { return weighted.probs[i] >= params_.min_p; });
  }
  copy_normalised(weighted, n, out);
}

void Transform::distribution(LogitRow penalised, Distribution& out) const {
  if (greedy()) return become_point_mass(likeliest_token(penalised), out);
  distribution(penalised.values(), out);
}

std::size_t Transform::max_support(std::size_t n_logits) const {
  if (greedy()) return 1;
  return params_.top_k > 0 ? std::min(n_logits, static_cast<std::size_t>(params_.top_k)) : n_logits;
}

void likeliest_tokens(std::span<const float> logits, int count, std::vector<TokenId>& ids) {
  LogitBlocks& blocks = scratch_of_thread().blocks;
  blocks.scan(logits);
  ids.assign(1, blocks.likeliest());
  if (count == 1 || !(blocks.largest() > kMinusInfinity)) return;
  const std::uint64_t cutoff = blocks.top_k_cutoff(static_cast<std::size_t>(count));
  ids.clear();
  blocks.for_each_from(cutoff == 0 ? kMinusInfinity : logit_of(cutoff),
                       [&](TokenId id, float logit) {
                         if (logit > kMinusInfinity && rank_key(logit, id) >= cutoff) {
                           ids.push_back(id);
                         }
                       });
  std::sort(ids.begin(), ids.end(), [logits](TokenId a, TokenId b) {
    return rank_key(logits[static_cast<std::size_t>(a)], a) >
           rank_key(logits[static_cast<std::size_t>(b)], b);
  });
}

void likeliest_tokens(LogitRow logits, int count, std::vector<TokenId>& ids) {
  const TokenId known = count == 1 ? logits.known_likeliest() : kNoToken;
  if (known != kNoToken) {
    ids.assign(1, known);
  } else {
    likeliest_tokens(logits.values(), count, ids);
  }
}

TokenId likeliest_token(LogitRow logits) {
  if (const TokenId known = logits.known_likeliest(); known != kNoToken) return known;
  LogitBlocks& blocks = scratch_of_thread().blocks;
  blocks.scan(logits.values());
  return blocks.likeliest();
}

}  // namespace outrider
