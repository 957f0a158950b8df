// SPDX-License-Identifier: Apache-2.0
// Continuous batching: requests join and leave at any time, and each step runs one pass of the
// target for all of them. Each request has its own sampling, drafter, rule, verification and tree.
//
//   outrider::Batch batch(model, {"model:SmolLM2-135M-Instruct", "suffix"});
//   batch.submit({.prompt = ids, .options = options}, {.drafter = "suffix"},
//                [](outrider::GenerateResult result, std::exception_ptr error) { ... });
//   while (batch.step()) {}
//
// A greedy request gives the same bits as alone, whatever runs beside it. So does a request
// verified by "coupled". So does any other whose drafter keeps no state across texts, while memory
// suffices. Where memory is short (--kv-memory), a preempted text, or one whose drafts are dropped,
// draws other tokens of the same distribution.
#ifndef OUTRIDER_BATCH_H_
#define OUTRIDER_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "outrider/round_observer.h"

namespace outrider {

using RequestId = std::int64_t;

struct BatchOptions {
  // Texts decoded at a time; further ones wait in order of submission. At least 1.
  int max_running = 32;
  // Prompt tokens that one pass runs while other texts decode. A larger number brings a new text
  // sooner to its first token and delays the next tokens of the others. At least 1. Where no text
  // decodes, prompts run 256 tokens a pass.
  int prompt_rows = 128;
  // Ended texts that are kept with their KV caches and those of their drafters. A later prompt
  // skips the tokens that it shares with one of them (GenerateStatistics::reused). The least
  // recently used one is dropped first, and sooner where running texts need --kv-memory.
  int max_kept = 0;
  // Is called after every round and for every text that ends. May be null.
  std::shared_ptr<RoundObserver> observer = nullptr;
};

// The load at some moment.
struct BatchLoad {
  std::size_t n_waiting = 0;
  std::size_t n_running = 0;
  std::size_t n_kept = 0;
  std::int64_t n_preempted = 0;  // preemptions so far: a text gave up its KV cache to others
  // For a mixture of experts, so far: passes of the target, and the experts read per layer (the
  // mean over the layers), summed over these passes.
  std::int64_t n_expert_passes = 0;
  double n_experts_read = 0;
};

// A text that was written to a file or read from one.
struct SavedText {
  RequestId id = 0;           // under which the batch keeps it
  std::int64_t n_tokens = 0;  // that need not be run again
  std::int64_t n_bytes = 0;   // of the file
};

// Any thread may call submit(), cancel() and load(). Only one thread at a time may call the rest.
class Batch {
 public:
  // Called in step() when the text has ended, with its result or with the error of this request.
  // May call submit() and cancel(). step() rethrows what it throws, after all other texts that
  // ended in that step have been reported.
  using OnEnd = std::function<void(GenerateResult result, std::exception_ptr error)>;

  // drafters: specs of the drafters that requests may name besides "none"
  // (SpeculationOptions::drafter). Throws Error or UsageError for invalid specs or options, and for
  // drafters that do not load.
  Batch(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
        const ModelOptions& drafter_options = {}, const BatchOptions& options = {});
  ~Batch();

  // Adds a drafter of the program (own_drafter.h). Requests name it by `spec`, "own" or "own:NAME",
  // followed by its keys. Throws UsageError for any other spec, and for one that the batch already
  // has.
  void add_drafter(const std::string& spec, std::shared_ptr<OwnDrafter> drafter);

  // Adds a request. Throws Error or UsageError for a request that cannot be run, a drafter that the
  // batch does not have, or another invalid spec; nothing is submitted then. step() calls the
  // callbacks of the options and on_end. `speculation.drafter_options` and
  // `speculation.own_drafter` are ignored.
  RequestId submit(GenerateRequest request, const SpeculationOptions& speculation, OnEnd on_end);
  // Ends a request after the pass in progress. Its result is what it has by then
  // (FinishReason::cancelled). Does nothing for a request that has ended.
  void cancel(RequestId id);

  // Admits submitted requests and runs one pass for all current texts. Returns false if there was
  // no text.
  bool step();

  // Writes an ended text that is kept (BatchOptions::max_kept) with the keys and values of the
  // target. If a longer text that begins with it took its place, writes that one. The file appears
  // whole or not at all. Throws Error if no such text is kept.
  SavedText save_text(RequestId id, const std::filesystem::path& path);
  // Reads a saved text, written by this or another process, and keeps it. Prompts that begin with
  // its tokens skip them, with unchanged bits; drafters run these tokens themselves. Throws Error
  // for a file that is damaged or of another model, weight type, kernel table or cache type: its
  // last token is run again and must give the same bits. Throws Error also if --kv-memory cannot
  // hold it or max_kept is 0.
  SavedText load_text(const std::filesystem::path& path);
  // Drops an ended text. Returns its number of tokens, or 0 if it was not kept.
  std::int64_t drop_text(RequestId id);

  // Frees KV cache memory for other work with the same model, until `fits` returns true. Drops kept
  // texts first, then preempts running ones, the last admitted first; these continue when there is
  // memory again. Returns false if nothing is left to free.
  bool make_room(const std::function<bool()>& fits);

  // Measures what passes of the target and of the drafters' models cost by their rows, for requests
  // with adaptive speculation. Runs a few dozen passes once; the costs are updated in every later
  // round. Must not be called while a text runs.
  void measure_passes();

  bool has_measured_passes() const;
  // Writes what was learnt about passes and drafts to a JSON file, whole or not at all. The file
  // holds counts and times, nothing of any text. Its entries for other drafters stay, up to the 32
  // last used; a file that is no profile is replaced. Another batch of the same model and weights
  // on the same machine can load it instead of measuring, whatever its drafters. Both throw Error
  // and change nothing if the file cannot be written or read, is being written by another process,
  // or is no profile. Must not be called while a text runs.
  void save_drafting_profile(const std::filesystem::path& file) const;
  void load_drafting_profile(const std::filesystem::path& file);

  BatchLoad load() const;
  const BatchOptions& options() const;
  // Takes effect at the next step; texts kept beyond max_kept are dropped. Throws UsageError.
  void set_options(const BatchOptions& options);
  // As Generator::rule_scope(), for requests with that speculation.
  RuleScope rule_scope(const SpeculationOptions& speculation) const;
  // Calls Generator::update_drafter() for each drafter. Running texts stay with the drafter that
  // they began with.
  bool update_drafters();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_BATCH_H_
