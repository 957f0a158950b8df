// SPDX-License-Identifier: Apache-2.0
#include "outrider/chat.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/batch/end_tokens.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRender = "render chat";

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// `text` if it is JSON that begins with that bracket. The text itself is passed on, not parsed and
// written again, so numbers keep their spelling.
std::string_view checked(std::string_view text, char bracket, std::string_view object,
                         std::string_view expected) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_kind = begin != std::string_view::npos && text[begin] == bracket;
  if (!is_kind || text.find('\0') != std::string_view::npos || !Json::accept(text)) {
    throw Error(kRender, object, expected, is_kind ? "a text with a syntax error" : "another text");
  }
  return text;
}

// The members of a JSON object without its braces.
std::string_view members(std::string_view object) {
  const std::size_t begin = object.find('{') + 1;
  return object.substr(begin, object.rfind('}') - begin);
}

void add_members(std::string_view object, std::string& out) {
  const std::string_view inner = members(object);
  if (inner.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
  out.append(", ").append(inner);
}

std::string piece_or_nothing(const Tokenizer& tokenizer, TokenId id) {
  return id == kNoToken ? std::string() : std::string(tokenizer.piece(id));
}

// What the template writes after the assistant's last message.
std::string behind_answer(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  const std::string said = "outrider:said";
  const ChatMessage probe[] = {{"user", "outrider:asked"}, {"assistant", said}};
  ChatOptions options;
  options.add_generation_prompt = false;
  std::string text;
  try {
    text = render_chat(chat_template, tokenizer, probe, options);
  } catch (const Error&) {  // the template refuses such a conversation
    return "";
  }
  const std::size_t at = text.rfind(said);
  if (at == std::string::npos) return "";
  text.erase(0, at + said.size());
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text;
}

}  // namespace

ChatTemplate chat_template_of(const Tokenizer& tokenizer, bool with_tools) {
  const std::string& text = with_tools ? tokenizer.tool_template() : tokenizer.chat_template();
  if (text.empty()) {
    throw Error(kRender, "chat template", "one stored with the model", "none");
  }
  return ChatTemplate(text);
}

std::string chat_variables(const Tokenizer* tokenizer, std::string_view messages,
                           const ChatOptions& options) {
  std::string out = R"({"messages": )";
  out += checked(messages, '[', "messages", "a JSON array");
  out += R"(, "tools": )";
  out += options.tools.empty() ? "null" : checked(options.tools, '[', "tools", "a JSON array");
  out += R"(, "documents": null, "add_generation_prompt": )";
  out += options.add_generation_prompt ? "true" : "false";
  if (tokenizer != nullptr) {
    Json ends;
    ends["bos_token"] = piece_or_nothing(*tokenizer, tokenizer->bos_token());
    ends["eos_token"] = piece_or_nothing(*tokenizer, tokenizer->eos_token());
    add_members(dumped(ends), out);
    add_members(tokenizer->special_tokens(), out);  // with the spellings of the files
  }
  if (!options.variables.empty()) {
    add_members(checked(options.variables, '{', "variables", "a JSON object"), out);
  }
  return out + "}";
}

std::string render_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                        std::span<const ChatMessage> messages, const ChatOptions& options) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  return chat_template.render(chat_variables(&tokenizer, dumped(list), options), options.clock);
}

std::vector<std::string> turn_ends(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  const std::string behind = behind_answer(chat_template, tokenizer);
  std::string found(leading_end_spelling(behind));
  if (found.empty()) {
    const std::vector<TokenId> ids = tokenizer.encode(behind, false);
    if (ids.empty() || !tokenizer.is_special(ids.front())) return {};
    const std::string spelling(tokenizer.piece(ids.front()));
    if (!behind.starts_with(spelling)) return {};
    found = spelling;
  }
  return {found};
}

}  // namespace outrider
