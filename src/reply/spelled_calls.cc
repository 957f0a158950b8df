#include "reply/spelled_calls.h"

#include <cstddef>

#include "reply/json_words.h"
#include "reply/tool_grammar.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Python's constants, and all else as JSON spells it, which Python reads alike.
void append_python(const Json& value, std::string& out) {
  if (value.is_null()) {
    out += "None";
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      append_python(value[i], out);
    }
    out += ']';
  } else if (value.is_object()) {
    out += '{';
    for (const auto& [key, member] : value.items()) {
      if (out.back() != '{') out += ", ";
      out += as_json_string(key) + ": ";
      append_python(member, out);
    }
    out += '}';
  } else {
    out += json_text(value);
  }
}

std::string python_call(const SpelledCall& call) {
  std::string out = call.name + "(";
  for (const auto& [key, value] : call.arguments.items()) {
    if (out.back() != '(') out += ", ";
    out += key + "=";
    append_python(value, out);
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

void append(const GrammarSequence& sequence, const Json& arguments, SpelledCalls& out) {
  for (const GrammarPart& part : sequence) {
    if (part.kind == GrammarPart::Kind::marker) {
      append_marker(part.text, out);
    } else {
      out.text += part.kind == GrammarPart::Kind::schema ? json_text(arguments) : part.text;
    }
  }
}

}  // namespace

std::optional<SpelledCalls> spelled_calls(const ReplyFormat& format,
                                          std::span<const SpelledCall> calls) {
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
  // The grammar of such a form has a hole for the arguments and no choice.
  SpelledCalls out;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Json tools = Json::array({{{"name", calls[i].name}}});
    const ToolGrammar grammar = make_tool_grammar(format, ToolSet(json_text(tools)));
    append(i == 0 ? grammar.before : grammar.between, {}, out);
    append(grammar.calls.front(), calls[i].arguments, out);
    if (i + 1 == calls.size()) append(grammar.after, {}, out);
  }
  return out;
}

}  // namespace outrider
