// A grammar ready to judge texts: an automaton over bytes with a stack.
//
// Each rule is a graph of positions between two bytes. A text is in the language if it leads from
// the root rule's start to its end, where calls of rules push the position to go on from and ends
// of rules pop it. Invariants of a compiled grammar: from every position that is alive the end of
// its rule can be reached, so that whatever a matcher has let pass can be completed; no rule comes
// back to itself before a byte was read (left recursion). Immutable; thread-safe.
#ifndef OUTRIDER_GRAMMAR_GRAMMAR_H_
#define OUTRIDER_GRAMMAR_GRAMMAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/parts.h"

namespace outrider {

// A place within a rule, and what may be done there.
struct Position {
  enum class Kind : std::uint8_t {
    bytes,   // read a byte of `set`, go on at `next`
    either,  // go on at `next` or at `other`
    call,    // pass through the rule, go on at `next`
    repeat,  // pass through the rule `least` to `most` times, go on at `next`
    end,     // of the rule
  };
  Kind kind = Kind::end;
  bool alive = false;  // the rule's end can be reached
  int next = -1;
  int other = -1;  // of either: a position; of bytes: the set; of call and repeat: the rule
  int least = 0;   // of repeat
  int most = 0;    // of repeat; kUnlimited: any number
};

class CompiledGrammar {
 public:
  // Throws Error for a rule that is not defined, left recursion, a language without texts, and
  // grammars beyond the limits (limits.h). `operation` begins the messages.
  CompiledGrammar(const GrammarParts& parts, int root, const char* operation);

  // A text of one or of the other.
  static CompiledGrammar choice(const CompiledGrammar& one, const CompiledGrammar& other);
  // A text of the first, and then one of the second.
  static CompiledGrammar sequence(const CompiledGrammar& first, const CompiledGrammar& second);

  struct Rule {
    int start = -1;         // a position
    bool nullable = false;  // the empty text passes through it
    bool alive = false;     // some text does
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
