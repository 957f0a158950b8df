// SPDX-License-Identifier: Apache-2.0
// JSON Schema: docs/grammar.md lists the supported keywords.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_JSON_SCHEMA_H_
#define OUTRIDER_GRAMMAR_SCHEMA_JSON_SCHEMA_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/parts.h"

namespace outrider {

// JSON texts that are valid by the schema. Not all of them: members have one order, and values few
// spellings. Throws Error with what is not supported. Thread-safe.
CompiledGrammar read_json_schema(std::string_view text);
// The same as rules among others, one for each of these places of the document, given in the
// notation of `$ref` ("#": all of it). Returns the rules.
std::vector<int> add_json_schema(std::string_view text, std::span<const std::string> places,
                                 GrammarParts& parts);
// Any JSON object.
CompiledGrammar any_json_object();

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_JSON_SCHEMA_H_
