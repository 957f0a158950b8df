// Ways to decode the same prompts, timed in turn beside plain decoding.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct");
//   outrider::CompareOptions options;
//   options.methods = outrider::read_methods("model:SmolLM2-135M-Instruct,suffix");
//   options.prompts = outrider::read_prompt_set("question.jsonl").prompts;
//   const auto rounds = outrider::compare_methods(model, options);
//
// outrider/method_report.h makes figures and reports of the rounds.
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

// "METHOD,METHOD,...", a method being "plain" or DRAFTER[@SHAPE[@VERIFICATION]]. DRAFTER is
// SpeculationOptions::drafter, SHAPE SpeculationOptions::tree or "auto" (the default): the
// drafter's own shape, as deep as pays (SpeculationOptions::adaptive), verified by "coupled" unless
// VERIFICATION says otherwise. A key=value behind a comma belongs to the method before it. A
// backslash takes a comma, an @ or a backslash literally: "first:suffix\,model:PATH". The result
// begins with plain decoding, whether the list names it or not. Throws UsageError for an empty
// list, a method that is named twice, and specs that cannot be meant. `drafter_options`: how the
// drafters' models are loaded.
std::vector<ComparedMethod> read_methods(std::string_view list,
                                         const ModelOptions& drafter_options = {});

// A conversation to have: what the user says in each turn. Or a text to go on with, in one turn.
struct ComparedPrompt {
  std::string set;       // the name of its PromptSet
  std::string id;        // "question_id", or the number of its line
  std::string category;  // what figures are reported by
  std::string topic;     // "category" of the file; Spec-Bench has several topics in a category
  std::vector<std::string> turns;
};

struct PromptSet {
  std::string name;          // of the file, or of its folder where the file is called "question"
  std::uint64_t digest = 0;  // a checksum of the file's bytes
  std::vector<ComparedPrompt> prompts;
};

// Reads a set of prompts, a JSON object a line: "turns" (texts, at least one), "category" and
// "question_id" (optional), and whatever else, which is not read. So are the questions of
// MT-bench, Spec-Bench, SPEED-Bench (qualitative) and EAGLE's evaluation written. A line without a
// category has the set's name for one. A file with exactly the thirteen categories of Spec-Bench
// (Xia et al. 2024) is reported by its six kinds: the eight categories of MT-bench are its kind
// "multi-turn conversation". Throws Error, naming file and line, for anything else.
PromptSet read_prompt_set(const std::filesystem::path& file);

// The prompts of several sets, one behind the other. Where there are several, a category's name
// says which set it is of: "spec_bench: qa". Throws UsageError where two sets have one name.
std::vector<ComparedPrompt> join_prompt_sets(std::span<const PromptSet> sets);

// At most `limit` of these, the same number of each category as far as it has so many, and evenly
// spread over a category's prompts. They stay in their order. The same prompts for the same limit.
std::vector<ComparedPrompt> spread_over_categories(std::span<const ComparedPrompt> prompts,
                                                   std::size_t limit);

// How many rounds of decoding had a draft of this size and this outcome.
struct DraftOutcome {
  int levels = 0;    // of the draft; 0: nothing was drafted
  int nodes = 0;     // of the draft; of a chain as many as levels
  int accepted = 0;  // drafted tokens that the verification let stand
  std::int64_t n = 0;
};

// What one method did with one prompt: sums over its turns. Seconds are of the wall clock.
struct MethodSample {
  double request_seconds = 0;      // from the request to the last token
  double first_token_seconds = 0;  // from the request to the first token
  double prefill_seconds = 0;      // GenerateStatistics, as all that follows
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
  // The first token that differs from plain decoding's, counted over the turns; -1: none does.
  std::int64_t first_difference = -1;
};

// One prompt at one temperature, by every method in turn.
struct ComparedRound {
  std::size_t prompt = 0;  // index into CompareOptions::prompts
  double temperature = 0;
  int repeat = 0;                     // from 0
  std::vector<MethodSample> samples;  // of CompareOptions::methods, in that order
  // Why the prompt could not be measured, for people; samples are empty then.
  std::string problem = {};
};

struct CompareOptions {
  std::vector<ComparedMethod> methods;  // the first is plain decoding: read_methods()
  std::vector<ComparedPrompt> prompts;
  std::vector<double> temperatures = {0};
  int max_tokens = 256;  // of each turn's answer; at least 2
  int repeats = 1;       // of each prompt at each temperature; at least 1
  std::uint64_t seed = 0;
  // Prompts are texts to go on with, and turns are joined by newlines. false: the model's chat
  // template makes them conversations where it has one.
  bool raw = false;
  // Rounds of an earlier run that need not be measured again: answers whether this one is known.
  std::function<bool(std::size_t prompt, double temperature, int repeat)> is_known = {};
  // Called with each round when it is complete.
  std::function<void(const ComparedRound&)> on_round = {};
  // Asked before each round that is to be measured; false ends the comparison.
  std::function<bool()> goes_on = {};
  // Called with each method's generator: before it decodes anything, and when all rounds are over
  // or the comparison has ended, unless it was an exception that ended it.
  std::function<void(std::size_t method, Generator&)> on_begin = {};
  std::function<void(std::size_t method, Generator&)> on_end = {};
  // When it becomes true the comparison ends; the round in progress is dropped.
  const std::atomic<bool>* cancel = nullptr;
  MeasureProgress progress = {};  // also while drafters load
};

// Throws the UsageError that compare_methods would throw, but for what depends on the models.
void check_comparison(const CompareOptions& options);

// Measures the rounds that are not known, in the order of repeats, prompts and temperatures, and
// returns them. Each method has one Generator, made before the first round and warmed
// up on a few tokens of the first prompt. In a round the methods
// take turns; which one begins moves on by one from prompt to prompt. What a user says in a second
// turn follows plain decoding's answer to the first, for every method, so that all decode the same
// prompts. A prompt's texts have the same seed for every method and repeat. The target keeps
// nothing of a prompt between requests; a drafter that remembers earlier texts (across=,
// updates=) remembers those of earlier rounds.
//
// Nothing else may run the same model meanwhile. Throws UsageError for options out of their range,
// Error for drafters that do not load. A prompt that does not fit into the model's context becomes
// a round with a problem.
std::vector<ComparedRound> compare_methods(const std::shared_ptr<const Model>& model,
                                           const CompareOptions& options);

// Tokens that stand before a pass in the middle of an answer: the prompts' median and half an
// answer. For the costs of passes (PassOptions::context) that the bounds are made from.
int typical_context(const Model& model, const CompareOptions& options);

// Whether a method's text must be plain decoding's to the last token: at temperature 0, and where
// the verification is "coupled"; with the rule "exact" alone.
bool promises_same_text(const ComparedMethod& method, double temperature);

}  // namespace outrider

#endif  // OUTRIDER_COMPARE_METHODS_H_
