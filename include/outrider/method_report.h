// SPDX-License-Identifier: Apache-2.0
// Figures with intervals and bounds from the rounds of compare_methods(), and reports of them as
// text, JSON, CSV and HTML.
//
//   outrider::MethodComparison comparison = outrider::describe_comparison(*model, options);
//   comparison.passes = outrider::measure_passes(*model, {.rows = outrider::bound_rows()});
//   comparison.rounds = outrider::compare_methods(model, options);
//   const auto figures = outrider::method_figures(comparison);
//   std::cout << outrider::comparison_text(comparison, figures);
//
// The functions that make figures and reports are pure: the same comparison gives the same figures
// and the same bytes.
#ifndef OUTRIDER_METHOD_REPORT_H_
#define OUTRIDER_METHOD_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outrider/compare_methods.h"
#include "outrider/measure.h"
#include "outrider/model.h"

namespace outrider {

// The machine of the measurement.
struct MachineDescription {
  std::string processor;  // the system's name for it
  int n_processors = 0;   // logical ones that this process may use
  std::uint64_t memory_bytes = 0;
  std::string system;  // kernel, release and architecture
};
MachineDescription describe_machine();

struct ModelFile {
  std::string path;
  std::uint64_t bytes = 0;  // of its weight files; 0: unknown
};

// All input of figures and reports.
struct MethodComparison {
  std::string version;  // of the program
  MachineDescription machine;
  std::vector<ModelFile> files;  // the target's, then the drafters'
  ModelSummary model;
  // The settings; callbacks are ignored.
  CompareOptions options;
  bool is_chat = false;  // prompts were conversations by the model's template
  // Pass costs of the target, for the bounds; empty: no bounds.
  std::optional<PassCosts> passes;
  int pass_context = 0;  // tokens before the measured passes
  std::vector<ComparedRound> rounds;

  // Whether every prompt was measured at every temperature in all repeats.
  bool is_complete() const;
};

// A comparison without rounds and passes.
MethodComparison describe_comparison(const Model& model, const CompareOptions& options,
                                     std::string version);

// Rows of the passes to measure for the bounds: 1, 2, 3, 4, 6, 8, 12 .. 64. Costs between them are
// interpolated linearly.
std::vector<int> bound_rows();

// A value and its 95% interval over prompts. NaN: unknown.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// The acceptance rate at one position of drafts.
struct PlaceFigures {
  std::int64_t n_reached = 0;  // drafts with this position whose tokens before it were all accepted
  std::int64_t n_stood = 0;    // of these, those whose token at this position was accepted
  Estimate acceptance;         // n_stood / n_reached
};

// Upper bounds on what a method could gain from these drafts, as speed-ups over plain decoding.
// docs/measuring.md has the formulas.
struct MethodBounds {
  Estimate level_cost;     // of a drafted level, in plain passes; NaN if nothing was drafted
  Estimate oracle;         // each round drafts exactly what was accepted
  Estimate perfect;        // all drafted tokens are accepted, at the best length
  int perfect_length = 0;  // -1: unknown, as level_cost
  Estimate free;           // the drafts as they were, at no cost
  Estimate oracle_share;   // measured speed-up / oracle
};

// One method at one temperature, over the prompts of one category.
struct MethodFigures {
  std::size_t method = 0;  // index into CompareOptions::methods
  double temperature = 0;
  std::string category;  // empty: all prompts
  int n_prompts = 0;     // in every figure
  // Plain decoding's seconds over the method's, for the number of tokens that plain decoding wrote.
  Estimate speedup;
  Estimate request_speedup;    // of whole requests; NaN if texts differ
  Estimate first_token_ratio;  // the method's seconds to the first token over plain decoding's
  Estimate tokens_per_second;  // median over prompts, without prompt tokens
  Estimate tau;                // tokens per pass of the target
  // Shares of the decode time. `rest` is all but drafting, target passes and verification.
  Estimate draft_share;
  Estimate target_share;
  Estimate verify_share;
  Estimate rest_share;
  // [k]: rounds in which k drafted tokens were accepted.
  std::vector<std::int64_t> accepted_lengths;
  std::vector<PlaceFigures> places;  // [k]: position k + 1 of drafts
  // True if all drafts were chains of a head (EAGLE, Medusa, MTP): the acceptance at position n + 1
  // is then the n-alpha of Li et al. ("EAGLE", 2024, section 4.1).
  bool has_alphas = false;
  bool promises_same_text = false;
  int n_same = 0;  // prompts with plain decoding's text to the last token, in every repeat
  std::optional<MethodBounds> bounds;  // empty for plain decoding, and without measured passes
};

// The figures of a comparison, including plain decoding's: in the order of temperatures and
// methods, then by category with the least speed-up first, and all prompts last. A prompt is left
// out at a temperature at which it has no round or some method wrote nothing. Over several repeats,
// speed-ups and ratios of seconds take the median, all else the sum. Intervals are percentile
// bootstraps over prompts (1000 resamples, the same draws for every method); NaN for a single
// prompt.
std::vector<MethodFigures> method_figures(const MethodComparison& comparison);

// One line for each prompt that could not be measured, and for each text that must be plain
// decoding's and is not.
std::vector<std::string> comparison_problems(const MethodComparison& comparison);

// Tables for terminals, the worst category first.
std::string comparison_text(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures);
// One JSON object with settings, machine, files, passes, rounds and figures.
std::string comparison_json(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures);
// A header line, and a row for each of the figures.
std::string comparison_csv(const MethodComparison& comparison,
                           std::span<const MethodFigures> figures);
// A self-contained HTML page.
std::string comparison_html(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures);

// A file of a comparison's rounds, so that an interrupted run can continue. One writer at a time,
// over all processes. Not thread-safe.
class ComparisonFile {
 public:
  // Creates the file or continues it. Reads its rounds into `comparison`, whose settings, machine
  // and model must match the file's. Throws Error if the file belongs to another comparison (with
  // the first setting that differs), is no such file, is being written by another process, or
  // cannot be written.
  ComparisonFile(const std::filesystem::path& path, MethodComparison& comparison);
  ~ComparisonFile();

  // Both throw Error if the file cannot be written.
  void append(const ComparedRound& round);
  void append_passes(const PassCosts& passes, int context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes the file whole or not at all. Throws Error.
void write_report(const std::filesystem::path& file, const std::string& text);

}  // namespace outrider

#endif  // OUTRIDER_METHOD_REPORT_H_
