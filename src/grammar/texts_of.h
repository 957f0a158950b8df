// SPDX-License-Identifier: Apache-2.0
// For tests: membership in a grammar's language.
#ifndef OUTRIDER_GRAMMAR_TEXTS_OF_H_
#define OUTRIDER_GRAMMAR_TEXTS_OF_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "grammar/byte_automaton.h"
#include "grammar/limits.h"

namespace outrider {

class TextsOf {
 public:
  explicit TextsOf(CompiledGrammar grammar)
      : automaton_(std::make_shared<const CompiledGrammar>(std::move(grammar))) {}

  // The state after a text; below 0 if no text of the language begins with it.
  int behind(std::string_view text) const {
    int state = automaton_.start();
    for (const char c : text) {
      if (state < 0) break;
      automaton_.allow_steps(kMaxMaskSteps);
      state = automaton_.step(state, static_cast<std::uint8_t>(c));
    }
    return state;
  }
  bool begins(std::string_view text) const { return behind(text) >= 0; }
  bool has(std::string_view text) const {
    const int state = behind(text);
    return state >= 0 && automaton_.accepts(state);
  }
  ByteAutomaton& automaton() const { return automaton_; }

 private:
  mutable ByteAutomaton automaton_;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_TEXTS_OF_H_
