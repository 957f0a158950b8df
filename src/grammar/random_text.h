// SPDX-License-Identifier: Apache-2.0
// For tests: random texts of a grammar.
#ifndef OUTRIDER_GRAMMAR_RANDOM_TEXT_H_
#define OUTRIDER_GRAMMAR_RANDOM_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "grammar/limits.h"
#include "grammar/texts_of.h"

namespace outrider {

// The shortest text from a state to an end.
inline std::string shortest_rest(ByteAutomaton& automaton, int state) {
  struct Step {
    int state;
    std::size_t before;
    char byte;
  };
  std::vector<Step> steps = {{state, 0, 0}};
  std::set<int> seen = {state};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    automaton.allow_steps(kMaxMaskSteps);
    if (automaton.accepts(steps[i].state)) {
      std::string rest;
      for (std::size_t at = i; at != 0; at = steps[at].before) rest += steps[at].byte;
      return {rest.rbegin(), rest.rend()};
    }
    for (int byte = 0; byte < 256; ++byte) {
      const int next = automaton.step(steps[i].state, static_cast<std::uint8_t>(byte));
      if (next < 0 || !seen.insert(next).second) continue;
      steps.push_back({next, i, static_cast<char>(byte)});
    }
  }
  throw std::logic_error("a state from which no text ends");
}

// A random text of the language; after some bytes, the shortest way to its end.
inline std::string random_text(const TextsOf& texts, std::mt19937& random) {
  constexpr std::size_t kLong = 80;
  ByteAutomaton& automaton = texts.automaton();
  int state = automaton.start();
  std::string text;
  for (;;) {
    automaton.allow_steps(kMaxMaskSteps);
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.step(state, static_cast<std::uint8_t>(byte)) >= 0) {
        bytes += static_cast<char>(byte);
      }
    }
    if (automaton.accepts(state) && (bytes.empty() || random() % 3 == 0)) return text;
    if (text.size() > kLong || bytes.empty()) return text + shortest_rest(automaton, state);
    char next = bytes[random() % bytes.size()];
    // Prefers JSON's signs, because letters outnumber them.
    const std::size_t sign = bytes.find_first_of("\"\\{}[]:,");
    if (random() % 4 == 0 && sign != std::string::npos) next = bytes[sign];
    text += next;
    state = automaton.step(state, static_cast<std::uint8_t>(next));
  }
}

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_RANDOM_TEXT_H_
