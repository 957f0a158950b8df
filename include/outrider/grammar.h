// SPDX-License-Identifier: Apache-2.0
// Constrained generation: JSON by a schema, a grammar, or a regular expression.
//
//   auto schema = outrider::Grammar::from_json_schema(R"({"type": "object", ...})");
//   auto result = generator.generate(prompt, {.grammar = schema});
//
// With any sampling, drafter and rule, each generated token continues a text of the form, and an
// end token comes only where the form allows an end. A text that ended by itself
// (FinishReason::stop) has the form. docs/grammar.md describes the supported syntax.
#ifndef OUTRIDER_GRAMMAR_H_
#define OUTRIDER_GRAMMAR_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

class CompiledGrammar;

// A rule defined by a part of a JSON Schema.
struct GrammarSchemaPart {
  std::string rule;       // its name
  std::string reference;  // the part as a `$ref`: "#/properties/x"
};

// Rules of a grammar that a JSON Schema defines.
struct GrammarSchema {
  std::string rule;    // the name of the rule for the whole schema
  std::string schema;  // JSON
  // Rules for parts of the schema; references in a part are resolved in the whole schema.
  std::vector<GrammarSchemaPart> parts = {};
};

// A compiled form, for any number of concurrent requests. Immutable; thread-safe. A batch caches
// vocabulary masks, within bounds, for all requests with the same Grammar object. Two objects made
// from the same text share nothing.
class Grammar {
 public:
  // Each function throws Error, with the problem and its place, for malformed or unsupported input,
  // forms that no text has, left recursion, and input that is too large.

  // A grammar in llama.cpp's notation (GBNF) whose start rule is `root`. schemas: rules that it
  // uses and does not define.
  static std::shared_ptr<const Grammar> from_gbnf(std::string_view text,
                                                  std::span<const GrammarSchema> schemas = {});
  // JSON that is valid by a JSON Schema. An unsupported keyword is an Error.
  static std::shared_ptr<const Grammar> from_json_schema(std::string_view text);
  // Texts that a regular expression (of ECMA-262) matches whole.
  static std::shared_ptr<const Grammar> from_regex(std::string_view text);
  // Any JSON object.
  static std::shared_ptr<const Grammar> any_json_object();
  // A text of either form.
  static std::shared_ptr<const Grammar> choice(const Grammar& one, const Grammar& other);
  // A text of the first form followed by one of the second.
  static std::shared_ptr<const Grammar> sequence(const Grammar& first, const Grammar& second);

  ~Grammar();

  // For internal use.
  const std::shared_ptr<const CompiledGrammar>& compiled() const { return compiled_; }

 private:
  explicit Grammar(std::shared_ptr<const CompiledGrammar> compiled);

  std::shared_ptr<const CompiledGrammar> compiled_;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_H_
