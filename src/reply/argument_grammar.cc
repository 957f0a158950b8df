#include "reply/argument_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "reply/call_reader.h"
#include "reply/json_words.h"
#include "reply/python_literals.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;
using Kind = GrammarPart::Kind;

GrammarPart text(std::string words) { return {.kind = Kind::text, .text = std::move(words)}; }
GrammarPart marker(std::string words) { return {.kind = Kind::marker, .text = std::move(words)}; }
GrammarPart up_to(std::string words) { return {.kind = Kind::up_to, .text = std::move(words)}; }
GrammarPart rule(std::string name) { return {.kind = Kind::rule, .text = std::move(name)}; }

// The schema of a part as a document of its own: with the definitions that it may refer to.
GrammarPart json_of(const ArgumentSchema& of) {
  Json schema = *without_references(of);
  for (const char* const definitions : {"$defs", "definitions"}) {
    if (!schema.is_object() || schema.contains(definitions)) continue;
    const auto found = of.root->find(definitions);
    if (found != of.root->end()) schema[definitions] = *found;
  }
  return {.kind = Kind::schema, .text = schema.dump()};
}

// The texts that a schema takes, where it lists them and they are texts, all of them.
std::optional<std::vector<std::string>> listed_texts(const ArgumentSchema& of) {
  const Json& schema = *without_references(of);
  if (!schema.is_object()) return std::nullopt;
  Json values = Json::array();
  if (const auto found = schema.find("enum"); found != schema.end() && found->is_array()) {
    values = *found;
  } else if (const auto value = schema.find("const"); value != schema.end()) {
    values.push_back(*value);
  }
  std::vector<std::string> texts;
  for (const Json& value : values) {
    if (!value.is_string()) return std::nullopt;
    texts.push_back(value.get<std::string>());
  }
  if (texts.empty()) return std::nullopt;
  return texts;
}

bool has_only(const Json& schema, std::initializer_list<std::string_view> keywords) {
  return std::all_of(schema.items().begin(), schema.items().end(), [&](const auto& item) {
    return std::find(keywords.begin(), keywords.end(), item.key()) != keywords.end();
  });
}

// Writes the rules of one tool's arguments.
class ArgumentRules {
 public:
  ArgumentRules(const CallFormat& format, const Tool& tool, ToolGrammar& grammar)
      : format_(format), tool_(tool), grammar_(grammar) {}

  GrammarSequence all() {
    const ArgumentSchema schema{&tool_.parameters, &tool_.parameters};
    switch (format_.syntax) {
      case CallSyntax::python:
        return members(schema, ", ");
      case CallSyntax::bareword:
        return members(schema, ",");
      default:
        return members(schema, "");
    }
  }

 private:
  GrammarPart add_rule(std::vector<GrammarSequence> choices) {
    std::string name = fmt::format("part-{}", grammar_.rules.size());
    grammar_.rules.push_back({.name = name, .choices = std::move(choices)});
    return rule(std::move(name));
  }

  // The properties of an object in their order, those that are not required perhaps left out.
  GrammarSequence members(const ArgumentSchema& of, const std::string& separator) {
    const Json& schema = *without_references(of);
    const auto properties = schema.find("properties");
    if (properties == schema.end() || !properties->is_object()) return {};
    const auto required = schema.find("required");
    struct Member {
      GrammarPart part;
      bool is_required;
    };
    std::vector<Member> all;
    for (const auto& [key, value] : properties->items()) {
      const bool is_required =
          required != schema.end() && required->is_array() &&
          std::find(required->begin(), required->end(), key) != required->end();
      all.push_back({add_rule({member(key, {&value, of.root})}), is_required});
    }
    if (separator.empty()) {
      GrammarSequence sequence;
      for (const Member& each : all) {
        sequence.push_back(each.is_required ? each.part : add_rule({{}, {each.part}}));
      }
      return sequence;
    }
    // What may follow, from the last on: with something before it, and with nothing.
    GrammarSequence behind;
    GrammarSequence first;
    for (std::size_t i = all.size(); i-- > 0;) {
      GrammarSequence with = {all[i].part};
      with.insert(with.end(), behind.begin(), behind.end());
      GrammarSequence separated = {text(separator)};
      separated.insert(separated.end(), with.begin(), with.end());
      std::vector<GrammarSequence> first_choices = {std::move(with)};
      std::vector<GrammarSequence> behind_choices = {std::move(separated)};
      if (!all[i].is_required) {
        first_choices.push_back(first);
        behind_choices.push_back(behind);
      }
      first = {add_rule(std::move(first_choices))};
      behind = {add_rule(std::move(behind_choices))};
    }
    return first;
  }

  void check_key(const std::string& key, bool is_good) const {
    if (is_good) return;
    throw Error("tool choice", tool_.name, "arguments whose names its form of calls can spell",
                "'" + key + "'");
  }

