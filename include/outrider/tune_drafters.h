// Which drafter pays here, and how much it should draft: measured on this machine, with this model,
// on texts of the user's kind.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct");
//   outrider::TuneOptions options;
//   options.drafters = outrider::drafters_to_try(*model);
//   const outrider::Tuning tuning = outrider::tune_drafters(model, options);
//   const auto advice = outrider::recommend(tuning.methods(), /*temperature=*/0);
//   if (advice.finding == outrider::Finding::pays) { ... tuning.methods()[advice.method] ... }
//
// Drafts decide speed alone: every method is verified exactly, and a text that is not plain
// decoding's where it must be is a problem (comparison_problems in method_report.h).
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

// Drafters that any model has (suffix, ngram, lookahead), and heads and modules that lie with this
// one: modules for multi-token prediction among its own weights, and heads in folders of its
// directory whose config.json says so. Reads headers; loads nothing.
std::vector<std::string> drafters_to_try(const Model& model);

// Prompts of eight kinds: code, a summary, a translation, a question, a text to put in other words,
// a list, mathematics, a story. For a model with a chat template they are messages, for another
// they are beginnings to go on with.
std::vector<ComparedPrompt> tuning_prompts(const Model& model);
// Beginnings of texts as prompts to go on with (CompareOptions::raw): `texts` says which, how many
// and how long. Throws Error where texts cannot be read or are fewer than asked for.
std::vector<ComparedPrompt> tuning_prompts(const Model& model, const ContinuedTexts& texts);

// The same prompts, the first of each category first, then the second of each, and so on: where
// the time ends early, all kinds have been measured.
std::vector<ComparedPrompt> in_turn(std::vector<ComparedPrompt> prompts);

struct TuneOptions {
  std::vector<std::string> drafters;         // specs, at least one
  ModelOptions drafter_options = {};         // how their models are loaded
  std::vector<ComparedPrompt> prompts = {};  // none: tuning_prompts(model)
  bool raw = false;                          // CompareOptions::raw
  std::vector<double> temperatures = {0, 1};
  int max_tokens = 64;   // of each turn's answer; at least 2
  double seconds = 120;  // what the measurement may take, the loading of drafters included
  std::uint64_t seed = 0;
  // A drafting profile (Batch::save_drafting_profile) that gets what the methods without a fixed
  // shape have learnt, beside what it knows of other drafters. Empty: none.
  std::filesystem::path profile = {};
  std::string version = {};  // of the program, for reports
  // When it becomes true the measurement ends with what it has.
  const std::atomic<bool>* cancel = nullptr;
  MeasureProgress progress = {};
};

// Throws the UsageError that tune_drafters would throw, but for what depends on the models.
void check_tuning(const TuneOptions& options);

// One way to decode at one temperature.
struct TunedMethod {
  std::string drafter;  // its spec
  std::string tree;     // its shape; empty: as deep as pays
  double temperature = 0;
  int n_prompts = 0;
  Estimate over_plain;  // speed-up over plain decoding
  // Of a fixed shape: speed-up over the same drafter as deep as pays, with the interval of the
  // ratio, both measured in turn on the same prompts. NaN where that is not known.
  Estimate over_auto;
  double tau = 0;             // tokens a pass of the target
  double accepted_share = 0;  // of the drafted tokens; NaN: none was drafted
  bool differs = false;       // a text was not plain decoding's where it must be
};

struct Tuning {
  // Drafters that could not be tried, a line each: "SPEC: why". The library's error messages.
  std::vector<std::string> left_out;
  // Plain decoding beside each drafter, as deep as pays; with the target's passes.
  MethodComparison drafters;
  // Plain decoding beside one drafter, as deep as pays and in fixed shapes. Nothing: it was not
  // begun.
  std::optional<MethodComparison> shapes;
  // Why the profile was not written; empty: it was, or none was asked for, or nothing was learnt.
  std::string profile_problem;
  bool profile_written = false;
  bool cancelled = false;
  double seconds = 0;  // that all took
  // Of the halves: that of all drafters with the passes before it, and that of the shapes.
  struct Half {
    double begin = 0;   // seconds before the first round
    double rounds = 0;  // seconds of all rounds
  };
  Half drafters_half;
  Half shapes_half;

  // The methods of both comparisons, by temperature; of `shapes` the fixed shapes alone.
  std::vector<TunedMethod> methods() const;
  // comparison_problems() of both.
  std::vector<std::string> problems() const;
  // TuneOptions::seconds with which the half that measures this method comes to about so many
  // prompts. NaN: not known, as there are not so many prompts, or no round was measured.
  double seconds_for(const TunedMethod& method, int n_prompts) const;
};

// Measures what passes of the target cost (1 to 32 rows behind as many tokens as prompts and half
// an answer have), then rounds: one prompt, decoded by each method in turn at one temperature.
//
// The first half of the seconds goes to all drafters, as deep as pays; the second to the one that
// did best (the largest speed-up, averaged over temperatures as a geometric mean), beside chains of
// 2, 4 and 8 tokens and one tree, where it drafts trees: its own, or of a small model and of the
// target without some layers one of ten tokens. In each half rounds
// go on over the temperatures of a prompt, over prompts, and over all again, until its time is up.
// A round that has begun is finished, and however few the seconds are, two prompts (one, where
// there is one) are measured at every temperature in both halves, and passes before them. A
// drafter that does not load is left out and named.
//
// Nothing else may run the same model meanwhile. Throws UsageError for options out of their range,
// Error where no drafter loads.
Tuning tune_drafters(const std::shared_ptr<const Model>& model, const TuneOptions& options);

// All of it as one JSON object: the comparisons as comparison_json() has them, methods and advice.
std::string tuning_json(const Tuning& tuning);

enum class Finding {
  pays,        // the method is faster than plain decoding
  costs,       // no method is faster than plain decoding; each is slower, or as fast
  not_certain  // neither is certain
};

struct Advice {
  double temperature = 0;
  Finding finding = Finding::not_certain;
  // Index of the method to take, or where none is certain to pay the one with the largest speed-up;
  // n_methods where there is none at this temperature.
  std::size_t method = 0;
  // not_certain: about how many prompts would make it certain, if further ones are like those
  // measured; 0: not known.
  int prompts_needed = 0;
};

// Prompts without which nothing is certain. If drafts made no difference, a prompt would be faster
// with them as often as not, and n prompts would all be so with probability 2^-n: for fewer than
// six that is more than the 2.5 % that the lower end of a 95 % interval stands for.
inline constexpr int kFewestPrompts = 6;

// What to decode with at a temperature. A method is certain to be faster than plain decoding where
// the lower end of its interval is above 1 over kFewestPrompts prompts or more, and to be not
// faster where the upper end is not above 1. Of drafters that are faster as deep as pays the one
// with the largest speed-up is taken; a fixed shape in its place only where it is certain to be
// faster than plain decoding and the lower end of its interval over the same drafter as deep as
// pays is above 1, too. Methods whose text differs are never taken. A pure function.
//
// prompts_needed takes it that an interval gets narrower as 1 / sqrt(prompts) around the same
// speed-up s: the half w of it that reaches over 1 now is |s - 1| after n w^2 / (s - 1)^2 prompts.
Advice recommend(std::span<const TunedMethod> methods, double temperature);

// The flags of `outrider generate` for a method: "--drafter suffix --tree chain:length=4".
std::string flags_of(const TunedMethod& method);

}  // namespace outrider

#endif  // OUTRIDER_TUNE_DRAFTERS_H_
