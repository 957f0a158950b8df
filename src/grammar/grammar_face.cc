// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "grammar/byte_automaton.h"
#include "grammar/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/regex.h"
#include "grammar/schema/json_schema.h"
#include "outrider/error.h"
#include "outrider/grammar.h"

namespace outrider {

Grammar::Grammar(std::shared_ptr<const CompiledGrammar> compiled) : compiled_(std::move(compiled)) {
  // Checks the start: a grammar beyond the limits before the first byte always is.
  const ByteAutomaton automaton(compiled_);
  if (automaton.start() != ByteAutomaton::kDead) return;
  throw Error("make grammar", "first byte",
              "fewer ways, or fewer rules within each other, to begin", "more than the limits");
}

Grammar::~Grammar() = default;

std::shared_ptr<const Grammar> Grammar::from_gbnf(std::string_view text,
                                                  std::span<const GrammarSchema> schemas) {
  return std::shared_ptr<const Grammar>(
      new Grammar(std::make_shared<const CompiledGrammar>(read_gbnf(text, schemas))));
}

std::shared_ptr<const Grammar> Grammar::sequence(const Grammar& first, const Grammar& second) {
  return std::shared_ptr<const Grammar>(new Grammar(std::make_shared<const CompiledGrammar>(
      CompiledGrammar::sequence(*first.compiled(), *second.compiled()))));
}

std::shared_ptr<const Grammar> Grammar::choice(const Grammar& one, const Grammar& other) {
  return std::shared_ptr<const Grammar>(new Grammar(std::make_shared<const CompiledGrammar>(
      CompiledGrammar::choice(*one.compiled(), *other.compiled()))));
}

std::shared_ptr<const Grammar> Grammar::from_json_schema(std::string_view text) {
  return std::shared_ptr<const Grammar>(
      new Grammar(std::make_shared<const CompiledGrammar>(read_json_schema(text))));
}

std::shared_ptr<const Grammar> Grammar::from_regex(std::string_view text) {
  return std::shared_ptr<const Grammar>(
      new Grammar(std::make_shared<const CompiledGrammar>(read_regex(text))));
}

std::shared_ptr<const Grammar> Grammar::any_json_object() {
  return std::shared_ptr<const Grammar>(
      new Grammar(std::make_shared<const CompiledGrammar>(outrider::any_json_object())));
}

}  // namespace outrider
