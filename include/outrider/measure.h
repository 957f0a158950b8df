// How fast a model runs on this machine: what passes of different widths cost, and what decoding
// gains from a drafter that is right as often as one says.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct", {.threads = 8});
//   const auto costs = outrider::measure_passes(*model, {.rows = {1, 16}});
//   std::cout << costs.passes[1].ratio << '\n';  // what 16 rows cost, in passes of one row
//
// Machines are shared and drift. Whatever is to be compared is therefore measured in turn, in
// several rounds of one run, and is given as the median over the rounds with the extremes beside
// it; seconds of different runs must not be compared.
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

// A figure that every round of a measurement gave.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// Called before every step with what it is and the share of all that is done, 0..1. May throw to
// end the measurement.
using MeasureProgress = std::function<void(std::string_view step, double share_done)>;

// How the rows of a pass hang together, as nodes of a draft tree.
enum class PassNodes {
  chain,  // each the child of the one before
  star,   // the first is the root, all others are its children
};

struct PassOptions {
  // Rows of a pass: ascending, from 1 to kMostPassRows. One row, the base of the ratios, is
  // measured whether it is listed or not.
  std::vector<int> rows = {1, 2, 4, 8, 16, 32, 64};
  PassNodes nodes = PassNodes::chain;
  int context = 0;  // tokens the sequence holds before
  int prefill = 0;  // also measure a prompt of this many tokens; 0: none
  int rounds = 5;   // at least 1
  // What the streaming read goes over: clearly more than caches hold.
  std::int64_t read_bytes = std::int64_t{1} << 30;
  MeasureProgress progress = {};
};

// The widest draft and its root.
inline constexpr int kMostPassRows = 256;

struct PassCost {
  int rows = 0;
  Spread seconds;    // of one whole pass: layers, head, logits of all rows
  double ratio = 0;  // of the median to that of one row
  // Of a mixture of experts: those that some row used, of a layer on average, each of which the
  // pass read once. 0: no experts.
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
  // A plain streaming read by as many threads, once before every width of every round. Every thread
  // reads at four places in turn, which is the most that plain reads draw from the memory; the
  // other is with one, as simple programs read.
  Spread bandwidth_bytes_per_second;
  Spread one_stream_bytes_per_second;
  // What one row reaches of it: bytes of packed weights (of experts, those of one row) /
  // (seconds(1)
  // * bandwidth). Keys and values are not counted. Means nothing where the weights fit into a
  // cache.
  double bandwidth_share = 0;
};

// Throws the UsageError that measure_passes would throw, but for what depends on the model.
void check_passes(const PassOptions& options);

// Every pass is run as verification runs it, over arbitrary tokens. Throws UsageError for options
// out of their range, or where the model's context has no room for them.
PassCosts measure_passes(const Model& model, const PassOptions& options);

struct SimulationOptions {
  double acceptance = 0.8;  // the probability that a drafted token is the target's, 0..1
  std::vector<std::string> trees = {"chain:length=5"};  // chains to try
  int max_tokens = 128;    // of the text, end tokens passed over; at least 2
  int context = 0;         // tokens before it, beside the first one
  int rounds = 5;          // at least 1
  std::uint64_t seed = 0;  // of what is spoiled
  MeasureProgress progress = {};
};

// Decoding with drafts of one shape. Counts are those of one text: every round's are the same.
struct SimulatedTree {
  std::string tree;
  Spread seconds;      // of the text, without its prompt
  double speedup = 0;  // plain decoding's median over this one's
  std::int64_t target_passes = 0;
  std::int64_t drafter_passes = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;  // drafts that ended with a token that fell
  std::int64_t emitted = 0;
  // Medians: a pass of the target over a draft, a pass of the drafter with what is around it, and
  // the judging of one draft.
  double target_pass_seconds = 0;
  double drafter_pass_seconds = 0;
  double verify_seconds = 0;

  double tau() const { return double(emitted) / double(target_passes); }
  double tokens_per_second() const { return double(emitted) / seconds.median; }
  // Of all drafted tokens those that stood, the ones behind the first that fell among them.
  double acceptance_rate() const { return drafted > 0 ? double(accepted) / double(drafted) : 0; }
  // Of those that were judged: near the acceptance asked for.
  double judged_acceptance() const {
    return accepted + rejected > 0 ? double(accepted) / double(accepted + rejected) : 0;
  }
};

struct Simulation {
  Spread plain_seconds;
  double plain_tokens_per_second = 0;
  double plain_pass_seconds = 0;     // median of the target's passes alone
  std::vector<SimulatedTree> trees;  // as asked for
  std::size_t fastest = 0;           // index of the largest speed-up
};

// Throws the UsageError that simulate_acceptance would throw, but for what depends on the models.
void check_simulation(const SpeculationOptions& drafter, const SimulationOptions& options);

// What a drafter of this cost gains at a given acceptance, whatever its weights know. The drafter
// named runs all its passes; its tokens are then replaced by those that the target is about to say
// at temperature 0, each spoiled with probability 1 - acceptance by a number that depends on the
// seed and the position alone. Drafts go through the ordinary loop and are verified as any other.
//
// The drafter must run a model and draft chains ("model:PATH", heads); of `drafter`, its spec and
// its options count. Throws Error where the text is not that of plain decoding to the last id;
// UsageError for options out of their range and drafters that do not fit.
Simulation simulate_acceptance(const Model& target, const SpeculationOptions& drafter,
                               const SimulationOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_H_
