// SPDX-License-Identifier: Apache-2.0
// Compares ways to decode the same prompts, timed in turn with plain decoding.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct");
//   outrider::CompareOptions options;
//   options.methods = outrider::read_methods("model:SmolLM2-135M-Instruct,suffix");
//   options.prompts = outrider::read_prompt_set("question.jsonl").prompts;
//   const auto rounds = outrider::compare_methods(model, options);
//
// outrider/method_report.h turns the rounds into figures and reports. Thread-safe, except that
// nothing else may run the model during a comparison.
#ifndef OUTRIDER_COMPARE_METHODS_H_
#define OUTRIDER_COMPARE_METHODS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/generate.h"
#include "outrider/measure.h"
#include "outrider/model.h"

namespace outrider {

// A way to decode.
struct ComparedMethod {
  std::string name;                     // as the user wrote it; "plain" is plain decoding
  SpeculationOptions speculation = {};  // drafter "none": plain decoding
};

// Reads "METHOD,METHOD,...". A METHOD is "plain" or DRAFTER[@SHAPE[@VERIFICATION]]:
// - DRAFTER is SpeculationOptions::drafter.
// - SHAPE is SpeculationOptions::tree or "auto" (the default): the drafter's own shape, as deep as
//   pays (SpeculationOptions::adaptive), verified by "coupled" unless VERIFICATION is given.
// - A key=value after a comma belongs to the method before it. A backslash takes a comma, an @ or a
//   backslash literally: "first:suffix\,model:PATH".
//
// The result begins with plain decoding, whether listed or not. `drafter_options` says how the
// drafters' models are loaded. Throws UsageError for an empty list, a repeated method, and invalid
// specs.
std::vector<ComparedMethod> read_methods(std::string_view list,
                                         const ModelOptions& drafter_options = {});

// A conversation, given by what the user says in each turn; or a text to continue, as one turn.
struct ComparedPrompt {
  std::string set;       // the name of its PromptSet
  std::string id;        // "question_id", or the line number
  std::string category;  // figures are reported for each category
  std::string topic;     // "category" in the file; a category of Spec-Bench has several topics
  std::vector<std::string> turns;
};

struct PromptSet {
  std::string name;          // of the file, or of its folder if the file is called "question"
  std::uint64_t digest = 0;  // a checksum of the file's bytes
  std::vector<ComparedPrompt> prompts;
};

// Reads a prompt set with a JSON object on each line: "turns" (texts, at least one), "category" and
// "question_id" (both optional). Other members are ignored. MT-bench, Spec-Bench, SPEED-Bench
// (qualitative) and EAGLE's evaluation questions have this form. A line without a category takes
// the name of the set. A file with exactly the thirteen categories of Spec-Bench (Xia et al. 2024)
// is reported by its six kinds; the eight categories of MT-bench become "multi-turn conversation".
// Throws Error with file and line for anything else.
PromptSet read_prompt_set(const std::filesystem::path& file);

// Concatenates several sets. If there are several, each category gets the name of its set as a
// prefix: "spec_bench: qa". Throws UsageError if two sets have the same name.
std::vector<ComparedPrompt> join_prompt_sets(std::span<const PromptSet> sets);

// Selects at most `limit` prompts: the same number from each category as far as it has them, evenly
// spread over the category. The order is kept. The selection is deterministic.
std::vector<ComparedPrompt> spread_over_categories(std::span<const ComparedPrompt> prompts,
                                                   std::size_t limit);

// The number of rounds whose draft had this size and outcome.
struct DraftOutcome {
  int levels = 0;    // of the draft; 0: nothing was drafted
  int nodes = 0;     // of the draft; for a chain equal to levels
  int accepted = 0;  // drafted tokens that were accepted
  std::int64_t n = 0;
};

// The result of one method on one prompt, summed over its turns. Seconds are wall-clock time.
struct MethodSample {
  double request_seconds = 0;      // from the request to the last token
  double first_token_seconds = 0;  // from the request to the first token
  double prefill_seconds = 0;      // GenerateStatistics, as are all that follow
  double decode_seconds = 0;
  double draft_seconds = 0;
  double target_seconds = 0;
  double verify_seconds = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t emitted = 0;
  std::int64_t target_passes = 0;
  std::int64_t drafter_passes = 0;
  std::int64_t drafted = 0;
  std::vector<DraftOutcome> outcomes;  // ascending in levels, nodes, accepted; n sums to the passes
  std::uint64_t ids_digest = 0;        // a checksum of all ids
  // The first token that differs from plain decoding's, counted over the turns; -1: none differs.
  std::int64_t first_difference = -1;
};

// One prompt at one temperature, decoded by every method in turn.
struct ComparedRound {
  std::size_t prompt = 0;  // index into CompareOptions::prompts
  double temperature = 0;
  int repeat = 0;                     // from 0
  std::vector<MethodSample> samples;  // in the order of CompareOptions::methods
  // Why the prompt could not be measured, as text for users; samples are empty then.
  std::string problem = {};
};

struct CompareOptions {
  std::vector<ComparedMethod> methods;  // the first is plain decoding: read_methods()
  std::vector<ComparedPrompt> prompts;
  std::vector<double> temperatures = {0};
  int max_tokens = 256;  // of each turn's answer; at least 2
  int repeats = 1;       // of each prompt at each temperature; at least 1
  std::uint64_t seed = 0;
  // true: prompts are texts to continue, and turns are joined by newlines. false: the model's chat
  // template, if it has one, makes conversations of them.
  bool raw = false;
  // Returns whether a round is known from an earlier run; known rounds are skipped.
  std::function<bool(std::size_t prompt, double temperature, int repeat)> is_known = {};
  // Called with each completed round.
  std::function<void(const ComparedRound&)> on_round = {};
  // Called before each round that is to be measured; false ends the comparison.
  std::function<bool()> goes_on = {};
  // Called with each method's generator: on_begin before it decodes anything, on_end after all
  // rounds or when the comparison ends. on_end is not called if an exception ended it.
  std::function<void(std::size_t method, Generator&)> on_begin = {};
  std::function<void(std::size_t method, Generator&)> on_end = {};
  // When it becomes true the comparison ends; the round in progress is dropped.
  const std::atomic<bool>* cancel = nullptr;
  MeasureProgress progress = {};  // also called while drafters load
};

// Throws the UsageError that compare_methods would throw, except for what depends on the models.
void check_comparison(const CompareOptions& options);

// Measures the rounds that are not known, in the order of repeats, prompts and temperatures, and
// returns them.
//
// Each method has one Generator, made before the first round and warmed up on a few tokens of the
// first prompt. In a round the methods take turns; the method that begins moves on by one from
// prompt to prompt. A second turn follows plain decoding's answer to the first for every method, so
// all decode the same prompts. A prompt has the same seeds for every method and repeat. The target
// keeps nothing of a prompt between requests. A drafter with memory across texts (across=,
// updates=) keeps that of earlier rounds.
//
// Nothing else may run the same model meanwhile. Throws UsageError for options out of range, and
// Error for drafters that do not load. A prompt that exceeds the model's context becomes a round
// with a problem.
std::vector<ComparedRound> compare_methods(const std::shared_ptr<const Model>& model,
                                           const CompareOptions& options);

// Typical tokens before a pass in the middle of an answer: the median prompt and half an answer. It
// is the PassOptions::context for the pass costs from which bounds are computed.
int typical_context(const Model& model, const CompareOptions& options);

// Whether a method's text must equal plain decoding's to the last token: with the rule "exact", at
// temperature 0 or verified by "coupled".
bool promises_same_text(const ComparedMethod& method, double temperature);

}  // namespace outrider

#endif  // OUTRIDER_COMPARE_METHODS_H_
