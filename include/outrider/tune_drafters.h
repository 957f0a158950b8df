// SPDX-License-Identifier: Apache-2.0
// Finds by measurement the fastest drafter and draft length on this machine, with this model, on
// texts of the user's kind.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct");
//   outrider::TuneOptions options;
//   options.drafters = outrider::drafters_to_try(*model);
//   const outrider::Tuning tuning = outrider::tune_drafters(model, options);
//   const auto advice = outrider::recommend(tuning.methods(), /*temperature=*/0);
//   if (advice.finding == outrider::Finding::pays) { ... tuning.methods()[advice.method] ... }
//
// Drafts affect speed alone: every method is verified exactly. A text that must be plain decoding's
// and is not is reported as a problem (comparison_problems in method_report.h).
#ifndef OUTRIDER_TUNE_DRAFTERS_H_
#define OUTRIDER_TUNE_DRAFTERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outrider/compare_methods.h"
#include "outrider/measure.h"
#include "outrider/method_report.h"
#include "outrider/model.h"
#include "outrider/tune.h"

namespace outrider {

// Specs of the drafters that any model has (suffix, ngram, lookahead), and of heads that come with
// this one: multi-token prediction modules among its weights, and head folders in its directory
// whose config.json identifies them. Reads headers only.
std::vector<std::string> drafters_to_try(const Model& model);

// Prompts of eight kinds: code, a summary, a translation, a question, a paraphrase, a list,
// mathematics, a story. With a chat template they are messages; otherwise they are beginnings to
// continue.
std::vector<ComparedPrompt> tuning_prompts(const Model& model);
// Beginnings of texts as prompts to continue (CompareOptions::raw). `texts` gives the files, their
// number and length. Throws Error where texts cannot be read or are fewer than asked for.
std::vector<ComparedPrompt> tuning_prompts(const Model& model, const ContinuedTexts& texts);

// Reorders prompts: the first of each category, then the second of each, and so on. If the time
// runs out, all categories have been measured.
std::vector<ComparedPrompt> in_turn(std::vector<ComparedPrompt> prompts);

struct TuneOptions {
  std::vector<std::string> drafters;         // specs, at least one
  ModelOptions drafter_options = {};         // how the drafters' models are loaded
  std::vector<ComparedPrompt> prompts = {};  // empty: tuning_prompts(model)
  bool raw = false;                          // CompareOptions::raw
  std::vector<double> temperatures = {0, 1};
  int max_tokens = 64;   // of each turn's answer; at least 2
  double seconds = 120;  // time for the measurement, including loading of drafters
  std::uint64_t seed = 0;
  // A drafting profile (Batch::save_drafting_profile) that receives what the methods without a
  // fixed shape have learnt; its entries for other drafters stay. Empty: none.
  std::filesystem::path profile = {};
  std::string version = {};  // of the program, for reports
  // When it becomes true the measurement ends with the results so far.
  const std::atomic<bool>* cancel = nullptr;
  MeasureProgress progress = {};
};

// Throws the UsageError that tune_drafters would throw, except for what depends on the models.
void check_tuning(const TuneOptions& options);

// One way to decode at one temperature.
struct TunedMethod {
  std::string drafter;  // its spec
  std::string tree;     // its shape; empty: planned draft lengths
  double temperature = 0;
  int n_prompts = 0;
  Estimate over_plain;  // speed-up over plain decoding
  // For a fixed shape: speed-up over the same drafter with planned draft lengths, with the interval
  // of the ratio, both measured in turn on the same prompts. NaN: unknown.
  Estimate over_auto;
  double tau = 0;             // tokens per pass of the target
  double accepted_share = 0;  // of the drafted tokens; NaN: none was drafted
  bool differs = false;       // a text must be plain decoding's and is not
};

struct Tuning {
  // Drafters that could not be tried, a line each: "SPEC: why", with the library's error message.
  std::vector<std::string> left_out;
  // Plain decoding and each drafter with planned draft lengths; with the target's passes.
  MethodComparison drafters;
  // Plain decoding and one drafter, with planned draft lengths and in fixed shapes. Empty: not
  // begun.
  std::optional<MethodComparison> shapes;
  // Why the profile was not written. Empty: it was written, none was asked for, or nothing was
  // learnt.
  std::string profile_problem;
  bool profile_written = false;
  bool cancelled = false;
  double seconds = 0;  // of everything
  // The time of the two halves: all drafters, with the passes before; and the shapes.
  struct Half {
    double begin = 0;   // seconds before the first round
    double rounds = 0;  // seconds of all rounds
  };
  Half drafters_half;
  Half shapes_half;

