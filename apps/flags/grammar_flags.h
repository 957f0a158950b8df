// SPDX-License-Identifier: Apache-2.0
// Flags that constrain the form of a text.
#ifndef OUTRIDER_APPS_FLAGS_GRAMMAR_FLAGS_H_
#define OUTRIDER_APPS_FLAGS_GRAMMAR_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "outrider/grammar.h"

namespace outrider::cli {

struct GrammarFlags {
  std::string grammar;      // a file; empty: not given, as for the flags below
  std::string json_schema;  // a file
  std::string regex;
};

// --grammar, --json-schema and --regex, of which at most one may be given.
void add_grammar_flags(CLI::App& app, GrammarFlags& flags);
// The grammar of the given flag; null if none is given. Throws Error with the name of the flag's
// file.
std::shared_ptr<const Grammar> read_grammar(const GrammarFlags& flags);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_FLAGS_GRAMMAR_FLAGS_H_
