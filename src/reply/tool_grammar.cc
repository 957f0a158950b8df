// SPDX-License-Identifier: Apache-2.0
#include "reply/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "outrider/error.h"
#include "reply/argument_grammar.h"
#include "reply/calls/call_reader.h"
#include "reply/calls/python_literals.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

using Kind = GrammarPart::Kind;

GrammarPart arguments_of(const Tool& tool) {
  return {.kind = Kind::schema, .text = tool.parameters.dump()};
}

constexpr const char* kNumberOfCall = "number";

// Any number of digits.
void add_number(ToolGrammar& grammar) {
  GrammarRule digit{.name = "digit", .choices = {}};
  for (char c = '0'; c <= '9'; ++c) digit.choices.push_back({text_part(std::string(1, c))});
  grammar.rules.push_back(std::move(digit));
  grammar.rules.push_back(
      {.name = kNumberOfCall,
       .choices = {{rule_part("digit")}, {rule_part("digit"), rule_part(kNumberOfCall)}}});
}

GrammarSequence json_call(const CallFormat& format, const Tool& tool) {
  return {text_part(fmt::format("{{{}: {}, {}: ", as_json_string(format.name_key),
                                as_json_string(tool.name), as_json_string(format.arguments_key))),
          arguments_of(tool), text_part("}")};
}

// {"name": .., "arguments": ..}: in a list, alone, or each between markers.
void describe_json(const CallFormat& format, ToolGrammar& grammar) {
  const std::string& begin = format.begins.front();
  if (format.in_list) {
    grammar.before = {marker_part(begin), text_part("[")};
    grammar.between = {text_part(", ")};
    grammar.after = {text_part("]")};
    if (!format.end.empty()) grammar.after.push_back(marker_part(format.end));
  } else if (format.may_be_bare) {
    grammar.between = {text_part("; ")};
  } else {
    grammar.before = {marker_part(begin), text_part("\n")};
    grammar.after = {text_part("\n"), marker_part(format.end)};
    grammar.between = {text_part("\n"), marker_part(format.end), text_part("\n"),
                       marker_part(begin), text_part("\n")};
  }
}

// DeepSeek's call without the markers around all calls.
GrammarSequence fenced_call(const CallFormat& format, const Tool& tool) {
  if (!format.name_prefix.empty()) {
    return {marker_part(format.call_begin),
            text_part(format.name_prefix + tool.name + ":"),
            rule_part(kNumberOfCall),
            marker_part(format.separator),
            arguments_of(tool),
            marker_part(format.call_end)};
  }
  if (format.quote.empty()) {
    return {marker_part(format.call_begin), text_part(tool.name), marker_part(format.separator),
            arguments_of(tool), marker_part(format.call_end)};
  }
  return {marker_part(format.call_begin),
          text_part("function"),
          marker_part(format.separator),
          text_part(tool.name + "\n" + format.quote + "\n"),
          arguments_of(tool),
          text_part("\n```"),
          marker_part(format.call_end)};
}

// Whether the form writes arguments one by one instead of as a JSON object.
bool has_single_arguments(const CallFormat& format) {
  switch (format.syntax) {
    case CallSyntax::paired:
    case CallSyntax::python:
    case CallSyntax::bareword:
      return true;
    case CallSyntax::tagged:  // or as an object, if calls begin with just a function's tag
      return format.begins.size() > 1;
    default:
      return false;
  }
}

// The text around the calls of such a form.
void describe_single_arguments(const CallFormat& format, ToolGrammar& grammar) {
  const GrammarPart begin = marker_part(format.begins.front());
  const GrammarPart end = marker_part(format.end);
  switch (format.syntax) {
    case CallSyntax::tagged:
      grammar.before = {begin, text_part("\n")};
      grammar.after = {text_part("\n"), end};
      grammar.between = {text_part("\n"), end, text_part("\n"), begin, text_part("\n")};
      break;
    case CallSyntax::paired:
      grammar.before = {begin};
      grammar.after = {end};
      grammar.between = {end, rule_part(kOptionalLineEnd), begin};
      grammar.rules.push_back({.name = kOptionalLineEnd, .choices = {{}, {text_part("\n")}}});
      break;
    case CallSyntax::python:
      if (format.may_be_bare) {
        grammar.before = {text_part("[")};
        grammar.after = {text_part("]")};
      } else if (format.in_list) {
        grammar.before = {begin, text_part("[")};
        grammar.after = {text_part("]"), end};
      } else {
        grammar.before = {begin};
        grammar.after = {end};
      }
      grammar.between = {text_part(format.in_list ? ", " : "\n")};
      break;
    default:
      break;  // each call has its own markers
  }
}

