// SPDX-License-Identifier: Apache-2.0
#include "reply/argument_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/schema/schema_forms.h"
#include "grammar/schema/schema_reference.h"
#include "outrider/error.h"
#include "reply/argument_schema.h"
#include "reply/calls/call_reader.h"
#include "reply/calls/python_literals.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;
using Kind = GrammarPart::Kind;

constexpr const char* kOperation = "tool choice";

// A schema, and its place in the tool's.
struct Place {
  ArgumentSchema schema = {};
  std::string reference = {};  // "": no place, as the argument has no schema
};

// The keywords of a schema that restrict values, except these; "" if there are none.
std::string keyword_besides(const Json& schema, std::initializer_list<std::string_view> known) {
  const Json says = SchemaForms::without_annotations(schema);
  for (const auto& [keyword, value] : says.items()) {
    if (std::find(known.begin(), known.end(), keyword) == known.end()) return keyword;
  }
  return "";
}

// The first name in `required` that `properties` lacks; "" if there is none.
std::string required_besides_properties(const Json& schema) {
  const auto required = schema.find("required");
  if (required == schema.end() || !required->is_array()) return "";
  const auto properties = schema.find("properties");
  for (const Json& each : *required) {
    if (!each.is_string()) continue;
    const std::string& name = each.get_ref<const std::string&>();
    const bool is_there = properties != schema.end() && properties->contains(name);
    if (!is_there) return name;
  }
  return "";
}

bool says_nothing(const Json& schema) {
  return schema == Json(true) ||
         (schema.is_object() && SchemaForms::without_annotations(schema).empty());
}

// Writes the rules of one tool's arguments.
class ArgumentRules {
 public:
  ArgumentRules(const CallFormat& format, const Tool& tool, ToolGrammar& grammar)
      : format_(format), tool_(tool), grammar_(grammar), document_(grammar.documents.size()) {
    grammar_.documents.push_back(tool.parameters.dump());
  }

  GrammarSequence all() {
    check_parameters();
    const ParametersSchema parameters = parameters_schema(tool_);
    const Place place{{parameters.schema, &tool_.parameters}, parameters.reference};
    switch (format_.syntax) {
      case CallSyntax::python:
        return members(place, ", ");
      case CallSyntax::bareword:
        return members(place, ",");
      default:
        return members(place, "");
    }
  }

 private:
  // Refuses keywords that could require arguments which would be left out.
  void check_parameters() const {
    const Json* at = &tool_.parameters;
    const Json* const last = parameters_schema(tool_).schema;
    while (at != last) {
      refuse_keyword(keyword_besides(*at, {"$ref", "type"}));
      at = referred_schema(tool_.parameters, at->at("$ref").get<std::string>());
    }
    refuse_keyword(keyword_besides(*at, {"type", "properties", "required", "additionalProperties",
                                         "propertyNames", "nullable"}));
    const std::string name = required_besides_properties(*at);
    if (!name.empty() && at->value("additionalProperties", Json()) == Json(false)) {
      throw Error(kOperation, tool_.name, "required arguments that its properties name",
                  "'" + name + "'");
    }
  }

  void refuse_keyword(const std::string& keyword) const {
    if (keyword.empty()) return;
    throw Error(kOperation, tool_.name,
                "parameters by properties, required and additionalProperties alone, for the "
                "model's form of calls writes arguments one by one",
                "'" + keyword + "'");
  }

  GrammarPart add_rule(std::vector<GrammarSequence> choices) {
    std::string name = fmt::format("part-{}", grammar_.rules.size());
    grammar_.rules.push_back({.name = name, .choices = std::move(choices)});
    return rule_part(std::move(name));
  }

  // Any JSON text that the schema allows.
  GrammarPart json_of(const Place& place) const {
    if (place.reference.empty()) return {.kind = Kind::schema, .text = "true"};
    return {.kind = Kind::part_of_schema, .text = place.reference, .document = document_};
  }

