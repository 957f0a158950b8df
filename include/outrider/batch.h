// Texts that come and go, decoded together: each with its own sampling, drafter, rule, verification
// and tree, in one pass of the target a step.
//
//   outrider::Batch batch(model, {"model:SmolLM2-135M-Instruct", "suffix"});
//   batch.submit({.prompt = ids, .options = options}, {.drafter = "suffix"},
//                [](outrider::GenerateResult result, std::exception_ptr error) { ... });
//   while (batch.step()) {}
//
// A greedy request, and one that is verified by "coupled", has the bits that it has alone, whatever
// runs beside it and whenever that came. So has any other whose drafter knows of no other texts, as
// long as memory is not short: a text that gives way (--kv-memory), or whose drafts do, draws other
// tokens of the same law.
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
  // Texts that are decoded at a time; further ones wait in their order. At least 1.
  int most_running = 32;
  // Tokens of prompts that one pass runs while other texts are decoded beside them: more of them
  // bring a new text sooner to its first token, and hold up the others' next ones. At least 1.
  // Alone they come in passes of 256.
  int prompt_rows = 128;
  // Ended texts that are kept with their KV caches, those of their drafters with them: the tokens
  // that a later prompt has in common with one of them are not run again
  // (GenerateStatistics::reused). The one that was longest not of use goes first, and sooner where
  // --kv-memory is needed for texts that run.
  int most_kept = 0;
  // Is told of every round, and of every text that ends; null: nobody is.
  std::shared_ptr<RoundObserver> observer = nullptr;
};

// What there is at some moment.
struct BatchLoad {
  std::size_t n_waiting = 0;
  std::size_t n_running = 0;
  std::size_t n_kept = 0;
  std::int64_t n_preempted = 0;  // times, so far, that a text gave up its memory to others
  // Of a mixture of experts, so far: the target's passes, and the experts that a layer read in
  // them, on average over the layers, summed over the passes.
  std::int64_t n_expert_passes = 0;
  double n_experts_read = 0;
};

// A text that has been written to a file or read from one.
struct SavedText {
  RequestId id = 0;           // by which it is kept
  std::int64_t n_tokens = 0;  // that need not be run again
  std::int64_t n_bytes = 0;   // of the file
};

// submit(), cancel() and load() may be called from any thread; all else from one at a time.
class Batch {
 public:
  // Called in step() when the text has ended, with its result, or with what went wrong: an error of
  // this request alone. May submit and cancel. What it throws comes out of step(), once all others
  // that ended in it have been called.
  using OnEnd = std::function<void(GenerateResult result, std::exception_ptr error)>;

  // drafters: specs of those that requests may name besides "none" (SpeculationOptions::drafter).
  // Throws Error or UsageError for specs and options that cannot be meant and drafters that do not
  // load.
  Batch(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
        const ModelOptions& drafter_options = {}, const BatchOptions& options = {});
  ~Batch();

  // A drafter that the program brings (own_drafter.h): requests name it by this spec, "own" or
  // "own:NAME", with its keys. Throws UsageError for another spec, and for one that a drafter of
  // the batch has already.
  void add_drafter(const std::string& spec, std::shared_ptr<OwnDrafter> drafter);

  // Throws Error or UsageError for a request that cannot be run, a drafter that is not one of the
  // batch's and other specs that cannot be meant: it has not been submitted then. The options'
  // callbacks, and on_end, are called in step(). `speculation.drafter_options` and own_drafter are
  // not read.
  RequestId submit(GenerateRequest request, const SpeculationOptions& speculation, OnEnd on_end);
  // Ends a request after the pass in progress: its result is what it has by then
  // (FinishReason::cancelled). Does nothing for one that has ended.
  void cancel(RequestId id);

  // Takes in what was submitted, and runs one pass for the texts that are there. false: there was
  // none.
  bool step();

  // Writes a text that has ended and is kept (BatchOptions::most_kept), or a longer one that begins
  // with it and has taken its place, with the target's keys and values. The file appears whole or
  // not at all. Throws Error where no such text is kept any more.
  SavedText save_text(RequestId id, const std::filesystem::path& path);
  // Keeps a text that was saved, by this process or another: prompts that begin like it go on from
  // it with the bits that they have anyway, drafters run it by themselves. Throws Error for a file
  // that is damaged, or of another model, weight type, kernel table or cache type: its last token
  // is run anew and has to come out the same; and where --kv-memory or most_kept (0) do not hold
  // it.
  SavedText load_text(const std::filesystem::path& path);
  // Drops a text that has ended. Returns its tokens; 0 for one that is not kept.
  std::int64_t drop_text(RequestId id);

  // For work with the model beside the batch that needs memory of the KV cache: drops kept texts,
  // and then takes it from running ones, the last one first, which go on when there is room again,
  // until `fits` says yes. false: there is nothing left to take.
  bool make_room(const std::function<bool()>& fits);

  // Measures what passes of the target, and of the drafters' models, cost by their rows: for
  // requests whose speculation is adaptive. Takes some dozen passes, once, and follows the costs
  // from then on. Not while a text runs.
  void measure_passes();

  bool has_measured_passes() const;
  // Writes what was learnt of passes and drafts to a file, whole or not at all: JSON, counts and
  // times, nothing of any text. What the file knows of other drafters stays in it, as far as it is
  // among the 32 used last; a file that is no profile is replaced. Another batch of the same model
  // and weights on the same machine takes it in the place of measuring, with whatever drafters.
  // Throw Error for a file that cannot be written (another process that writes it just then
  // included), or read, or is no profile: nothing has changed then. Not while a text runs.
  void save_drafting_profile(const std::filesystem::path& file) const;
  void load_drafting_profile(const std::filesystem::path& file);

  BatchLoad load() const;
  const BatchOptions& options() const;
  // From the next step on; what is kept beyond most_kept is dropped. Throws UsageError.
  void set_options(const BatchOptions& options);
  // Generator::rule_scope() of requests with that speculation.
  RuleScope rule_scope(const SpeculationOptions& speculation) const;
  // Generator::update_drafter() of each drafter. Texts that run go on with the one they began with.
  bool update_drafters();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_BATCH_H_