void check_tool_name(const CallFormat& format, const std::string& name) {
  bool good = is_call_name(name);
  if (format.syntax == CallSyntax::python) {
    good = good && is_python_name(name);
  } else {
    good = good && name.find_first_of("<>{[\"") == std::string::npos;
  }
  if (good) return;
  throw Error("tool choice", "tools", "names that the model's form of calls can spell",
              "'" + name + "'");
}

GrammarSequence single_arguments_call(const CallFormat& format, const Tool& tool,
                                      ToolGrammar& grammar) {
  check_tool_name(format, tool.name);
  GrammarSequence sequence;
  GrammarSequence after;
  switch (format.syntax) {
    case CallSyntax::tagged:
      sequence = {text_part("<function=" + tool.name + ">\n")};
      after = {text_part("</function>")};
      break;
    case CallSyntax::paired:
      sequence = {text_part(tool.name), rule_part(kOptionalLineEnd)};
      break;
    case CallSyntax::python:
      sequence = {text_part(tool.name + "(")};
      after = {text_part(")")};
      break;
    default:
      sequence = {marker_part(format.begins.front()), text_part("call:" + tool.name + "{")};
      after = {text_part("}"), marker_part(format.end)};
      break;
  }
  const GrammarSequence arguments = grammar_of_arguments(format, tool, grammar);
  sequence.insert(sequence.end(), arguments.begin(), arguments.end());
  sequence.insert(sequence.end(), after.begin(), after.end());
  return sequence;
}

GrammarSequence call_of(const ReplyFormat& format, const Tool& tool) {
  const CallFormat& calls = format.calls;
  switch (calls.syntax) {
    case CallSyntax::named:
      return {marker_part(calls.begins.front()), text_part(tool.name), marker_part(calls.separator),
              arguments_of(tool)};
    case CallSyntax::fenced:
      return fenced_call(calls, tool);
    case CallSyntax::channels: {
      const ChannelFormat& channels = format.channels;
      return {marker_part(channels.channel),
              text_part("commentary to=" + channels.functions + tool.name + " "),
              marker_part(channels.constrain),
              text_part("json"),
              marker_part(channels.message),
              arguments_of(tool)};
    }
    case CallSyntax::tagged:
      return {text_part(calls.begins.front() + tool.name + ">"), arguments_of(tool),
              text_part("</function>")};
    default:
      return json_call(calls, tool);
  }
}

// A class of all characters but these.
std::string not_one_of(const std::string& characters) {
  std::string out = "[^";
  for (const char c : characters) {
    if (c == '\\' || c == ']' || c == '[' || c == '-' || c == '^') out += '\\';
    out += c;
  }
  return out + "]";
}

// Text without the marker, then the marker, as GBNF. The text consists of other characters, and of
// proper prefixes of the marker followed by a character that does not continue it. Further prefixes
// may precede, since the marker may begin again after each.
std::string gbnf_up_to(const std::string& end) {
  if (end.find(end.front(), 1) != std::string::npos) {
    throw Error("write grammar", "closing marker", "one that has its first character once", end);
  }
  std::string beginnings;
  std::string broken;
  for (std::size_t n = 1; n < end.size(); ++n) {
    const std::string begin = as_json_string(end.substr(0, n));
    fmt::format_to(std::back_inserter(beginnings), "{}{}", n == 1 ? "" : " | ", begin);
    fmt::format_to(std::back_inserter(broken), "{}{} {}", n == 1 ? "" : " | ", begin,
                   not_one_of(std::string{end.front(), end[n]}));
  }
  return fmt::format("( {0} | ( {1} )* ( {2} ) )* ( {1} )* {3}",
                     not_one_of(std::string(1, end.front())), beginnings, broken,
                     as_json_string(end));
}

// Writes rules and numbers the schemas that they use.
class GbnfWriter {
 public:
  explicit GbnfWriter(const ToolGrammar& grammar) : parts_(grammar.documents.size()) {}

