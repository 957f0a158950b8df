// SPDX-License-Identifier: Apache-2.0
// Building blocks of grammars, shared by the readers of all notations.
#ifndef OUTRIDER_GRAMMAR_PARTS_H_
#define OUTRIDER_GRAMMAR_PARTS_H_

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/code_points.h"

namespace outrider {

using ByteSet = std::bitset<256>;
inline constexpr int kUnlimited = -1;

// Parts of a grammar, built from one another, and rules, which may be called before they are
// defined. A part may be used in many places. Not thread-safe.
class GrammarParts {
 public:
  enum class Kind { nothing, bytes, sequence, choice, repetition, call };
  struct Part {
    Kind kind = Kind::nothing;
    ByteSet bytes = {};           // for bytes: any one of them
    std::vector<int> parts = {};  // for a sequence, a choice, a repetition (one)
    int rule = -1;                // for a call
    int min = 0;                  // for a repetition
    int max = 0;                  // for a repetition, or kUnlimited
  };
  struct Rule {
    std::string name;
    int part = -1;  // -1: not yet defined
  };

  int nothing();                           // the empty text
  int never() { return choice({}); }       // no text
  int bytes(const ByteSet& set);           // one byte
  int text(std::string_view bytes);        // these bytes
  int character(const CodePoints& set);    // one character, in UTF-8
  int sequence(std::vector<int> parts);    // one after the other
  int choice(std::vector<int> parts);      // any one of them
  int repeat(int part, int min, int max);  // min to max times; max may be kUnlimited
  int optional(int part) { return repeat(part, 0, 1); }
  int call(int rule);

  int declare(std::string name);  // declares a rule
  void define(int rule, int part);
  // Makes a rule for a part that is used in many places.
  int shared(std::string name, int part);  // returns a call of the rule

  const Part& part(int index) const { return parts_[static_cast<std::size_t>(index)]; }
  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  int add(Part part);
  int alternatives(std::vector<ByteSequence> sequences);

  std::vector<Part> parts_;
  std::vector<Rule> rules_;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_PARTS_H_