  // The methods of both comparisons, by temperature; of `shapes` the fixed shapes only.
  std::vector<TunedMethod> methods() const;
  // comparison_problems() of both.
  std::vector<std::string> problems() const;
  // The TuneOptions::seconds at which the half that measures this method would reach about
  // n_prompts prompts. NaN: unknown, as there are fewer prompts or no round was measured.
  double seconds_for(const TunedMethod& method, int n_prompts) const;
};

// Measures the target's passes (1 to 32 rows, after as many tokens as prompts and half an answer
// have), then rounds. A round is one prompt, decoded by each method in turn at one temperature.
//
// The first half of the time goes to all drafters, with planned draft lengths
// (SpeculationOptions::adaptive). The second half goes to the best one: the largest geometric mean
// of speed-ups over temperatures. It runs with chains of 2, 4 and 8 tokens and, if it drafts trees,
// one tree. That is its default tree; for a small model and for the target without some layers it
// is one of ten tokens.
//
// In each half, rounds run over the temperatures of a prompt, then over prompts, and over all
// again, until the time is up. A started round is finished. However short the time, passes are
// measured and two prompts (one, if there is one) at every temperature in both halves. A drafter
// that does not load is left out and named.
//
// Nothing else may run the same model meanwhile. Throws UsageError for options out of range, and
// Error if no drafter loads.
Tuning tune_drafters(const std::shared_ptr<const Model>& model, const TuneOptions& options);

// One JSON object with the comparisons (as in comparison_json()), methods and advice.
std::string tuning_json(const Tuning& tuning);

enum class Finding {
  pays,        // the method is faster than plain decoding
  costs,       // no method is faster than plain decoding
  not_certain  // neither is certain
};

struct Advice {
  double temperature = 0;
  Finding finding = Finding::not_certain;
  // Index of the method to use; if none is certain to pay, that of the largest speed-up; n_methods
  // if there is none at this temperature.
  std::size_t method = 0;
  // For not_certain: about how many prompts would make it certain, if further ones are like those
  // measured; 0: unknown.
  int prompts_needed = 0;
};

// The minimum of prompts for a certain finding. If drafts made no difference, a prompt would be
// faster with probability 1/2, and all n prompts with probability 2^-n. For n < 6 that exceeds the
// 2.5 % of the lower end of a 95 % interval.
inline constexpr int kFewestPrompts = 6;

// Recommends a method at a temperature. A pure function.
//
// A method is certain to be faster than plain decoding if the lower end of its interval is above 1
// over at least kFewestPrompts prompts. It is certain not to be faster if the upper end is not
// above 1. Among drafters that are faster with planned draft lengths, the largest speed-up is
// taken. A fixed shape replaces it on two conditions. The shape is certain to be faster than plain
// decoding, and the lower end of its interval over the same drafter with planned draft lengths is
// above 1. Methods with `differs` are never taken.
//
// prompts_needed assumes that an interval around the same speed-up s narrows as 1 / sqrt(prompts).
// Its half-width w towards 1 becomes |s - 1| after n w^2 / (s - 1)^2 prompts.
Advice recommend(std::span<const TunedMethod> methods, double temperature);

// The flags of `outrider generate` for a method: "--drafter suffix --tree chain:length=4".
std::string flags_of(const TunedMethod& method);

}  // namespace outrider

#endif  // OUTRIDER_TUNE_DRAFTERS_H_
