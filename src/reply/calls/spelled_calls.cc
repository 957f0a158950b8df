// SPDX-License-Identifier: Apache-2.0
#include "reply/calls/spelled_calls.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/calls/python_literals.h"
#include "reply/tool_grammar.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

// The spelling of a value: as JSON, or with Python's constants and the rest as JSON, which Python
// reads the same way.
struct Spelling {
  const char* null;
  const char* yes;
  const char* no;
};
constexpr Spelling kJson = {"null", "true", "false"};
constexpr Spelling kPython = {"None", "True", "False"};

void append(const Json& value, const Spelling& spelling, std::string& out) {
  if (value.is_null()) {
    out += spelling.null;
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? spelling.yes : spelling.no;
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      append(value[i], spelling, out);
    }
    out += ']';
  } else if (value.is_object()) {
    out += '{';
    bool is_first = true;
    for (const auto& [key, member] : value.items()) {
      if (!std::exchange(is_first, false)) out += ", ";
      append(Json(key), spelling, out);
      out += ": ";
      append(member, spelling, out);
    }
    out += '}';
  } else {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

std::string json_text(const Json& value) {
  std::string out;
  append(value, kJson, out);
  return out;
}

// Whether all names of a call can be written in the form.
bool can_be_spelled(const CallFormat& format, const SpelledCall& call) {
  if (call.name.empty()) return false;
  if (format.syntax == CallSyntax::json) return true;  // written as a JSON string
  if (format.syntax != CallSyntax::python) return is_call_name(call.name);
  if (!is_python_name(call.name)) return false;
  const auto members = call.arguments.items();
  return !call.arguments.is_object() ||
         std::all_of(members.begin(), members.end(),
                     [](const auto& member) { return is_python_name(member.key()); });
}

std::string python_call(const SpelledCall& call) {
  std::string out = call.name + "(";
  if (call.arguments.is_string()) return out + call.arguments.get<std::string>() + ")";
  bool is_first = true;
  for (const auto& [key, value] : call.arguments.items()) {
    if (!std::exchange(is_first, false)) out += ", ";
    out += key + "=";
    append(value, kPython, out);
  }
  return out + ")";
}

void append_marker(const std::string& marker, SpelledCalls& out) {
  out.markers.push_back({out.text.size(), out.text.size() + marker.size()});
  out.text += marker;
}

SpelledCalls python_calls(const CallFormat& format, std::span<const SpelledCall> calls) {
  SpelledCalls out;
  if (!format.may_be_bare) append_marker(format.begins.front(), out);
  if (format.in_list) out.text += '[';
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) out.text += format.in_list ? ", " : "\n";
    out.text += python_call(calls[i]);
  }
  if (format.in_list) out.text += ']';
  if (!format.may_be_bare) append_marker(format.end, out);
  return out;
}

// `number`: the call's number, the only rule used by a form with a placeholder for the arguments.
void append(const GrammarSequence& sequence, const Json& arguments, std::size_t number,
            SpelledCalls& out) {
  for (const GrammarPart& part : sequence) {
    switch (part.kind) {
      case GrammarPart::Kind::marker:
        append_marker(part.text, out);
        break;
      case GrammarPart::Kind::schema:
        out.text += arguments.is_string() ? arguments.get<std::string>() : json_text(arguments);
        break;
      case GrammarPart::Kind::rule:
        out.text += std::to_string(number);
        break;
      default:
        out.text += part.text;
    }
  }
}

}  // namespace

std::optional<SpelledCalls> spelled_calls(const ReplyFormat& format,
                                          std::span<const SpelledCall> calls) {
  for (const SpelledCall& call : calls) {
    if (!can_be_spelled(format.calls, call)) return std::nullopt;
  }
  switch (format.calls.syntax) {
    case CallSyntax::python:
      return python_calls(format.calls, calls);
    case CallSyntax::json:
    case CallSyntax::named:
    case CallSyntax::fenced:
      break;
    case CallSyntax::tagged:
      if (format.calls.begins.size() == 1) break;
      return std::nullopt;
    default:
      return std::nullopt;
  }
  // The grammar of such a form has a placeholder for the arguments and no choice.
  SpelledCalls out;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Json tools = Json::array({{{"name", calls[i].name}}});
    const ToolGrammar grammar = make_tool_grammar(format, ToolSet(json_text(tools)));
    append(i == 0 ? grammar.before : grammar.between, {}, i, out);
    append(grammar.calls.front(), calls[i].arguments, i, out);
    if (i + 1 == calls.size()) append(grammar.after, {}, i, out);
  }
  return out;
}

}  // namespace outrider
