// Which tokens a grammar lets follow a text, at every node of a tree of drafts.
//
// States are small numbers: going on from one in many directions costs nothing, and none is ever
// changed. One matcher serves any number of texts of a grammar that are written by one thread; what
// it has been asked for one it remembers for all, within the limits of limits.h. Not thread-safe.
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

// A token that is not in the trie, and what it stands for.
struct SpelledToken {
  TokenId id = kNoToken;
  std::string bytes;  // at least one

  bool operator==(const SpelledToken&) const = default;
};

// What comes before the form: any tokens, up to one that ends it.
struct MatchedOpening {
  TokenId end = kNoToken;  // kNoToken: there is no opening
  int most = -1;  // tokens before `end`; behind them nothing else is allowed. -1: any number

  bool operator==(const MatchedOpening&) const = default;
};

class GrammarMatcher {
 public:
  // The trie outlives the matcher. grammar: null, with an opening: anything may follow that.
  // further: tokens that texts may have besides those of the trie, which are not end tokens.
  GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar, const TokenTrie& trie,
                 std::vector<SpelledToken> further = {}, MatchedOpening opening = {});

  static constexpr int kNotAllowed = -1;
  int start() const { return opening_.end != kNoToken ? kOpening : behind_opening(); }
  // The state behind one more token; kNotAllowed where no text of the language goes on so, behind
  // kNotAllowed as well. An end token is allowed where the text may end, and behind another.
  int advance(int state, TokenId token);
  // A bit for each id (word id / 64, bit id % 64): exactly those that advance() lets pass. Valid
  // until the next call.
  std::span<const std::uint64_t> allowed(int state);
  bool is_allowed(int state, TokenId token) { return advance(state, token) != kNotAllowed; }
  // Whether the text is one of the language.
  bool complete(int state) const {
    if (state == kEnded || state == kFree) return true;
    return state >= 0 ? automaton_.accepts(state) : state <= kOpening && !has_grammar_;
  }
  // Whether all tokens are allowed there and behind it.
  bool is_free(int state) const { return state == kFree; }

  // The tokens that are certain from there: as long as one alone is allowed, `most` of them at
  // most. `tokens` is overwritten.
  void forced(int state, std::size_t most, std::vector<TokenId>& tokens);
  // The bytes that are certain from there, whichever tokens spell them; `most` of them at most.
  void certain_text(int state, std::size_t most, std::string& text);

  // Why nothing was allowed somewhere: the last limit that was met (limits.h). Empty: none was.
  std::string failure() const;
  // Whether it remembers so much that texts should go on with the next one.
  bool is_full() const;
  // The matcher that remembers nothing yet, the same for all texts that leave this one.
  std::shared_ptr<GrammarMatcher> next();
  // A state of another matcher of the same grammar, in this one's numbers.
  int take_over(const GrammarMatcher& other, int state);

  const TokenTrie& trie() const { return *trie_; }
  // Whether it is the matcher that these would make.
  bool is_of(const std::shared_ptr<const CompiledGrammar>& grammar, const TokenTrie& trie,
             const std::vector<SpelledToken>& further, const MatchedOpening& opening) const;

 private:
  static constexpr int kEnded = 0x7FFFFFFF;  // behind an end token
  static constexpr int kFree = 0x7FFFFFFE;   // anything may follow
  static constexpr int kOpening = -2;        // less the tokens of the opening so far

  int behind_opening() const { return has_grammar_ ? automaton_.start() : kFree; }
  bool is_used_up(int state) const {
    return opening_.most >= 0 && kOpening - state >= opening_.most;
  }

  // Masks by state: the oldest gives way.
  struct Masks {
    std::unordered_map<int, std::size_t> slot_of_state;
    std::vector<int> state_of_slot;
    std::vector<std::uint64_t> words;  // (slots, trie_->n_words())
    std::size_t next_slot = 0;
  };
  // A state's mask, and whether it is a new one, still to be written.
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
  Masks short_masks_;      // of short tokens alone, by states that these do not tell apart
  std::vector<int> path_;  // states behind the bytes of a walk through the trie
  std::string failure_;
  std::weak_ptr<GrammarMatcher> next_;
};

// Matchers of the grammars that were asked for last, for the texts of one thread. Not thread-safe.
class GrammarMatchers {
 public:
  // The matcher of what GrammarMatcher's constructor takes. The trie outlives all matchers.
  std::shared_ptr<GrammarMatcher> of(const std::shared_ptr<const CompiledGrammar>& grammar,
                                     const TokenTrie& trie, std::vector<SpelledToken> further = {},
                                     MatchedOpening opening = {});

 private:
  std::vector<std::shared_ptr<GrammarMatcher>> matchers_;  // the last one asked for first
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_MATCHER_H_
