#include "reply/tool_grammar.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "outrider/error.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

using Kind = GrammarPart::Kind;

GrammarPart text(std::string words) { return {.kind = Kind::text, .text = std::move(words)}; }
GrammarPart marker(std::string words) { return {.kind = Kind::marker, .text = std::move(words)}; }
GrammarPart arguments_of(const Tool& tool) {
  return {.kind = Kind::schema, .text = tool.parameters.dump()};
}

GrammarSequence json_call(const CallFormat& format, const Tool& tool) {
  return {text(fmt::format("{{{}: {}, {}: ", as_json_string(format.name_key),
                           as_json_string(tool.name), as_json_string(format.arguments_key))),
          arguments_of(tool), text("}")};
}

// {"name": .., "arguments": ..}: in a list, bare, or each between markers.
void describe_json(const CallFormat& format, ToolGrammar& grammar) {
  const std::string& begin = format.begins.front();
  if (format.in_list) {
    grammar.before = {marker(begin), text("[")};
    grammar.between = {text(", ")};
    grammar.after = {text("]")};
    if (!format.end.empty()) grammar.after.push_back(marker(format.end));
  } else if (format.may_be_bare) {
    grammar.between = {text("; ")};
  } else {
    grammar.before = {marker(begin), text("\n")};
    grammar.after = {text("\n"), marker(format.end)};
    grammar.between = {text("\n"), marker(format.end), text("\n"), marker(begin), text("\n")};
  }
}

// Everything of DeepSeek's calls but what is around all of them.
GrammarSequence fenced_call(const CallFormat& format, const Tool& tool) {
  if (format.quote.empty()) {
    return {marker(format.call_begin), text(tool.name), marker(format.separator),
            arguments_of(tool), marker(format.call_end)};
  }
  return {marker(format.call_begin), text("function"),
          marker(format.separator),  text(tool.name + "\n" + format.quote + "\n"),
          arguments_of(tool),        text("\n```"),
          marker(format.call_end)};
}

GrammarSequence call_of(const ReplyFormat& format, const Tool& tool) {
  const CallFormat& calls = format.calls;
  switch (calls.syntax) {
    case CallSyntax::named:
      return {marker(calls.begins.front()), text(tool.name), marker(calls.separator),
              arguments_of(tool)};
    case CallSyntax::fenced:
      return fenced_call(calls, tool);
    case CallSyntax::channels: {
      const ChannelFormat& channels = format.channels;
      return {
          marker(channels.channel),   text("commentary to=" + channels.functions + tool.name + " "),
          marker(channels.constrain), text("json"),
          marker(channels.message),   arguments_of(tool)};
    }
    case CallSyntax::tagged:
      return {text(calls.begins.front() + tool.name + ">"), arguments_of(tool),
              text("</function>")};
    default:
      return json_call(calls, tool);
  }
}

void append_gbnf(const GrammarSequence& sequence, const std::string& hole, std::string& out) {
  if (sequence.empty()) out += " \"\"";
  for (const GrammarPart& part : sequence) {
    out += ' ';
    // GBNF's strings know the escapes that JSON's have in common with it.
    out += part.kind == Kind::schema ? hole : as_json_string(part.text);
  }
}

}  // namespace

ToolGrammar make_tool_grammar(const ReplyFormat& format, const ToolSet& tools,
                              const ToolGrammarOptions& options) {
  constexpr const char* kOperation = "tool choice";
  const CallFormat& calls = format.calls;
  // Of the tagged forms, the one that opens with a function's tag alone has arguments in JSON.
  const bool has_json = calls.syntax == CallSyntax::json || calls.syntax == CallSyntax::named ||
                        calls.syntax == CallSyntax::fenced ||
                        calls.syntax == CallSyntax::channels ||
                        (calls.syntax == CallSyntax::tagged && calls.begins.size() == 1);
  if (!has_json) {
    throw Error(kOperation, "form of calls \"" + format.name + "\"",
                "one with arguments in JSON, to hold the model to a call", "one without");
  }
  ToolGrammar grammar;
  for (const Tool& tool : tools.all()) {
    if (!options.name.empty() && tool.name != options.name) continue;
    grammar.calls.push_back(call_of(format, tool));
  }
  if (grammar.calls.empty()) {
    throw Error(kOperation, "tools",
                options.name.empty() ? "at least one" : "one named " + options.name, "none");
  }
  if (calls.syntax == CallSyntax::json) describe_json(calls, grammar);
  if (calls.syntax == CallSyntax::fenced) {
    grammar.before = {marker(calls.begins.front())};
    grammar.after = {marker(calls.end)};
  }
  // What ends a message to a function ends the reply.
  grammar.several = options.parallel && calls.syntax != CallSyntax::channels;
  return grammar;
}

std::string gbnf_of(const ToolGrammar& grammar) {
  std::string out = "root ::=";
  append_gbnf(grammar.before, "", out);
  out += " call";
  if (grammar.several) {
    out += " (";
    append_gbnf(grammar.between, "", out);
    out += " call )*";
  }
  append_gbnf(grammar.after, "", out);
  out += "\ncall ::=";
  for (std::size_t i = 0; i < grammar.calls.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{} call-{}", i == 0 ? "" : " |", i);
  }
  for (std::size_t i = 0; i < grammar.calls.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "\ncall-{} ::=", i);
    append_gbnf(grammar.calls[i], fmt::format("arguments-{}", i), out);
  }
  return out += '\n';
}

// Text without the marker, and then the marker: `part` is a beginning of it behind which it begins
// anew, and the text is made of other characters, and of such beginnings with a character behind
// them that does not go on with the marker.
std::string gbnf_of_reasoning(const ReplyFormat& format, bool has_begun) {
  const std::string& end = format.reasoning.end;
  if (end.empty()) return {};
  if (end.find(end.front(), 1) != std::string::npos) {
    throw Error("reasoning grammar", "closing marker", "one that has its first character once",
                end);
  }
  // A class of all characters but these.
  const auto not_one_of = [](const std::string& characters) {
    std::string out = "[^";
    for (const char c : characters) {
      if (c == '\\' || c == ']' || c == '[' || c == '-' || c == '^') out += '\\';
      out += c;
    }
    return out + "]";
  };
  std::string beginnings;
  std::string broken;
  for (std::size_t n = 1; n < end.size(); ++n) {
    const std::string begin = as_json_string(end.substr(0, n));
    fmt::format_to(std::back_inserter(beginnings), "{}{}", n == 1 ? "" : " | ", begin);
    fmt::format_to(std::back_inserter(broken), "{}{} {}", n == 1 ? "" : " | ", begin,
                   not_one_of(std::string{end.front(), end[n]}));
  }
  const std::string whole =
      fmt::format("( {} | part* ( {} ) )* part* {} [ \\n]*",
                  not_one_of(std::string(1, end.front())), broken, as_json_string(end));
  const std::string root =
      has_begun ? whole : fmt::format("( {} {} )?", as_json_string(format.reasoning.begin), whole);
  return fmt::format("root ::= {}\npart ::= {}\n", root, beginnings);
}

}  // namespace outrider
