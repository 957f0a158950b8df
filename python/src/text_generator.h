// SPDX-License-Identifier: Apache-2.0
// The implementation of Python's Generator: a batch of one drafter, stepped by the threads that
// wait for texts.
//
// One thread at a time may call start(), step() and finish() (the Use below); passes of all
// generators of a model also take turns. Called without the GIL.
#ifndef OUTRIDER_PYTHON_TEXT_GENERATOR_H_
#define OUTRIDER_PYTHON_TEXT_GENERATOR_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "outrider/batch.h"
#include "outrider/error.h"
#include "shared_model.h"

namespace outrider::python {

// A TokenEvent that outlives its callback.
struct Token {
  TokenId id = kNoToken;
  std::string text = {};
  TokenOrigin origin = TokenOrigin::plain;
  int rank = -1;
  bool ends = false;
  std::optional<double> log_prob = {};
  std::vector<TokenLogProb> top = {};
};

// A request in progress, or its outcome.
struct Text {
  RequestId id = -1;
  bool keeps_tokens = false;      // whether `tokens` is filled, for a stream or on_token
  std::deque<Token> tokens = {};  // not yet read
  std::size_t n_shown_bytes = 0;  // of the text of all tokens so far
  // Any thread may set it; all else is read only by the thread that uses the generator.
  std::atomic<bool> cancelled{false};
  std::atomic<bool> ended{false};
  bool failed = false;  // it ended in an error: there is no result
  GenerateResult result = {};
  std::exception_ptr error = {};
};

class TextGenerator {
 public:
  // Throws Error or UsageError, as outrider::Generator does.
  TextGenerator(std::shared_ptr<SharedModel> model, const SpeculationOptions& speculation);
  ~TextGenerator();
  TextGenerator(const TextGenerator&) = delete;
  TextGenerator& operator=(const TextGenerator&) = delete;

  // Held by the thread that uses the generator. Throws UsageError if another thread holds it, or
  // this thread does in a call farther up the stack.
  class Use {
   public:
    explicit Use(TextGenerator& generator) : generator_(&generator) {
      if (generator.in_use_.exchange(true)) {
        throw UsageError("generate", "generator", "one thread at a time", "a second one");
      }
    }
    ~Use() { generator_->in_use_.store(false); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    TextGenerator* generator_;
  };
  bool in_use() const { return in_use_.load(); }

  // Submits all of the requests, or throws and submits none.
  std::vector<std::shared_ptr<Text>> start(std::vector<GenerateRequest> requests,
                                           bool keeps_tokens);
  // One pass for all current texts. A text's last token gets the part of its text that was held
  // back.
  void step();
  // Cancels the given texts that have not ended, and steps until they have. Other current texts
  // continue.
  void finish(std::span<const std::shared_ptr<Text>> texts);
  // Called from any thread: the text ends in a later step.
  void cancel(Text& text) {
    text.cancelled = true;
    batch_->cancel(text.id);
  }
  // If all current texts are cancelled, and therefore no thread steps for them: steps until they
  // have ended. A thread that has the turn of a pass may call it as well.
  void end_left();

  RuleScope rule_scope() const { return batch_->rule_scope(speculation_); }
  void keep_last_text(bool keep);
  SharedModel& shared_model() const { return *model_; }
  std::shared_ptr<SharedModel> model() const { return model_; }

 private:
  void step_in_turn();
  bool is_left() const;

  std::shared_ptr<SharedModel> model_;
  SpeculationOptions speculation_;
  std::unique_ptr<Batch> batch_;
  std::vector<std::shared_ptr<Text>> active_;
  std::atomic<bool> in_use_{false};
};

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_TEXT_GENERATOR_H_
