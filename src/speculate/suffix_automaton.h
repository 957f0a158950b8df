// The suffix automaton of a growing text: every string that occurs in it, how often, and where.
//
// Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985). Each state
// stands for the strings that end at the same set of positions; they are the suffixes of its
// longest one that are longer than its link's. Building takes amortised constant time a token and
// at most two states for each; a match is followed in amortised constant time a token, however long
// the text. Not thread-safe; reading from several threads is.
#ifndef OUTRIDER_SPECULATE_SUFFIX_AUTOMATON_H_
#define OUTRIDER_SPECULATE_SUFFIX_AUTOMATON_H_

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
    int link = kNoState;  // the state of its longest suffix that ends elsewhere, too
    int first_end = -1;   // the position of the last token where its strings occur first
    // Of states with a string of up to `order` tokens alone:
    int n_occurrences = 0;
    int last_end = -1;                  // where they occur last
    int previous_end = -1;              // and where before that; -1: nowhere
    std::vector<Transition> next = {};  // ascending by token
  };

  // A string that occurs in the text: `length` tokens, one of the strings of `state`.
  struct Match {
    int state = kRoot;
    int length = 0;
  };

  // Occurrences are counted of strings of up to `order` >= 0 tokens; that costs as many steps a
  // token at most.
  explicit SuffixAutomaton(int order) : order_(order), states_(1) {}

  // Any token, kNoToken as well: as a border that no match crosses.
  void append(TokenId token);

  int n_tokens() const { return n_tokens_; }
  int n_states() const { return static_cast<int>(states_.size()); }
  const State& state(int index) const { return states_[static_cast<std::size_t>(index)]; }
  // The state of a state's strings with a token behind them; kNoState where they do not occur.
  int next(int state, TokenId token) const;

  // The text's own end: its last min(order, n_tokens()) tokens.
  const Match& suffix() const { return suffix_; }

  // The longest suffix of the match and `token`, of at most `longest` tokens, that occurs.
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

#endif  // OUTRIDER_SPECULATE_SUFFIX_AUTOMATON_H_
