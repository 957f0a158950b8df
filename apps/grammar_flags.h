// Flags that give the form of a text.
#ifndef OUTRIDER_APPS_GRAMMAR_FLAGS_H_
#define OUTRIDER_APPS_GRAMMAR_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "outrider/grammar.h"

namespace outrider::cli {

struct GrammarFlags {
  std::string grammar;      // a file; empty: not given, and so on
  std::string json_schema;  // a file
  std::string regex;
};

// --grammar, --json-schema and --regex, of which one may be given.
void add_grammar_flags(CLI::App& app, GrammarFlags& flags);
// What they name; null where none is given. Throws Error, naming the flag's file.
std::shared_ptr<const Grammar> read_grammar(const GrammarFlags& flags);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_GRAMMAR_FLAGS_H_
