// SPDX-License-Identifier: Apache-2.0
// The suffix automaton of a growing text: every string that occurs in it, how often, and where.
//
// Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985). Each state
// stands for the strings that end at the same set of positions: the suffixes of its longest string
// that are longer than its link's. Appending a token takes amortised constant time and at most two
// states. Following a match takes amortised constant time a token, however long the text. Writing
// is not thread-safe; concurrent reading is.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_SUFFIX_AUTOMATON_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_SUFFIX_AUTOMATON_H_

#include <cstddef>
#include <vector>

#include "outrider/types.h"

namespace outrider {

class SuffixAutomaton {
 public:
  static constexpr int kRoot = 0;  // the empty string
  static constexpr int kNoState = -1;

  struct Transition {
    TokenId token = kNoToken;
    int state = kNoState;  // the state of the longer string
  };
  struct State {
    int length = 0;       // of its longest string
    int link = kNoState;  // the state of its longest suffix that also ends elsewhere
    int first_end = -1;   // the position of the last token of its first occurrence
    // Only for states with a string of up to `order` tokens:
    int n_occurrences = 0;
    int last_end = -1;                  // the last occurrence
    int previous_end = -1;              // the one before it; -1: none
    std::vector<Transition> next = {};  // ascending by token
  };

  // A string that occurs in the text: `length` tokens, one of the strings of `state`.
  struct Match {
    int state = kRoot;
    int length = 0;
  };

  // Counts occurrences of strings of up to `order` >= 0 tokens, which costs at most `order` steps a
  // token.
  explicit SuffixAutomaton(int order) : order_(order), states_(1) {}

  // Any token is allowed; kNoToken is a border that no match crosses.
  void append(TokenId token);

  int n_tokens() const { return n_tokens_; }
  int n_states() const { return static_cast<int>(states_.size()); }
  const State& state(int index) const { return states_[static_cast<std::size_t>(index)]; }
  // The state of a state's strings followed by a token; kNoState if they do not occur.
  int next(int state, TokenId token) const;

  // The end of the text: its last min(order, n_tokens()) tokens.
  const Match& suffix() const { return suffix_; }

  // Replaces the match by the longest suffix of it and `token` that occurs, of at most `longest`
  // tokens.
  void advance(Match& match, TokenId token, int longest) const;

 private:
  State& at(int index) { return states_[static_cast<std::size_t>(index)]; }
  void set_next(int state, TokenId token, int next);
  int split(int before, TokenId token, int after);

  int order_;
  std::vector<State> states_;
  int n_tokens_ = 0;
  int whole_ = kRoot;  // the state of the whole text
  Match suffix_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_SUFFIX_AUTOMATON_H_
