// Regular expressions: docs/grammar.md describes the part of ECMA-262's that is read.
#ifndef OUTRIDER_GRAMMAR_REGEX_H_
#define OUTRIDER_GRAMMAR_REGEX_H_

#include <functional>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/parts.h"

namespace outrider {

// The texts that the expression matches whole. Throws Error naming line and column. Thread-safe.
CompiledGrammar read_regex(std::string_view text);

// Where an expression without ^ at its beginning or $ at its end may begin and end.
enum class Anchors {
  implied,  // at the text's ends
  stated,   // anywhere, as a search would have it
};
// A part for the texts that the expression matches; character: a part for one character of a set,
// spelled as the texts are.
int regex_part(std::string_view text, Anchors anchors, GrammarParts& parts,
               const std::function<int(const CodePoints&)>& character, const char* operation);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_REGEX_H_