  void append(const GrammarSequence& sequence) {
    if (sequence.empty()) gbnf_.text += " \"\"";
    for (const GrammarPart& part : sequence) {
      gbnf_.text += ' ';
      switch (part.kind) {
        case Kind::schema:
          gbnf_.schemas.push_back({fmt::format("arguments-{}", gbnf_.schemas.size()), part.text});
          gbnf_.text += gbnf_.schemas.back().rule;
          break;
        case Kind::part_of_schema:
          gbnf_.text += rule_of(part);
          break;
        case Kind::up_to:
          gbnf_.text += gbnf_up_to(part.text);
          break;
        case Kind::rule:
          gbnf_.text += part.text;
          break;
        default:  // GBNF's strings share these escapes with JSON's
          gbnf_.text += as_json_string(part.text);
      }
    }
  }
  void append(std::string_view words) { gbnf_.text += words; }
  Gbnf take(const ToolGrammar& grammar) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].empty()) continue;
      GrammarSchema schema{.rule = "", .schema = grammar.documents[i]};
      for (const auto& [reference, rule] : parts_[i]) schema.parts.push_back({rule, reference});
      gbnf_.schemas.push_back(std::move(schema));
    }
    return std::move(gbnf_);
  }

 private:
  const std::string& rule_of(const GrammarPart& part) {
    const auto [at, is_new] = parts_[part.document].try_emplace(part.text);
    if (is_new) at->second = fmt::format("value-{}", n_parts_++);
    return at->second;
  }

  Gbnf gbnf_;
  std::vector<std::map<std::string, std::string>> parts_;  // each document's rules by place
  int n_parts_ = 0;
};

}  // namespace

ToolGrammar make_tool_grammar(const ReplyFormat& format, const ToolSet& tools,
                              const ToolGrammarOptions& options) {
  constexpr const char* kOperation = "tool choice";
  const CallFormat& calls = format.calls;
  if (calls.syntax == CallSyntax::none) {
    throw Error(kOperation, "form of calls", "one that is known, to hold the model to a call",
                "none");
  }
  ToolGrammar grammar;
  for (const Tool& tool : tools.all()) {
    if (!options.name.empty() && tool.name != options.name) continue;
    grammar.calls.push_back(has_single_arguments(calls)
                                ? single_arguments_call(calls, tool, grammar)
                                : call_of(format, tool));
  }
  if (grammar.calls.empty()) {
    throw Error(kOperation, "tools",
                options.name.empty() ? "at least one" : "one named " + options.name, "none");
  }
  if (has_single_arguments(calls)) describe_single_arguments(calls, grammar);
  if (calls.syntax == CallSyntax::json) describe_json(calls, grammar);
  if (calls.syntax == CallSyntax::fenced) {
    grammar.before = {marker_part(calls.begins.front())};
    grammar.after = {marker_part(calls.end)};
    if (!calls.name_prefix.empty()) add_number(grammar);
  }
  // The end of a message to a function ends the reply.
  grammar.several = options.parallel && calls.syntax != CallSyntax::channels;
  return grammar;
}

Gbnf gbnf_of(const ToolGrammar& grammar) {
  GbnfWriter writer(grammar);
  writer.append("root ::=");
  writer.append(grammar.before);
  writer.append(" call");
  if (grammar.several) {
    writer.append(" (");
    writer.append(grammar.between);
    writer.append(" call )*");
  }
  writer.append(grammar.after);
  writer.append("\ncall ::=");
  for (std::size_t i = 0; i < grammar.calls.size(); ++i) {
    writer.append(fmt::format("{} call-{}", i == 0 ? "" : " |", i));
  }
  for (std::size_t i = 0; i < grammar.calls.size(); ++i) {
    writer.append(fmt::format("\ncall-{} ::=", i));
    writer.append(grammar.calls[i]);
  }
  for (const GrammarRule& rule : grammar.rules) {
    writer.append("\n" + rule.name + " ::=");
    for (std::size_t i = 0; i < rule.choices.size(); ++i) {
      if (i > 0) writer.append(" |");
      writer.append(rule.choices[i]);
    }
  }
  writer.append("\n");
  return writer.take(grammar);
}

std::string gbnf_of_reasoning(const ReplyFormat& format, bool has_begun) {
  const std::string& end = format.reasoning.end;
  if (end.empty()) return {};
  const std::string behind =
      format.channels.empty() ? "[ \\n]*" : as_json_string(format.channels.start + "assistant");
  const std::string whole = gbnf_up_to(end) + " " + behind;
  if (has_begun) return "root ::= " + whole + "\n";
  return fmt::format("root ::= ( {} {} )?\n", as_json_string(format.reasoning.begin), whole);
}

}  // namespace outrider
