// What rounds of compare_methods() come to: figures with intervals, the bounds beside them, and
// reports of both as text, JSON, CSV and HTML.
//
//   outrider::MethodComparison comparison = outrider::describe_comparison(*model, options);
//   comparison.passes = outrider::measure_passes(*model, {.rows = outrider::bound_rows()});
//   comparison.rounds = outrider::compare_methods(model, options);
//   const auto figures = outrider::method_figures(comparison);
//   std::cout << outrider::comparison_text(comparison, figures);
//
// All functions here are pure: the same comparison gives the same figures and the same bytes.
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

// The machine that measured.
struct MachineDescription {
  std::string processor;  // as the system names it
  int n_processors = 0;   // logical ones that this process may use
  std::uint64_t memory_bytes = 0;
  std::string system;  // kernel, release and architecture
};
MachineDescription describe_machine();

struct ModelFile {
  std::string path;
  std::uint64_t bytes = 0;  // of its weights' files; 0: not known
};

// All that figures and reports are made from.
struct MethodComparison {
  std::string version;  // of the program
  MachineDescription machine;
  std::vector<ModelFile> files;  // the target's, then the drafters'
  ModelSummary model;
  // What was asked for; the callbacks are not looked at.
  CompareOptions options;
  bool is_chat = false;  // prompts were conversations by the model's template
  // Of the target, for the bounds; nothing: no bounds.
  std::optional<PassCosts> passes;
  int pass_context = 0;  // tokens that the passes had before them
  std::vector<ComparedRound> rounds;

  // Whether every prompt was asked at every temperature as often as wanted.
  bool is_complete() const;
};

// A comparison without rounds and passes.
MethodComparison describe_comparison(const Model& model, const CompareOptions& options,
                                     std::string version);

// Rows of the passes to measure for the bounds: 1, 2, 3, 4, 6, 8, 12 .. 64. Costs between them are
// taken from straight lines.
std::vector<int> bound_rows();

// A value and its 95% interval over prompts. NaN: not known.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// How often a drafted token stands, at one place of drafts.
struct PlaceFigures {
  std::int64_t n_reached = 0;  // drafts that had the place and stood up to it
  std::int64_t n_stood = 0;    // of these, those that stood there, too
  Estimate acceptance;         // n_stood / n_reached
};

// What a method could gain from these drafts at most, as speed-ups over plain decoding.
// docs/measuring.md has the formulas.
struct MethodBounds {
  Estimate level_cost;     // of a drafted level, in plain passes; NaN where nothing was drafted
  Estimate oracle;         // each round drafts exactly what was accepted
  Estimate perfect;        // all that is drafted stands, at the best length
  int perfect_length = 0;  // -1: not known, as level_cost
  Estimate free;           // the drafts as they were, at no cost
  Estimate oracle_share;   // measured speed-up / oracle
};

// One method at one temperature, over the prompts of one category.
struct MethodFigures {
  std::size_t method = 0;  // index into CompareOptions::methods
  double temperature = 0;
  std::string category;  // empty: all prompts
  int n_prompts = 0;     // in every figure
  // Plain decoding's seconds over the method's, for as many tokens as plain decoding wrote.
  Estimate speedup;
  Estimate request_speedup;    // of whole requests; NaN where texts differ
  Estimate first_token_ratio;  // the method's seconds to the first token over plain decoding's
  Estimate tokens_per_second;  // median over prompts, prompts' own tokens left out
  Estimate tau;                // tokens a pass of the target
  // Shares of the decoding's seconds; `rest` is what is neither drafting, the target's passes nor
  // the verification.
  Estimate draft_share;
  Estimate target_share;
  Estimate verify_share;
  Estimate rest_share;
  // [k]: rounds in which k drafted tokens stood.
  std::vector<std::int64_t> accepted_lengths;
  std::vector<PlaceFigures> places;  // [k]: place k + 1 of drafts
  // All drafts were chains of a head (EAGLE, Medusa, MTP): the acceptance at place n + 1 is the
  // n-alpha of Li et al. ("EAGLE", 2024, section 4.1).
  bool has_alphas = false;
  bool promises_same_text = false;
  int n_same = 0;  // prompts with plain decoding's text to the last token, in every repeat
  std::optional<MethodBounds> bounds;  // nothing for plain decoding and without measured passes
};

// The figures of a comparison, those of plain decoding among them: by temperature and method as
// they were asked for, then by category, the least speed-up first, and all prompts last. A prompt
// without a round at a temperature is left out there, and so is one to which some method wrote
// nothing. Of several repeats the median counts in speed-ups and ratios of seconds, and the sum in
// everything else. Intervals are percentile bootstraps over prompts (1000 resamples, the same draws
// for every method); they are NaN where there is one prompt.
std::vector<MethodFigures> method_figures(const MethodComparison& comparison);

// Prompts that could not be measured, and texts that must be plain decoding's and are not: a line
// each.
std::vector<std::string> comparison_problems(const MethodComparison& comparison);

// Tables for people, the worst category first.
std::string comparison_text(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures);
// All of it as one JSON object: settings, machine, files, passes, rounds, figures.
std::string comparison_json(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures);
// A row for each of the figures, under a line of names.
std::string comparison_csv(const MethodComparison& comparison,
                           std::span<const MethodFigures> figures);
// A page that needs no other file.
std::string comparison_html(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures);

// The rounds of a comparison in a file that outlives a run which is cut off. One writer at a time,
// over all processes. Not thread-safe.
class ComparisonFile {
 public:
  // Makes the file or goes on with it; reads what stands there into `comparison`, whose settings,
  // machine and model are what decides whether the file belongs to it. Throws Error: the file is of
  // another comparison (naming the first setting that differs) or is no such file, another process
  // writes it, it cannot be written.
  ComparisonFile(const std::filesystem::path& path, MethodComparison& comparison);
  ~ComparisonFile();

  // Both throw Error where the file cannot be written.
  void append(const ComparedRound& round);
  void append_passes(const PassCosts& passes, int context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whole or not at all. Throws Error.
void write_report(const std::filesystem::path& file, const std::string& text);

}  // namespace outrider

#endif  // OUTRIDER_METHOD_REPORT_H_
