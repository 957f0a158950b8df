// SPDX-License-Identifier: Apache-2.0
// Grammars in llama.cpp's notation (GBNF): docs/grammar.md describes the supported syntax.
#ifndef OUTRIDER_GRAMMAR_GBNF_H_
#define OUTRIDER_GRAMMAR_GBNF_H_

#include <span>
#include <string_view>

#include "grammar/grammar.h"
#include "outrider/grammar.h"

namespace outrider {

// The rule `root` is the language. Throws Error with line and column. Thread-safe.
CompiledGrammar read_gbnf(std::string_view text);
// The same with rules that the text does not define.
CompiledGrammar read_gbnf(std::string_view text, std::span<const GrammarSchema> schemas);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_GBNF_H_
