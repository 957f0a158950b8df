// SPDX-License-Identifier: Apache-2.0
// POST /v1/messages and /v1/messages/count_tokens: Anthropic's interface.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/endpoints/messages_sink.h"
#include "server/requests/answer_form.h"
#include "server/requests/chat_request.h"

namespace outrider::server {
namespace {

constexpr std::size_t kMaxStops = 64;
constexpr std::int64_t kMaxBudget = std::numeric_limits<int>::max();

void refuse_type(const JsonFields& block, const std::string& type, const char* expected) {
  block.refuse("type", expected, fmt::format("'{}'", type));
}

// A text, or a list of text blocks, joined by line ends.
std::string text_of(JsonFields& fields, std::string_view name) {
  const Json* const content = fields.find(name);
  if (content == nullptr) return "";
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  const Json& blocks = fields.list(name);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    JsonFields block(blocks[i], fmt::format("{}[{}]", fields.path_of(name), i));
    block.accept({"cache_control", "citations"});
    const std::string type = block.require_text("type");
    if (type != "text") refuse_type(block, type, "text: this model reads nothing else");
    if (i > 0) text += '\n';
    text += block.require_text("text");
    block.finish();
  }
  return text;
}

// Converts one message into one or several of the template's: tool results come first, as separate
// messages.
class MessageReader {
 public:
  explicit MessageReader(Json& messages) : messages_(messages) {}

  void read(JsonFields message) {
    const std::string role = message.require_text("role");
    if (role != "user" && role != "assistant" && role != "system") {
      message.refuse("role", "user or assistant", fmt::format("'{}'", role));
    }
    Json result = {{"role", role}};
    text_.clear();
    reasoning_.clear();
    calls_ = Json::array();
    has_results_ = false;
    const Json& content = message.require("content");
    if (content.is_string()) {
      text_ = content.get<std::string>();
    } else {
      const Json& blocks = message.list("content");
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        read_block(JsonFields(blocks[i], fmt::format("{}[{}]", message.path_of("content"), i)),
                   role == "assistant");
      }
    }
    message.finish();
    if (has_results_ && text_.empty()) return;
    result["content"] = text_;
    if (!reasoning_.empty()) result["reasoning_content"] = reasoning_;
    if (!calls_.empty()) result["tool_calls"] = calls_;
    messages_.push_back(std::move(result));
  }

 private:
  void read_block(JsonFields block, bool of_assistant) {
    block.accept({"cache_control", "citations"});
    const std::string type = block.require_text("type");
    if (type == "text") {
      if (!text_.empty()) text_ += '\n';
      text_ += block.require_text("text");
    } else if (type == "thinking" && of_assistant) {
      block.accept({"signature"});
      reasoning_ += block.require_text("thinking");
    } else if (type == "tool_use" && of_assistant) {
      Json call;
      call["id"] = block.require_text("id");
      call["type"] = "function";
      call["function"] = {{"name", block.require_text("name")},
                          {"arguments", block.require("input")}};
      names_[call["id"].get<std::string>()] = call["function"]["name"].get<std::string>();
      calls_.push_back(std::move(call));
    } else if (type == "tool_result" && !of_assistant) {
      Json result = {{"role", "tool"}};
      const std::string id = block.require_text("tool_use_id");
      result["tool_call_id"] = id;
      if (const auto name = names_.find(id); name != names_.end()) result["name"] = name->second;
      std::string text = text_of(block, "content");
      if (block.boolean("is_error").value_or(false)) text = "Error: " + text;
      result["content"] = std::move(text);
      messages_.push_back(std::move(result));
      has_results_ = true;
    } else {
      refuse_type(block, type, of_assistant ? "text, thinking or tool_use" : "text or tool_result");
    }
    block.finish();
  }

  Json& messages_;
  std::map<std::string, std::string> names_;  // names of tools, by the call's id
  std::string text_;
  std::string reasoning_;
  Json calls_;
  bool has_results_ = false;
};

void read_tools(JsonFields& body, Json& tools) {
  const Json& list = body.list("tools");
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonFields tool(list[i], fmt::format("tools[{}]", i));
    tool.accept({"cache_control"});
    if (const auto type = tool.text("type"); type && *type != "custom") {
      refuse_type(tool, *type, "custom: this server runs no tools of its own");
    }
    Json function = {{"name", tool.require_text("name")}};
    if (const auto description = tool.text("description")) function["description"] = *description;
    function["parameters"] = tool.require("input_schema");
    tool.finish();
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
}