  GrammarSequence member(const std::string& key, const ArgumentSchema& schema) {
    switch (format_.syntax) {
      case CallSyntax::tagged:
        check_key(key, is_call_name(key) && key.find('>') == std::string::npos);
        return tagged(key, schema);
      case CallSyntax::paired:
        check_key(key, is_call_name(key) && key.find('<') == std::string::npos);
        return paired(key, schema);
      case CallSyntax::python: {
        const bool good = !key.empty() && begins_python_name(key.front()) &&
                          std::all_of(key.begin(), key.end(), is_in_python_name);
        check_key(key, good && key.size() <= kLongestName_bytes);
        return {text(key + "="), json_of(schema)};
      }
      default: {
        check_key(key, is_call_name(key) && key.find_first_of(":{}[],\"<") == std::string::npos);
        GrammarSequence sequence = {text(key + ":")};
        const GrammarSequence value = bareword(schema);
        sequence.insert(sequence.end(), value.begin(), value.end());
        return sequence;
      }
    }
  }

  // Where nothing but a list of texts is meant, these (without those that hold what ends a text),
  // each with what stands around it.
  GrammarPart one_of(const std::vector<std::string>& texts, const std::string& end,
                     const std::string& before, const std::string& after) {
    std::vector<GrammarSequence> choices;
    for (const std::string& each : texts) {
      if (each.find(end) == std::string::npos) choices.push_back({text(before + each + after)});
    }
    if (choices.empty()) {
      throw Error("tool choice", tool_.name, "texts that its form of calls can spell",
                  "'" + texts.front() + "'");
    }
    return add_rule(std::move(choices));
  }

  GrammarSequence tagged(const std::string& key, const ArgumentSchema& schema) {
    const std::string end = "</parameter>";
    GrammarSequence sequence = {text("<parameter=" + key + ">\n")};
    if (!may_be_text(schema)) {
      sequence.insert(sequence.end(), {json_of(schema), text("\n" + end + "\n")});
    } else if (const auto texts = listed_texts(schema)) {
      sequence.insert(sequence.end(), {one_of(*texts, end, "", "\n" + end), text("\n")});
    } else {
      sequence.insert(sequence.end(), {up_to(end), text("\n")});
    }
    return sequence;
  }

  GrammarSequence paired(const std::string& key, const ArgumentSchema& schema) {
    GrammarSequence sequence = {marker(format_.key.begin), text(key), marker(format_.key.end),
                                text("\n"), marker(format_.value.begin)};
    if (!may_be_text(schema)) {
      sequence.insert(sequence.end(), {json_of(schema), marker(format_.value.end)});
    } else if (const auto texts = listed_texts(schema)) {
      sequence.push_back(one_of(*texts, format_.value.end, "", format_.value.end));
    } else {
      sequence.push_back(up_to(format_.value.end));
    }
    sequence.push_back(text("\n"));
    return sequence;
  }

  // Texts between the model's own quotes, as far as schemas are plain; JSON, which is read as well,
  // where they say more. What is referred to is JSON, too: it may refer to itself.
  GrammarSequence bareword(const ArgumentSchema& of) {
    if (is_text(of)) {
      if (const auto texts = listed_texts(of)) {
        return {one_of(*texts, format_.quote, format_.quote, format_.quote)};
      }
      return {marker(format_.quote), up_to(format_.quote)};
    }
    const Json& schema = *of.schema;
    if (!schema.is_object()) return {json_of(of)};
    const Json type = schema.value("type", Json());
    if (type == "object" && schema.contains("properties") &&
        has_only(schema, {"type", "properties", "required", "additionalProperties", "title",
                          "description", "default"})) {
      GrammarSequence sequence = {text("{")};
      const GrammarSequence inner = members(of, ",");
      sequence.insert(sequence.end(), inner.begin(), inner.end());
      sequence.push_back(text("}"));
      return sequence;
    }
    if (type == "array" && schema.contains("items") &&
        has_only(schema, {"type", "items", "title", "description", "default"})) {
      const GrammarPart item = add_rule({bareword({&schema["items"], of.root})});
      const std::string more = fmt::format("part-{}", grammar_.rules.size());
      grammar_.rules.push_back({.name = more, .choices = {{}, {text(","), item, rule(more)}}});
      return {add_rule({{text("[]")}, {text("["), item, rule(more), text("]")}})};
    }
    return {json_of(of)};
  }

  const CallFormat& format_;
  const Tool& tool_;
  ToolGrammar& grammar_;
};

}  // namespace

GrammarSequence grammar_of_arguments(const CallFormat& format, const Tool& tool,
                                     ToolGrammar& grammar) {
  return ArgumentRules(format, tool, grammar).all();
}

}  // namespace outrider