  // The properties of an object in order, then other required ones. Optional ones may be left out.
  GrammarSequence members(const Place& of, const std::string& separator) {
    const Json& schema = *of.schema.schema;
    std::set<std::string> required;
    if (const auto names = schema.find("required"); names != schema.end() && names->is_array()) {
      for (const Json& each : *names) {
        if (each.is_string()) required.insert(each.get<std::string>());
      }
    }
    struct Member {
      GrammarPart part;
      bool is_required;
    };
    std::vector<Member> all;
    if (const auto found = schema.find("properties"); found != schema.end() && found->is_object()) {
      const std::string properties = reference_of_member(of.reference, "properties");
      for (const auto& [key, value] : found->items()) {
        const Place place{{&value, of.schema.root}, reference_of_member(properties, key)};
        all.push_back({add_rule({member(key, place)}), required.erase(key) > 0});
      }
    }
    Place others;
    if (const auto found = schema.find("additionalProperties");
        found != schema.end() && found->is_object()) {
      others = {{&*found, of.schema.root},
                reference_of_member(of.reference, "additionalProperties")};
    }
    for (const std::string& key : required) all.push_back({add_rule({member(key, others)}), true});
    if (separator.empty()) {
      GrammarSequence sequence;
      for (const Member& each : all) {
        sequence.push_back(each.is_required ? each.part : add_rule({{}, {each.part}}));
      }
      return sequence;
    }
    // What may follow, built from the last on: after other members, and without any.
    GrammarSequence behind;
    GrammarSequence first;
    for (std::size_t i = all.size(); i-- > 0;) {
      GrammarSequence with = {all[i].part};
      with.insert(with.end(), behind.begin(), behind.end());
      GrammarSequence separated = {text_part(separator)};
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
    throw Error(kOperation, tool_.name, "arguments whose names its form of calls can spell",
                "'" + key + "'");
  }

  GrammarSequence member(const std::string& key, const Place& place) {
    switch (format_.syntax) {
      case CallSyntax::tagged:
        check_key(key, is_call_name(key) && key.find('>') == std::string::npos);
        return tagged(key, place);
      case CallSyntax::paired:
        check_key(key, is_call_name(key) && key.find('<') == std::string::npos);
        return paired(key, place);
      case CallSyntax::python:
        check_key(key, is_python_name(key) && key.size() <= kLongestName_bytes);
        return {text_part(key + "="), python(place)};
      default: {
        check_key(key, is_call_name(key) && key.find_first_of(":{}[],\"<") == std::string::npos);
        GrammarSequence sequence = {text_part(key + ":")};
        const GrammarSequence value = bareword(place);
        sequence.insert(sequence.end(), value.begin(), value.end());
        return sequence;
      }
    }
  }

  // JSON, or Python's constants if the argument is one, as templates write earlier calls. In lists
  // and objects only JSON's constants.
  GrammarPart python(const Place& place) {
    std::vector<GrammarSequence> choices = {{json_of(place)}};
    const auto add = [&](const char* word) { choices.push_back({text_part(word)}); };
    const std::vector<const Json*> listed = listed_values(place.schema);
    for (const Json* const value : listed) {
      if (value->is_boolean()) add(value->get<bool>() ? "True" : "False");
      if (value->is_null()) add("None");
    }
    const unsigned kinds = value_kinds(place.schema);
    // All kinds may also mean that part of the schema was not read.
    const bool is_known =
        kinds != kAnyKind || place.schema.schema == nullptr || says_nothing(*place.schema.schema);
    if (listed.empty() && is_known) {
      if ((kinds & kBoolean) != 0) {
        add("True");
        add("False");
      }
      if ((kinds & kNull) != 0) add("None");
    }
    return choices.size() == 1 ? choices.front().front() : add_rule(std::move(choices));
  }

  // The values that a schema lists, as plain text: texts as they are, others as JSON unless equal
  // to one of the texts. Leaves out those that contain the end mark; each with the text around it.
  GrammarPart one_of(const std::vector<const Json*>& values, const std::string& end,
                     const std::string& before, const std::string& after) {
    std::set<std::string> texts;
    for (const Json* const value : values) {
      if (value->is_string()) texts.insert(value->get<std::string>());
    }
    std::vector<GrammarSequence> choices;
    std::string last;
    for (const Json* const value : values) {
      last = value->is_string() ? value->get<std::string>() : value->dump();
      if (!value->is_string() && texts.contains(last)) continue;
      if (last.find(end) == std::string::npos)
        choices.push_back({text_part(before + last + after)});
    }
    if (choices.empty()) {
      throw Error(kOperation, tool_.name, "texts that its form of calls can spell",
                  "'" + last + "'");
    }
    return add_rule(std::move(choices));
  }

  GrammarSequence tagged(const std::string& key, const Place& place) {
    const std::string end = "</parameter>";
    GrammarSequence sequence = {text_part("<parameter=" + key + ">\n")};
    const std::vector<const Json*> listed = listed_values(place.schema);
    if (!may_be_text(place.schema)) {
      sequence.insert(sequence.end(), {json_of(place), text_part("\n" + end + "\n")});
    } else if (!listed.empty()) {
      sequence.insert(sequence.end(), {one_of(listed, end, "", "\n" + end), text_part("\n")});
    } else {
      sequence.insert(sequence.end(), {up_to_part(end), text_part("\n")});
    }
    return sequence;
  }

  GrammarSequence paired(const std::string& key, const Place& place) {
    const GrammarPart line_end = rule_part(kOptionalLineEnd);
    GrammarSequence sequence = {marker_part(format_.key.begin), text_part(key),
                                marker_part(format_.key.end), line_end,
                                marker_part(format_.value.begin)};
    const std::vector<const Json*> listed = listed_values(place.schema);
    if (!may_be_text(place.schema)) {
      sequence.insert(sequence.end(), {json_of(place), marker_part(format_.value.end)});
    } else if (!listed.empty()) {
      sequence.push_back(one_of(listed, format_.value.end, "", format_.value.end));
    } else {
      sequence.push_back(up_to_part(format_.value.end));
    }
    sequence.push_back(line_end);
    return sequence;
  }

  // Texts between the model's own quotes, if schemas are simple; otherwise JSON, which the parser
  // reads too. References are JSON as well, since they may be recursive.
  GrammarSequence bareword(const Place& place) {
    if (is_text(place.schema)) {
      const std::vector<const Json*> listed = listed_values(place.schema);
      if (!listed.empty()) return {one_of(listed, format_.quote, format_.quote, format_.quote)};
      return {marker_part(format_.quote), up_to_part(format_.quote)};
    }
    if (place.schema.schema == nullptr || !place.schema.schema->is_object()) {
      return {json_of(place)};
    }
    const Json& schema = *place.schema.schema;
    const Json type = schema.value("type", Json());
    if (type == "object" && schema.contains("properties") &&
        keyword_besides(schema, {"type", "properties", "required", "additionalProperties"})
            .empty() &&
        required_besides_properties(schema).empty()) {
      GrammarSequence sequence = {text_part("{")};
      const GrammarSequence inner = members(place, ",");
      sequence.insert(sequence.end(), inner.begin(), inner.end());
      sequence.push_back(text_part("}"));
      return sequence;
    }
    if (type == "array" && schema.contains("items") &&
        keyword_besides(schema, {"type", "items"}).empty()) {
      const GrammarPart item = add_rule({bareword(
          {{&schema["items"], place.schema.root}, reference_of_member(place.reference, "items")})});
      const std::string more = fmt::format("part-{}", grammar_.rules.size());
      grammar_.rules.push_back(
          {.name = more, .choices = {{}, {text_part(","), item, rule_part(more)}}});
      return {
          add_rule({{text_part("[]")}, {text_part("["), item, rule_part(more), text_part("]")}})};
    }
    return {json_of(place)};
  }

  const CallFormat& format_;
  const Tool& tool_;
  ToolGrammar& grammar_;
  std::size_t document_;  // the index of the tool's schema in the grammar
};

}  // namespace

GrammarSequence grammar_of_arguments(const CallFormat& format, const Tool& tool,
                                     ToolGrammar& grammar) {
  return ArgumentRules(format, tool, grammar).all();
}

}  // namespace outrider
