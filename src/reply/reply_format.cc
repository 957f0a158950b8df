// SPDX-License-Identifier: Apache-2.0
#include "reply/reply_format.h"

#include <algorithm>
#include <array>
#include <utility>

namespace outrider {
namespace {

ReplyFormat json_format(std::string name, std::string begin, std::string end, bool in_list) {
  ReplyFormat format;
  format.name = std::move(name);
  format.calls.syntax = CallSyntax::json;
  format.calls.begins = {std::move(begin)};
  format.calls.end = std::move(end);
  format.calls.in_list = in_list;
  return format;
}

ReplyFormat hermes() { return json_format("hermes", "<tool_call>", "</tool_call>", false); }
ReplyFormat smollm() { return json_format("smollm", "<tool_call>", "</tool_call>", true); }
ReplyFormat granite() { return json_format("granite", "<|tool_call|>", "", true); }
ReplyFormat phi() { return json_format("phi", "<|tool_call|>", "<|/tool_call|>", true); }
ReplyFormat mistral() { return json_format("mistral", "[TOOL_CALLS]", "", true); }
ReplyFormat nemotron() { return json_format("nemotron", "<TOOLCALL>", "</TOOLCALL>", true); }
ReplyFormat firefunction() { return json_format("firefunction", "functools", "", true); }

ReplyFormat command() {
  ReplyFormat format = json_format("command", "<|START_ACTION|>", "<|END_ACTION|>", true);
  format.calls.name_key = "tool_name";
  format.calls.arguments_key = "parameters";
  return format;
}

ReplyFormat llama() {
  ReplyFormat format = json_format("llama", "<|python_tag|>", "", false);
  format.calls.may_be_bare = true;
  format.calls.arguments_key = "parameters";
  return format;
}

ReplyFormat mistral_named() {
  ReplyFormat format;
  format.name = "mistral-named";
  format.calls.syntax = CallSyntax::named;
  format.calls.begins = {"[TOOL_CALLS]"};
  format.calls.separator = "[ARGS]";
  format.calls.id_separator = "[CALL_ID]";
  return format;
}

ReplyFormat deepseek() {
  ReplyFormat format;
  format.name = "deepseek";
  format.calls.syntax = CallSyntax::fenced;
  format.calls.begins = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"};
  format.calls.end = "<｜tool▁calls▁end｜>";
  format.calls.call_begin = "<｜tool▁call▁begin｜>";
  format.calls.call_end = "<｜tool▁call▁end｜>";
  format.calls.separator = "<｜tool▁sep｜>";
  format.calls.quote = "```json";
  return format;
}

ReplyFormat deepseek_plain() {
  ReplyFormat format = deepseek();
  format.name = "deepseek-plain";
  format.calls.quote = {};
  return format;
}

ReplyFormat kimi() {
  ReplyFormat format;
  format.name = "kimi";
  format.calls.syntax = CallSyntax::fenced;
  format.calls.begins = {"<|tool_calls_section_begin|>", "<|tool_call_begin|>"};
  format.calls.end = "<|tool_calls_section_end|>";
  format.calls.call_begin = "<|tool_call_begin|>";
  format.calls.call_end = "<|tool_call_end|>";
  format.calls.separator = "<|tool_call_argument_begin|>";
  format.calls.name_prefix = "functions.";
  return format;
}

ReplyFormat qwen3_coder() {
  ReplyFormat format;
  format.name = "qwen3-coder";
  format.calls.syntax = CallSyntax::tagged;
  format.calls.begins = {"<tool_call>", "<function="};
  format.calls.end = "</tool_call>";
  return format;
}

ReplyFormat functionary() {
  ReplyFormat format;
  format.name = "functionary";
  format.calls.syntax = CallSyntax::tagged;
  format.calls.begins = {"<function="};
  return format;
}

ReplyFormat gemma() {
  ReplyFormat format;
  format.name = "gemma";
  format.calls.syntax = CallSyntax::python;
  format.calls.begins = {"```tool_code"};
  format.calls.end = "```";
  format.calls.may_be_bare = true;
  format.calls.in_list = true;
  return format;
}

ReplyFormat lfm2() {
  ReplyFormat format;
  format.name = "lfm2";
  format.calls.syntax = CallSyntax::python;
  format.calls.begins = {"<|tool_call_start|>"};
  format.calls.end = "<|tool_call_end|>";
  format.calls.in_list = true;
  return format;
}

ReplyFormat olmo3() {
  ReplyFormat format;
  format.name = "olmo3";
  format.calls.syntax = CallSyntax::python;
  format.calls.begins = {"<function_calls>"};
  format.calls.end = "</function_calls>";
  return format;
}

ReplyFormat glm() {
  ReplyFormat format;
  format.name = "glm";
  format.calls.syntax = CallSyntax::paired;
  format.calls.begins = {"<tool_call>"};
  format.calls.end = "</tool_call>";
  format.calls.key = {"<arg_key>", "</arg_key>"};
  format.calls.value = {"<arg_value>", "</arg_value>"};
  return format;
}

ReplyFormat bareword(std::string name, std::string begin, std::string end, std::string quote) {
  ReplyFormat format;
  format.name = std::move(name);
  format.calls.syntax = CallSyntax::bareword;
  format.calls.begins = {std::move(begin)};
  format.calls.end = std::move(end);
  format.calls.quote = std::move(quote);
  return format;
}

ReplyFormat function_gemma() {
  return bareword("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>");
}
ReplyFormat gemma4() { return bareword("gemma4", "<|tool_call>", "<tool_call|>", "<|\"|>"); }

// OpenAI's "harmony" (gpt-oss, 2025).
ReplyFormat harmony() {
  ReplyFormat format;
  format.name = "harmony";
  format.calls.syntax = CallSyntax::channels;
  format.channels = {.start = "<|start|>",
                     .channel = "<|channel|>",
                     .constrain = "<|constrain|>",
                     .message = "<|message|>",
                     .ends = {"<|end|>", "<|call|>", "<|return|>"},
                     .reasoning = "analysis",
                     .functions = "functions."};
  format.reasoning = {"<|channel|>analysis<|message|>", "<|end|>"};
  return format;
}

// Signs of a form. The first matching line of the table wins, so a spelling that is part of another
// one comes after it.
struct Sign {
  ReplyFormat (*format)();
  std::vector<std::string_view> all_of;  // texts in the template
  std::vector<std::string_view> none_of = {};
};

const std::vector<Sign>& signs() {
  static const std::vector<Sign> table = {
      {harmony, {"<|start|>", "<|channel|>", "<|message|>"}},
      {deepseek, {"<｜tool▁calls▁begin｜>", "```json"}},
      {deepseek_plain, {"<｜tool▁calls▁begin｜>"}},
      {kimi, {"<|tool_calls_section_begin|>"}},
      {mistral_named, {"[TOOL_CALLS]", "[ARGS]"}},
      {mistral, {"[TOOL_CALLS]"}},
      {function_gemma, {"<start_function_call>"}},
      {gemma4, {"<|tool_call>", "call:"}},
      {qwen3_coder, {"<function=", "<parameter="}},
      {functionary, {"<function=", "</function>"}},
      {command, {"<|START_ACTION|>", "tool_name"}},
      {phi, {"<|/tool_call|>"}},
      {phi, {"<|tool|>", "<|/tool|>"}},
      {granite, {"<|tool_call|>"}},
      {lfm2, {"<|tool_call_start|>"}},
      {lfm2, {"<|tool_list_start|>"}},  // LFM2's first template, with calls in the content
      {olmo3, {"<function_calls>", "</function_calls>"}},
      {glm, {"<arg_key>", "<arg_value>"}},
      {nemotron, {"<TOOLCALL>", "</TOOLCALL>"}},
      {smollm, {"<tool_call>[", "</tool_call>"}},
      {hermes, {"<tool_call>", "</tool_call>"}},
      {smollm, {"SmolLM"}},  // SmolLM2's template, which leaves tools to the system message
      {firefunction, {"functools["}},
      {llama, {"<|start_header_id|>", "\"parameters\": "}, {">>>"}},
      {gemma, {"<start_of_turn>"}},
  };
  return table;
}

// The marks of reasoning in known families. The closing marker decides: some templates contain only
// that, where they cut reasoning out of earlier replies.
constexpr std::array<std::pair<const char*, const char*>, 6> kReasoning = {{
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
    {"<thought>", "</thought>"},
    {"<|begin_of_thought|>", "<|end_of_thought|>"},
}};

constexpr std::array<std::pair<const char*, const char*>, 3> kAnswer = {{
    {"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
    {"<response>", "</response>"},
    {"<|begin_of_solution|>", "<|end_of_solution|>"},
}};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool holds(const Sign& sign, std::string_view text) {
  const auto in_text = [text](std::string_view part) { return contains(text, part); };
  return std::all_of(sign.all_of.begin(), sign.all_of.end(), in_text) &&
         std::none_of(sign.none_of.begin(), sign.none_of.end(), in_text);
}

bool has_token(const Tokenizer* tokenizer, std::string_view spelling) {
  if (tokenizer == nullptr) return false;
  const auto id = tokenizer->find(spelling);
  return id && tokenizer->is_added(*id);
}

}  // namespace

std::vector<std::string> ReplyFormat::markers() const {
  std::vector<std::string> all = calls.begins;
  const auto add = [&all](const std::string& marker) {
    if (!marker.empty() && std::find(all.begin(), all.end(), marker) == all.end()) {
      all.push_back(marker);
    }
  };
  for (const std::string& marker :
       {calls.end, calls.call_begin, calls.call_end, calls.separator, calls.id_separator,
        calls.quote, calls.key.begin, calls.key.end, calls.value.begin, calls.value.end,
        reasoning.begin, reasoning.end, answer.begin, answer.end, channels.start, channels.channel,
        channels.constrain, channels.message}) {
    add(marker);
  }
  for (const std::string& marker : channels.ends) add(marker);
  return all;
}

ReplyFormat find_reply_format(std::string_view chat_template, const Tokenizer* tokenizer) {
  ReplyFormat format;
  const auto sign = std::find_if(signs().begin(), signs().end(),
                                 [&](const Sign& each) { return holds(each, chat_template); });
  if (sign != signs().end()) {
    format = sign->format();
  } else if (has_token(tokenizer, "<|tool_call|>")) {
    format = has_token(tokenizer, "<|/tool_call|>") ? phi() : granite();
  } else if (has_token(tokenizer, "<|tool_call_start|>")) {
    format = lfm2();
  } else if (has_token(tokenizer, "<|tool_calls_section_begin|>")) {
    format = kimi();
  }
  // By the closing marker in the template, otherwise by both in the vocabulary.
  for (const auto& [begin, end] : kReasoning) {
    if (!format.channels.empty()) break;  // channels mark reasoning themselves
    const bool known =
        contains(chat_template, end) || (has_token(tokenizer, begin) && has_token(tokenizer, end));
    if (!known) continue;
    format.reasoning = {begin, end};
    break;
  }
  for (const auto& [begin, end] : kAnswer) {
    if (!contains(chat_template, begin) || !contains(chat_template, end)) continue;
    format.answer = {begin, end};
    break;
  }
  format.template_takes_tools = contains(chat_template, "tools");
  return format;
}

std::optional<ReplyFormat> reply_format_named(std::string_view name) {
  if (name == "none") return ReplyFormat{};
  for (const Sign& sign : signs()) {
    ReplyFormat format = sign.format();
    if (format.name == name) return format;
  }
  return std::nullopt;
}

std::vector<TokenId> marker_tokens(const ReplyFormat& format, const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens;
  for (const std::string& marker : format.markers()) {
    if (const auto id = tokenizer.find(marker)) tokens.push_back(*id);
  }
  return tokens;
}

bool opens_reasoning(const ReplyFormat& format, std::string_view prompt) {
  if (format.reasoning.begin.empty()) return false;
  const std::size_t last = prompt.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos &&
         prompt.substr(0, last + 1).ends_with(format.reasoning.begin);
}

}  // namespace outrider
