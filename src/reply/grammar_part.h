// SPDX-License-Identifier: Apache-2.0
// Building blocks of grammars of calls.
#ifndef OUTRIDER_REPLY_GRAMMAR_PART_H_
#define OUTRIDER_REPLY_GRAMMAR_PART_H_

#include <string>
#include <utility>
#include <vector>

namespace outrider {

struct GrammarPart {
  enum class Kind {
    text,    // these bytes
    marker,  // these bytes; a single token if the vocabulary has a special token with this spelling
    schema,  // any JSON text of this schema
    part_of_schema,  // any JSON text of the part of a document with this reference
                     // ("#/properties/x")
    up_to,           // any text without these bytes, followed by them
    rule,            // the rule of that name (ToolGrammar::rules)
  };
  Kind kind = Kind::text;
  std::string text;           // the bytes, the schema, the reference, or the name
  std::size_t document = {};  // for part_of_schema: index into ToolGrammar::documents
};
using GrammarSequence = std::vector<GrammarPart>;

struct GrammarRule {
  std::string name;  // letters, digits and hyphens
  std::vector<GrammarSequence> choices;
};

inline GrammarPart text_part(std::string words) {
  return {.kind = GrammarPart::Kind::text, .text = std::move(words)};
}
inline GrammarPart marker_part(std::string words) {
  return {.kind = GrammarPart::Kind::marker, .text = std::move(words)};
}
inline GrammarPart up_to_part(std::string words) {
  return {.kind = GrammarPart::Kind::up_to, .text = std::move(words)};
}
inline GrammarPart rule_part(std::string name) {
  return {.kind = GrammarPart::Kind::rule, .text = std::move(name)};
}

}  // namespace outrider

#endif  // OUTRIDER_REPLY_GRAMMAR_PART_H_