void read_tool_choice(JsonFields& body, ChatRequest& request) {
  auto choice = body.object("tool_choice");
  if (!choice) return;
  using Kind = ToolChoice::Kind;
  const std::string type = choice->require_text("type");
  if (type == "any") {
    request.tool_choice.kind = Kind::required;
  } else if (type == "none") {
    request.tool_choice.kind = Kind::none;
  } else if (type == "tool") {
    request.tool_choice = {.kind = Kind::named, .name = choice->require_text("name")};
  } else if (type != "auto") {
    refuse_type(*choice, type, "auto, any, tool or none");
  }
  request.parallel_calls = !choice->boolean("disable_parallel_tool_use").value_or(false);
  choice->finish();
}

// {"type": "enabled", "budget_tokens": N}, or disabled: the variable enable_thinking of templates.
void read_thinking(JsonFields& body, ChatRequest& request) {
  auto thinking = body.object("thinking");
  if (!thinking) return;
  const std::string type = thinking->require_text("type");
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    refuse_type(*thinking, type, "enabled, disabled or adaptive");
  }
  set_thinking(request.conversation, type != "disabled");
  if (const auto budget = thinking->integer("budget_tokens", 1, kMaxBudget)) {
    request.reasoning_budget = static_cast<int>(*budget);
  }
  thinking->finish();
}

// output_config: {"format": {"type": "json_schema", "schema"}}.
std::shared_ptr<const Grammar> read_form(JsonFields& body) {
  auto config = body.object("output_config");
  if (!config) return nullptr;
  config->accept({"effort"});
  std::shared_ptr<const Grammar> form;
  if (auto format = config->object("format")) {
    const std::string type = format->require_text("type");
    if (type != "json_schema") refuse_type(*format, type, "json_schema");
    format->accept({"name", "description"});
    form = schema_form(*format, "schema", format->require("schema"));
    format->finish();
  }
  config->finish();
  return form;
}

Conversation read_messages(JsonFields& body) {
  Conversation conversation;
  if (std::string system = text_of(body, "system"); !system.empty()) {
    conversation.messages.push_back({{"role", "system"}, {"content", std::move(system)}});
  }
  const Json& messages = body.list("messages");
  if (messages.empty()) body.refuse("messages", "a list of at least one message", "none");
  MessageReader reader(conversation.messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    reader.read(JsonFields(messages[i], fmt::format("messages[{}]", i)));
  }
  read_tools(body, conversation.tools);
  return conversation;
}

}  // namespace

void messages(const Call& call) {
  JsonFields body(*call.body);
  body.accept({"model", "metadata", "service_tier", "cache_control", "inference_geo",
               "user_profile_id", "workspace_id"});
  ChatRequest request;
  request.conversation = read_messages(body);
  body.require("max_tokens");
  for (const char* const name : {"n", "stop"}) {  // fields of other interfaces
    if (body.has(name)) body.refuse(name, "nothing by that name here", "a value");
  }
  request.fields = read_generation_fields(body, *call.model);
  request.fields.options.stop_strings = body.texts("stop_sequences", kMaxStops);
  for (const std::string& stop : request.fields.options.stop_strings) {
    if (stop.empty()) body.refuse("stop_sequences", "strings that are not empty", "an empty one");
  }
  read_tool_choice(body, request);
  read_thinking(body, request);
  request.form = read_form(body);
  const bool streams = body.boolean("stream").value_or(false);
  body.finish();
  const std::vector<std::string> stops = request.fields.options.stop_strings;
  PreparedChat chat = prepare(*call.model, std::move(request));
  auto sink = std::make_shared<MessagesSink>(call.model, call.reply, streams, chat.n_prompt, stops);
  run(call.model, std::move(chat), call.reply, std::move(sink));
}

void count_tokens(const Call& call) {
  JsonFields body(*call.body);
  body.accept({"model", "thinking", "tool_choice", "output_config", "cache_control"});
  const Conversation conversation = read_messages(body);
  body.finish();
  send_json(*call.reply, {{"input_tokens", encode(*call.model, conversation).size()}});
}

}  // namespace outrider::server
