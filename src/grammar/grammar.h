// SPDX-License-Identifier: Apache-2.0
// A compiled grammar: an automaton over bytes with a stack.
//
// Each rule is a graph of positions between two bytes. A text is in the language if it leads from
// the root rule's start to its end; a call of a rule pushes the position to continue from, and the
// end of a rule pops it. Invariants of a compiled grammar:
// - From every live position the end of its rule can be reached, so that everything a matcher
//   accepts can be completed.
// - No rule calls itself before a byte is read (left recursion).
// Immutable; thread-safe.
#ifndef OUTRIDER_GRAMMAR_GRAMMAR_H_
#define OUTRIDER_GRAMMAR_GRAMMAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/parts.h"

namespace outrider {

// A place within a rule, and what may happen there.
struct Position {
  enum class Kind : std::uint8_t {
    bytes,   // read a byte of `set`, continue at `next`
    either,  // continue at `next` or at `other`
    call,    // match the rule, continue at `next`
    repeat,  // match the rule `min` to `max` times, continue at `next`
    end,     // of the rule
  };
  Kind kind = Kind::end;
  bool alive = false;  // the rule's end can be reached
  int next = -1;
  int other = -1;  // for either: a position; for bytes: the set; for call and repeat: the rule
  int min = 0;     // for repeat
  int max = 0;     // for repeat; kUnlimited: any number
};

class CompiledGrammar {
 public:
  // Throws Error for an undefined rule, left recursion, a language without texts, and grammars
  // beyond the limits (limits.h). `operation` begins the messages.
  CompiledGrammar(const GrammarParts& parts, int root, const char* operation);

  // A text of either.
  static CompiledGrammar choice(const CompiledGrammar& one, const CompiledGrammar& other);
  // A text of the first followed by one of the second.
  static CompiledGrammar sequence(const CompiledGrammar& first, const CompiledGrammar& second);

  struct Rule {
    int start = -1;         // a position
    bool nullable = false;  // it matches the empty text
    bool alive = false;     // it matches some text
    std::string name = {};
  };
  const Rule& rule(int index) const { return rules_[static_cast<std::size_t>(index)]; }
  int n_rules() const { return static_cast<int>(rules_.size()); }
  int root() const { return root_; }
  const Position& position(int index) const { return positions_[static_cast<std::size_t>(index)]; }
  int n_positions() const { return static_cast<int>(positions_.size()); }
  const ByteSet& set(int index) const { return sets_[static_cast<std::size_t>(index)]; }

 private:
  class Compiler;
  CompiledGrammar() = default;
  void append(const CompiledGrammar& other);
  int add_call(int rule, int next);
  void add_root(const char* name, int start, bool nullable);

  std::vector<Rule> rules_;
  std::vector<Position> positions_;
  std::vector<ByteSet> sets_;
  int root_ = -1;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_GRAMMAR_H_
