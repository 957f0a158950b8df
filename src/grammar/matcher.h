// SPDX-License-Identifier: Apache-2.0
// The tokens that a grammar allows after a text, at every node of a draft tree.
//
// States are small numbers and never change, so continuing one in many directions costs nothing.
// One matcher serves any number of texts of a grammar on one thread. It caches results for all of
// them, within the limits of limits.h. Not thread-safe.
#ifndef OUTRIDER_GRAMMAR_MATCHER_H_
#define OUTRIDER_GRAMMAR_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/byte_automaton.h"
#include "grammar/grammar.h"
#include "grammar/token_trie.h"
#include "outrider/types.h"

namespace outrider {

// A token outside the trie, and the bytes that it stands for.
struct SpelledToken {
  TokenId id = kNoToken;
  std::string bytes;  // at least one

  bool operator==(const SpelledToken&) const = default;
};

// An opening before the form: any tokens, up to one that ends it.
struct MatchedOpening {
  TokenId end = kNoToken;  // kNoToken: there is no opening
  int max_tokens = -1;     // tokens before `end`; after them only `end` is allowed. -1: no limit

  bool operator==(const MatchedOpening&) const = default;
};

class GrammarMatcher {
 public:
  // The trie must outlive the matcher. grammar: null, with an opening: anything may follow the
  // opening. further: tokens outside the trie that texts may have; not end tokens.
  GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar, const TokenTrie& trie,
                 std::vector<SpelledToken> further = {}, MatchedOpening opening = {});

  static constexpr int kNotAllowed = -1;
  int start() const { return opening_.end != kNoToken ? kOpening : behind_opening(); }
  // The state after one more token; kNotAllowed if no text of the language continues so, and always
  // after kNotAllowed. An end token is allowed where the text may end, and after another end token.
  int advance(int state, TokenId token);
  // A bit for each id (word id / 64, bit id % 64): exactly those that advance() allows. Valid until
  // the next call.
  std::span<const std::uint64_t> allowed(int state);
  bool is_allowed(int state, TokenId token) { return advance(state, token) != kNotAllowed; }
  // Whether the text is in the language.
  bool complete(int state) const {
    if (state == kEnded || state == kFree) return true;
    return state >= 0 ? automaton_.accepts(state) : state <= kOpening && !has_grammar_;
  }
  // Whether all tokens are allowed from there on.
  bool is_free(int state) const { return state == kFree; }

  // Overwrites `tokens` with the forced tokens from there: as long as only one is allowed, at most
  // `max_tokens` of them.
  void forced(int state, std::size_t max_tokens, std::vector<TokenId>& tokens);
  // The bytes that must follow, whichever tokens spell them; at most `max_bytes` of them.
  void certain_text(int state, std::size_t max_bytes, std::string& text);

  // The last limit (limits.h) because of which nothing was allowed; empty: none.
  std::string failure() const;
  // Whether its caches are so full that texts should move to next().
  bool is_full() const;
  // A matcher with empty caches, the same one for all texts that leave this one.
  std::shared_ptr<GrammarMatcher> next();
  // Translates a state of another matcher of the same grammar to this one's numbers.
  int take_over(const GrammarMatcher& other, int state);

  const TokenTrie& trie() const { return *trie_; }
  // Whether these arguments would make an equal matcher.
  bool is_of(const std::shared_ptr<const CompiledGrammar>& grammar, const TokenTrie& trie,
             const std::vector<SpelledToken>& further, const MatchedOpening& opening) const;

 private:
  static constexpr int kEnded = 0x7FFFFFFF;  // after an end token
  static constexpr int kFree = 0x7FFFFFFE;   // anything may follow
  static constexpr int kOpening = -2;        // minus the tokens of the opening so far

  int behind_opening() const { return has_grammar_ ? automaton_.start() : kFree; }
  bool is_used_up(int state) const {
    return opening_.max_tokens >= 0 && kOpening - state >= opening_.max_tokens;
  }

  // Masks by state; the oldest is replaced.
  struct Masks {
    std::unordered_map<int, std::size_t> slot_of_state;
    std::vector<int> state_of_slot;
    std::vector<std::uint64_t> words;  // (slots, trie_->n_words())
    std::size_t next_slot = 0;
  };
  // A state's mask; is_new: it must still be filled.
  std::span<std::uint64_t> find(Masks& masks, int state, bool& is_new) const;
  static void forget(Masks& masks, int state);
  bool fill_mask(int state, std::span<std::uint64_t> mask);
  int step(int state, std::string_view bytes);
  std::string_view bytes_of(TokenId token) const;
  bool fill_with_text(int state, std::span<std::uint64_t> mask);
  void walk(const TokenTrie::Part& part, int state, std::span<std::uint64_t> mask);

  const TokenTrie* trie_;
  std::vector<SpelledToken> further_;
  MatchedOpening opening_;
  bool has_grammar_;
  ByteAutomaton automaton_;
  Masks masks_;
  Masks short_masks_;      // of short tokens alone, by states that these do not distinguish
  std::vector<int> path_;  // states after the bytes of a path in the trie
  std::string failure_;
  std::weak_ptr<GrammarMatcher> next_;
};

// Matchers of the last used grammars, for the texts of one thread. Not thread-safe.
class GrammarMatchers {
 public:
  // The matcher for these arguments of GrammarMatcher. The trie must outlive all matchers.
  std::shared_ptr<GrammarMatcher> of(const std::shared_ptr<const CompiledGrammar>& grammar,
                                     const TokenTrie& trie, std::vector<SpelledToken> further = {},
                                     MatchedOpening opening = {});

 private:
  std::vector<std::shared_ptr<GrammarMatcher>> matchers_;  // the most recently used first
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_MATCHER_H_
