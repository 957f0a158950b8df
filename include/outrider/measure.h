// SPDX-License-Identifier: Apache-2.0
// Measures how fast a model runs on this machine: what passes cost by their rows, and what decoding
// gains from a drafter with a given acceptance rate.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct", {.threads = 8});
//   const auto costs = outrider::measure_passes(*model, {.rows = {1, 16}});
//   std::cout << costs.passes[1].ratio << '\n';  // what 16 rows cost, in passes of one row
//
// Machines are shared and their speed drifts. So whatever is compared is measured in turn, in
// several rounds of one run. Results are medians over the rounds with the extremes. Do not compare
// seconds of different runs.
//
// Nothing else may run the same models meanwhile.
#ifndef OUTRIDER_MEASURE_H_
#define OUTRIDER_MEASURE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider {

// The median and the extremes of a figure over all rounds.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Called before every step with its description and the share of all work done, 0..1. May throw to
// end the measurement.
using MeasureProgress = std::function<void(std::string_view step, double share_done)>;

// How the rows of a pass are connected, as nodes of a draft tree.
enum class PassNodes {
  chain,  // each the child of the one before
  star,   // the first is the root, all others are its children
};

struct PassOptions {
  // Rows of a pass: ascending, from 1 to kMaxPassRows. One row, the base of the ratios, is always
  // measured.
  std::vector<int> rows = {1, 2, 4, 8, 16, 32, 64};
  PassNodes nodes = PassNodes::chain;
  int context = 0;  // tokens in the sequence before the pass
  int prefill = 0;  // also measure a prompt of this many tokens; 0: none
  int rounds = 5;   // at least 1
  // Bytes of the streaming read; must be clearly more than the caches hold.
  std::int64_t read_bytes = std::int64_t{1} << 30;
  MeasureProgress progress = {};
};

// The widest draft and its root.
inline constexpr int kMaxPassRows = 256;

struct PassCost {
  int rows = 0;
  Spread seconds;    // of one whole pass: layers, head, logits of all rows
  double ratio = 0;  // of the median to that of one row
  // For a mixture of experts: experts used by some row, per layer (mean); the pass reads each of
  // them once. 0: no experts.
  double experts = 0;
};

struct PrefillCost {
  int tokens = 0;
  Spread seconds;  // to the logits of the last token
  double tokens_per_second() const { return tokens / seconds.median; }
};

struct PassCosts {
  std::vector<PassCost> passes;  // one row first
  std::optional<PrefillCost> prefill;
  // Bandwidth of a plain streaming read with the same number of threads, measured once before every
  // width of every round. In the first, each thread reads four streams in turn, which is the most
  // that plain reads achieve. In the second each reads one stream, as simple programs do.
  Spread bandwidth_bytes_per_second;
  Spread one_stream_bytes_per_second;
  // The share of the bandwidth that one row reaches: bytes of packed weights (of experts, those
  // that one row uses) / (seconds(1) * bandwidth). Keys and values are not counted. Meaningless if
  // the weights fit into a cache.
  double bandwidth_share = 0;
};

// Throws the UsageError that measure_passes would throw, except for what depends on the model.
void check_passes(const PassOptions& options);

// Runs every pass as verification does, over arbitrary tokens. Throws UsageError for options out of
// range, or beyond the model's context.
PassCosts measure_passes(const Model& model, const PassOptions& options);

struct SimulationOptions {
  double acceptance = 0.8;  // the probability that a drafted token is the target's, 0..1
  std::vector<std::string> trees = {"chain:length=5"};  // chains to try
  int max_tokens = 128;    // of the text, end tokens ignored; at least 2
  int context = 0;         // tokens before it, besides the first one
  int rounds = 5;          // at least 1
  std::uint64_t seed = 0;  // of the replaced tokens
  MeasureProgress progress = {};
};

// Decoding with drafts of one shape. Counts are those of one text; every round has the same.
struct SimulatedTree {
  std::string tree;
  Spread seconds;      // of the text, without its prompt
  double speedup = 0;  // plain decoding's median over this one's
  std::int64_t target_passes = 0;
  std::int64_t drafter_passes = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;  // drafts that ended with a rejected token
  std::int64_t emitted = 0;
  // Medians: a target pass over a draft, a drafter pass with its overhead, and the verification of
  // one draft.
  double target_pass_seconds = 0;
  double drafter_pass_seconds = 0;
  double verify_seconds = 0;

  double tau() const { return double(emitted) / double(target_passes); }
  double tokens_per_second() const { return double(emitted) / seconds.median; }
  // Accepted share of all drafted tokens, including those after the first rejection.
  double acceptance_rate() const { return drafted > 0 ? double(accepted) / double(drafted) : 0; }
  // Accepted share of the tokens that were judged: close to the requested acceptance.
  double judged_acceptance() const {
    return accepted + rejected > 0 ? double(accepted) / double(accepted + rejected) : 0;
  }
};

struct Simulation {
  Spread plain_seconds;
  double plain_tokens_per_second = 0;
  double plain_pass_seconds = 0;     // median of the target's passes alone
  std::vector<SimulatedTree> trees;  // in the order of the options
  std::size_t fastest = 0;           // index of the largest speed-up
};

// Throws the UsageError that simulate_acceptance would throw, except for what depends on the
// models.
void check_simulation(const SpeculationOptions& drafter, const SimulationOptions& options);

// Measures what a drafter of this cost gains at a given acceptance rate, whatever its weights
// predict. The drafter runs all its passes. Its tokens are then replaced by the target's next
// tokens at temperature 0. Each of these is changed with probability 1 - acceptance, by a number
// that depends only on the seed and the position. Drafts go through the ordinary loop and
// verification.
//
// The drafter must run a model and draft chains ("model:PATH", heads). Of `drafter`, only the spec
// and drafter_options are used. Throws Error if the text is not plain decoding's to the last id.
// Throws UsageError for options out of range and unsuitable drafters.
Simulation simulate_acceptance(const Model& target, const SpeculationOptions& drafter,
                               const SimulationOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_H_
