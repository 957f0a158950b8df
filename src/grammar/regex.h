// SPDX-License-Identifier: Apache-2.0
// Regular expressions: docs/grammar.md describes the supported part of ECMA-262.
#ifndef OUTRIDER_GRAMMAR_REGEX_H_
#define OUTRIDER_GRAMMAR_REGEX_H_

#include <functional>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/parts.h"

namespace outrider {

// The texts that the expression matches whole. Throws Error with line and column. Thread-safe.
CompiledGrammar read_regex(std::string_view text);

// Where an expression without ^ at its beginning or $ at its end may begin and end.
enum class Anchors {
  implied,  // at the text's ends
  stated,   // anywhere, as in a search
};
// A part for the texts that the expression matches. character: makes a part for one character of a
// set, in the spelling of the texts.
int regex_part(std::string_view text, Anchors anchors, GrammarParts& parts,
               const std::function<int(const CodePoints&)>& character, const char* operation);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_REGEX_H_
