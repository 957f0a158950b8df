// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/suffix_automaton.h"

#include <algorithm>

namespace outrider {
namespace {

// The position of the token's transition, or where to insert it.
template <class Transitions>
auto find(Transitions& next, TokenId token) {
  return std::lower_bound(next.begin(), next.end(), token,
                          [](const SuffixAutomaton::Transition& transition, TokenId wanted) {
                            return transition.token < wanted;
                          });
}

}  // namespace

int SuffixAutomaton::next(int state, TokenId token) const {
  const std::vector<Transition>& next = this->state(state).next;
  const auto found = find(next, token);
  return found != next.end() && found->token == token ? found->state : kNoState;
}

void SuffixAutomaton::set_next(int state, TokenId token, int next) {
  std::vector<Transition>& transitions = at(state).next;
  const auto found = find(transitions, token);
  if (found != transitions.end() && found->token == token) {
    found->state = next;
  } else {
    transitions.insert(found, {.token = token, .state = next});
  }
}

void SuffixAutomaton::append(TokenId token) {
  const int position = n_tokens_++;
  const int whole = n_states();
  states_.push_back({.length = n_tokens_, .link = kRoot, .first_end = position});
  int before = whole_;
  for (; before != kNoState && next(before, token) == kNoState; before = at(before).link) {
    set_next(before, token, whole);
  }
  if (before != kNoState) {
    const int after = next(before, token);
    const bool is_longest = at(before).length + 1 == at(after).length;
    at(whole).link = is_longest ? after : split(before, token, after);
  }
  whole_ = whole;

  advance(suffix_, token, order_);
  for (int state = suffix_.state; state != kRoot; state = at(state).link) {
    State& seen = at(state);
    ++seen.n_occurrences;
    seen.previous_end = seen.last_end;
    seen.last_end = position;
  }
}

// Those strings of `after` that are no longer than the strings of `before` plus the token also
// occur at the text's new end: they get a state of their own.
int SuffixAutomaton::split(int before, TokenId token, int after) {
  const int shorter = n_states();
  State copy = at(after);
  copy.length = at(before).length + 1;
  states_.push_back(std::move(copy));
  at(after).link = shorter;
  for (; before != kNoState && next(before, token) == after; before = at(before).link) {
    set_next(before, token, shorter);
  }
  if (suffix_.state == after && suffix_.length <= at(shorter).length) suffix_.state = shorter;
  return shorter;
}

void SuffixAutomaton::advance(Match& match, TokenId token, int longest) const {
  int longer = next(match.state, token);
  while (longer == kNoState && match.state != kRoot) {
    match.state = state(match.state).link;
    match.length = state(match.state).length;
    longer = next(match.state, token);
  }
  if (longer == kNoState) return;  // the empty match
  match = {.state = longer, .length = std::min(match.length + 1, longest)};
  while (match.state != kRoot && state(state(match.state).link).length >= match.length) {
    match.state = state(match.state).link;
  }
}

}  // namespace outrider
