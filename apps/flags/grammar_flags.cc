// SPDX-License-Identifier: Apache-2.0
#include "apps/flags/grammar_flags.h"

#include "apps/cli/flag_values.h"

namespace outrider::cli {

void add_grammar_flags(CLI::App& app, GrammarFlags& flags) {
  constexpr const char* kGroup = "Form of the text (one of these; docs/grammar.md)";
  CLI::Option* grammar = add_path(app, "--grammar", flags.grammar, "FILE",
                                  "A grammar as llama.cpp writes it (GBNF); its rule root")
                             ->group(kGroup);
  CLI::Option* schema =
      add_path(app, "--json-schema", flags.json_schema, "FILE", "JSON that is valid by this schema")
          ->group(kGroup)
          ->excludes(grammar);
  add_filled_text(app, "--regex", flags.regex, "TEXT", "a regular expression",
                  "What this regular expression matches whole")
      ->group(kGroup)
      ->excludes(grammar)
      ->excludes(schema);
}

std::shared_ptr<const Grammar> read_grammar(const GrammarFlags& flags) {
  if (!flags.grammar.empty()) return Grammar::from_gbnf(read_text(flags.grammar));
  if (!flags.json_schema.empty()) return Grammar::from_json_schema(read_text(flags.json_schema));
  return flags.regex.empty() ? nullptr : Grammar::from_regex(flags.regex);
}

}  // namespace outrider::cli
