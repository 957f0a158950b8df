// JSON Schema: docs/grammar.md lists the keywords that are supported.
#ifndef OUTRIDER_GRAMMAR_JSON_SCHEMA_H_
#define OUTRIDER_GRAMMAR_JSON_SCHEMA_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/parts.h"

namespace outrider {

// Texts of JSON that are valid by the schema: not all of them, since values have one order of
// members and few ways to be spelled. Throws Error naming what is not supported. Thread-safe.
CompiledGrammar read_json_schema(std::string_view text);
// The same as rules among others, one for each of these places of the document, which are written
// as `$ref` writes them ("#": all of it); returns them.
std::vector<int> add_json_schema(std::string_view text, std::span<const std::string> places,
                                 GrammarParts& parts);
// Any JSON object.
CompiledGrammar any_json_object();

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_JSON_SCHEMA_H_
