// SPDX-License-Identifier: Apache-2.0
#include "server/requests/conversation.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "outrider/chat.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"
#include "server/requests/history_form.h"

namespace outrider::server {
namespace {

void check_calls(Json& message, const std::string& path) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return;
  if (calls->is_null()) {
    message.erase("tool_calls");
    return;
  }
  if (!calls->is_array()) throw ApiError(400, path + ".tool_calls: expected a list", path);
  for (const Json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) {
      throw ApiError(400, path + ".tool_calls: expected calls of functions", path);
    }
  }
}

}  // namespace

std::string joined_parts(const Json& parts, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    JsonFields part(parts[i], fmt::format("{}[{}]", path, i));
    const std::string type = part.text("type").value_or("text");
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal") {
      part.refuse("type", "text: this model reads nothing else", fmt::format("'{}'", type));
    }
    if (i > 0) text += '\n';
    text += part.text(type == "refusal" ? "refusal" : "text").value_or("");
  }
  return text;
}

Conversation read_conversation(JsonFields& body) {
  Conversation conversation;
  const Json& messages = body.require("messages");
  if (!messages.is_array() || messages.empty()) {
    body.refuse("messages", "a list of at least one message",
                messages.is_array() ? "none" : kind_of(messages));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    if (!messages[i].is_object() || !messages[i].contains("role") ||
        !messages[i]["role"].is_string()) {
      throw ApiError(400, path + ": expected an object with a role", path);
    }
    Json message = messages[i];
    // OpenAI's newer name for the role; templates know the older one.
    if (message["role"] == "developer") message["role"] = "system";
    auto content = message.find("content");
    if (content == message.end() || content->is_null()) {
      message["content"] = "";
    } else if (content->is_array()) {
      *content = joined_parts(*content, path + ".content");
    } else if (!content->is_string()) {
      throw ApiError(400, path + ".content: expected a string or a list of parts", path);
    }
    check_calls(message, path);
    conversation.messages.push_back(std::move(message));
  }
  conversation.tools = body.list("tools");
  for (std::size_t i = 0; i < conversation.tools.size(); ++i) {
    JsonFields tool(conversation.tools[i], fmt::format("tools[{}]", i));
    if (const std::string type = tool.text("type").value_or(""); type != "function") {
      tool.refuse("type", "function", fmt::format("'{}'", type));
    }
    JsonFields function(tool.require("function"), tool.path_of("function"));
    if (!function.text("name")) function.refuse("name", "a string", "none");
  }
  if (const Json* const variables = body.find("chat_template_kwargs")) {
    if (!variables->is_object()) {
      body.refuse("chat_template_kwargs", "an object", kind_of(*variables));
    }
    conversation.variables = *variables;
  }
  return conversation;
}

void set_thinking(Conversation& conversation, bool thinks) {
  for (const char* const name : {"enable_thinking", "thinking"}) {
    conversation.variables[name] = thinks;
  }
}

ChatPrompt render(const ServedModel& model, const Conversation& conversation) {
  const bool with_tools = !conversation.tools.empty();
  ChatOptions options;
  options.add_generation_prompt = conversation.add_generation_prompt;
  if (with_tools) options.tools = dumped(conversation.tools);
  if (!conversation.variables.empty()) options.variables = dumped(conversation.variables);
  const ChatTemplate& chat_template = model.chat_template(with_tools);
  const FittedMessages fit =
      fitted(conversation.messages, conversation.tools, conversation.variables,
             model.history_form(with_tools), model.reply_format());
  const MessageGuard guard = model.options().guard;
  ChatPrompt prompt =
      render_chat_json(chat_template, model.tokenizer(), dumped(fit.messages), guard, options);
  put_calls(fit.placed, &model.tokenizer(), guard, prompt);
  return prompt;
}

std::vector<TokenId> encode(const ServedModel& model, const Conversation& conversation) {
  const ChatPrompt prompt = render(model, conversation);
  return model.tokenizer().encode_with_literals(prompt.text, false, prompt.literals);
}

}  // namespace outrider::server
