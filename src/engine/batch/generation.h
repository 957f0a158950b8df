// SPDX-License-Identifier: Apache-2.0
// One request while it is generated.
#ifndef OUTRIDER_ENGINE_BATCH_GENERATION_H_
#define OUTRIDER_ENGINE_BATCH_GENERATION_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/batch/stop_strings.h"
#include "engine/files/verdict_recorder.h"
#include "engine/speculation.h"
#include "grammar/matcher.h"
#include "outrider/generate.h"
#include "outrider/tokenizer.h"
#include "sampling/counter_chance.h"
#include "sampling/text_masks.h"
#include "speculate/decoder.h"

namespace outrider {

// For an encoder-decoder's request: separates the encoder's input from the text, which begins with
// the start token (GenerateRequest::encoder_prompt).
void part_encoder_prompt(GenerateRequest& request, const Model& model);

// Called after part_encoder_prompt(). Throws Error or UsageError if the request has encoder input
// and the model no encoder, or if the encoder's input is empty, too long or has invalid tokens.
void check_encoder_prompt(const GenerateRequest& request, const Model& model);

// Called after part_encoder_prompt(). Throws Error or UsageError if the model cannot run the
// request under the speculation's rule. Thread-safe.
void check_request(const GenerateRequest& request, const Model& model,
                   const Speculation& speculation);

// Turns one request's committed tokens into text and statistics. Must not move, since its stream's
// drafter refers to it. Not thread-safe.
class Generation {
 public:
  // request: checked. The model must outlive it. matchers: of grammars, shared with the other texts
  // of the running thread.
  Generation(SequenceId id, GenerateRequest request, const Model& model,
             std::shared_ptr<const Speculation> speculation, GrammarMatchers& matchers,
             std::chrono::steady_clock::time_point asked);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  Stream& stream() { return stream_; }
  const Stream& stream() const { return stream_; }
  const Speculation& speculation() const { return *speculation_; }
  const std::shared_ptr<Drafter>& drafter() const { return speculation_->drafter; }
  std::chrono::steady_clock::time_point asked() const { return asked_; }

  // Takes one committed token; returns true to end the text. Throws Error for NaN logits, and what
  // on_draft and on_token throw.
  bool commit(const Committed& committed);

  // Called around each round. Statistics count the rounds that draft, after the prompt.
  void begin_round();
  void end_round(const RoundTimes& times);

  bool cancelled() const {
    const std::atomic<bool>* const cancel = request_.options.cancel;
    return cancel != nullptr && cancel->load(std::memory_order_relaxed);
  }
  bool overdue() const {
    const double most = request_.options.max_seconds;
    return most > 0 && std::chrono::duration<double>(Clock::now() - asked_).count() >= most;
  }
  // Ends the text for that reason; its result is what it has by now.
  void end(FinishReason why);

  // Ends the text by an error; nothing is logged of it.
  void fail();

  // The result, once the stream is finished. Writes to the request's verdict log.
  GenerateResult finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool ends_text(TokenId id) const;
  void follow_mask(TokenId id);
  bool follow_grammar();
  bool is_text(TokenId id) const;
  std::vector<SpelledToken> spelled_tokens() const;
  std::vector<std::string> stops_in_text(const std::vector<std::string>& stops);
  void decode_prompt(std::span<const TokenId> prompt);
  void take_decoded();
  void release_rest();
  void reserve();
  void show_draft();
  TokenOrigin origin(const Committed& committed) const;

  GenerateRequest request_;
  const Model* model_;
  std::shared_ptr<const Speculation> speculation_;
  CounterChance chance_;
  Stream stream_;
  std::unique_ptr<Tokenizer::Decoding> decoding_;
  std::string decoded_;               // of the last token
  std::string held_of_prompt_;        // text of the prompt that decoding_ still holds back
  std::vector<TokenId> stop_tokens_;  // of stop strings
  StopStrings stop_strings_;
  std::vector<TokenId> of_round_;     // tokens of this round, for a text with a grammar or a mask
  std::shared_ptr<TextMasks> masks_;  // null: no mask
  bool released_ = false;
  std::vector<TokenLogProb> top_;             // at the last token
  std::int64_t accepted_before_ = 0;          // when the round began
  std::int64_t passes_before_ = 0;            // when the round began
  bool drafts_now_ = false;                   // the round is one that drafts
  bool owes_draft_ = false;                   // the round's draft has not been reported yet
  std::vector<TokenId> draft_tokens_;         // of a DraftEvent
  std::vector<int> draft_parents_;            // of a DraftEvent
  std::vector<std::uint8_t> draft_accepted_;  // of a DraftEvent
  Clock::time_point asked_;
  std::optional<Clock::time_point> began_;     // its first round
  std::optional<Clock::time_point> drafting_;  // the first that drafts
  std::optional<VerdictRecorder> recorder_;
  GenerateResult result_;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_GENERATION_H_
