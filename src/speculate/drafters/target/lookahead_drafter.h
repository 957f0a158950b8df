// SPDX-License-Identifier: Apache-2.0
// Lookahead decoding: the target drafts for itself. Besides the guesses, which are verified, its
// pass runs a window of Jacobi iteration (jacobi_window.h), whose N-grams are the guesses of later
// rounds.
//
// Source: Fu et al., "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding"
// (2024), algorithm 2, and the authors' code for what the paper leaves open. The window advances
// one token a round, however many were accepted. Its tokens are the target's likeliest, also for
// sampled texts. End tokens are kept out of it. The pool keeps the last G N-grams of each first
// token.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_LOOKAHEAD_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_LOOKAHEAD_DRAFTER_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "speculate/drafter.h"
#include "speculate/drafters/target/jacobi_window.h"
#include "speculate/drafters/target/ngram_pool.h"
#include "speculate/drafters/target/target_guesses.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Keeps a window and a pool for each text. All N-grams of the pool that begin with the round's root
// are guessed, as one tree of point masses in which equal beginnings share a path; under a chain
// only the one seen last. A window that exceeds the target's context is not run any more, nor is
// one in the last round of a text: the pool stays unchanged.
//
// Where the window has no guess (at first, and in place of an end token), it takes a token of the
// text. The choice depends only on the text's length and the column.
class LookaheadDrafter final : public Drafter {
 public:
  struct Options {
    JacobiWindow::Size window = {.width = 7, .ngram = 5};  // the authors' defaults
    int n_guesses = 7;                                     // at least 1
  };
  LookaheadDrafter(const Options& options, std::vector<TokenId> end_tokens);

  std::string_view name() const override { return "lookahead"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override { states_.erase(id); }
  // The pool and the window keep what they have seen.
  void rewind(const Context&, std::size_t) override {}
  std::int64_t n_passes() const override { return 0; }

 private:
  struct State {
    JacobiWindow window;
    NgramPool pool;
    bool started = false;          // the window
    std::vector<int> newest = {};  // its last level's nodes in this round's tree; empty: not run
  };

  Options options_;
  std::vector<TokenId> end_tokens_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  std::vector<TokenId> tokens_;
  TargetGuesses guesses_;
};

// "lookahead[:window=W,ngram=N,guesses=G]".
DrafterPlan read_lookahead_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_LOOKAHEAD_DRAFTER_H_
