// Texts of a given form: JSON by a schema, a grammar, a regular expression.
//
//   auto schema = outrider::Grammar::from_json_schema(R"({"type": "object", ...})");
//   auto result = generator.generate(prompt, {.grammar = schema});
//
// Whatever the sampling, the drafter and the rule, a generated text goes on within the form at each
// of its tokens, and an end token comes where the form allows an end: cut off by nothing
// (FinishReason::stop), it is a text of the form. docs/grammar.md describes what is read.
#ifndef OUTRIDER_GRAMMAR_H_
#define OUTRIDER_GRAMMAR_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

class CompiledGrammar;

// A rule that is given by a part of a JSON Schema.
struct GrammarSchemaPart {
  std::string rule;       // its name
  std::string reference;  // where it stands, in the words of `$ref`: "#/properties/x"
};

// Rules of a grammar that are given by a JSON Schema.
struct GrammarSchema {
  std::string rule;    // the name of the whole schema's
  std::string schema;  // JSON
  // Those of its parts, whose own references are looked up in the whole schema.
  std::vector<GrammarSchemaPart> parts = {};
};

// A form, ready for any number of requests at once. Immutable; thread-safe. What is found out while
// texts are written (masks over the vocabulary) a batch remembers for all of its requests that have
// the same Grammar, within bounds: those that are made from the same text share nothing.
class Grammar {
 public:
  // Each throws Error for what is malformed or not supported, naming it and its place; for forms
  // without a text; for left recursion; and for what is too large.

  // A grammar as llama.cpp writes it (GBNF); the rule `root` is the form. schemas: rules that it
  // uses and does not define.
  static std::shared_ptr<const Grammar> from_gbnf(std::string_view text,
                                                  std::span<const GrammarSchema> schemas = {});
  // JSON that is valid by a JSON Schema. A keyword that is not supported is an Error.
  static std::shared_ptr<const Grammar> from_json_schema(std::string_view text);
  // What a regular expression (of ECMA-262) matches whole.
  static std::shared_ptr<const Grammar> from_regex(std::string_view text);
  // Any JSON object.
  static std::shared_ptr<const Grammar> any_json_object();
  // A text of either form.
  static std::shared_ptr<const Grammar> choice(const Grammar& one, const Grammar& other);
  // A text of the first form, and then one of the second.
  static std::shared_ptr<const Grammar> sequence(const Grammar& first, const Grammar& second);

  ~Grammar();

  // For the engine's own use.
  const std::shared_ptr<const CompiledGrammar>& compiled() const { return compiled_; }

 private:
  explicit Grammar(std::shared_ptr<const CompiledGrammar> compiled);

  std::shared_ptr<const CompiledGrammar> compiled_;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_H_
