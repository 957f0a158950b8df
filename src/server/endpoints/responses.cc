// SPDX-License-Identifier: Apache-2.0
// POST /v1/responses: OpenAI's newer interface. Nothing is stored: each request contains its whole
// conversation.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/endpoints/responses_sink.h"
#include "server/requests/answer_form.h"
#include "server/requests/chat_request.h"

namespace outrider::server {
namespace {

// Converts items of the input into the template's messages.
class ItemReader {
 public:
  explicit ItemReader(Json& messages) : messages_(messages) {}

  void read(JsonFields item) {
    const std::string type = item.text("type").value_or("message");
    item.accept({"id", "status"});
    if (type == "message") {
      const std::string role = item.require_text("role");
      Json message = {{"role", role == "developer" ? "system" : role}};
      message["content"] = text_of(item);
      messages_.push_back(std::move(message));
    } else if (type == "reasoning") {
      item.accept({"summary", "encrypted_content"});
      reasoning_ += text_of(item);
    } else if (type == "function_call") {
      Json call;
      call["id"] = item.require_text("call_id");
      call["type"] = "function";
      call["function"] = {{"name", item.require_text("name")},
                          {"arguments", parsed(item.require_text("arguments"))}};
      names_[call["id"].get<std::string>()] = call["function"]["name"].get<std::string>();
      assistant()["tool_calls"].push_back(std::move(call));
    } else if (type == "function_call_output") {
      const std::string id = item.require_text("call_id");
      Json result = {{"role", "tool"}, {"tool_call_id", id}};
      if (const auto name = names_.find(id); name != names_.end()) result["name"] = name->second;
      const Json& output = item.require("output");
      result["content"] = output.is_string() ? output : Json(output.dump());
      messages_.push_back(std::move(result));
    } else {
      item.refuse("type", "message, reasoning, function_call or function_call_output",
                  fmt::format("'{}'", type));
    }
    item.finish();
  }

 private:
  static std::string text_of(JsonFields& item) {
    const Json* const content = item.find("content");
    if (content == nullptr) return "";
    if (content->is_string()) return content->get<std::string>();
    return joined_parts(item.list("content"), item.path_of("content"));
  }
  // Invalid JSON from a model is kept as text.
  static Json parsed(const std::string& arguments) {
    try {
      return arguments.empty() ? Json::object() : parse_json(arguments);
    } catch (const ApiError&) {
      return arguments;
    }
  }
  // The assistant's message to which a call belongs.
  Json& assistant() {
    if (messages_.empty() || messages_.back()["role"] != "assistant") {
      messages_.push_back({{"role", "assistant"}, {"content", ""}});
      if (!reasoning_.empty()) {
        messages_.back()["reasoning_content"] = std::exchange(reasoning_, {});
      }
    }
    return messages_.back();
  }

  Json& messages_;
  std::string reasoning_;
  std::map<std::string, std::string> names_;  // names of functions, by the call's id
};

// {"type": "function", "name", "description", "parameters", "strict"}, without the inner object of
// chat completions.
Json read_tools(JsonFields& body) {
  Json tools = Json::array();
  const Json& list = body.list("tools");
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonFields tool(list[i], fmt::format("tools[{}]", i));
    if (const std::string type = tool.require_text("type"); type != "function") {
      tool.refuse("type", "function: this server runs no tools of its own",
                  fmt::format("'{}'", type));
    }
    tool.accept({"strict"});
    Json function = {{"name", tool.require_text("name")}};
    if (const auto description = tool.text("description")) function["description"] = *description;
    if (const Json* const parameters = tool.find("parameters")) {
      function["parameters"] = *parameters;
    }
    tool.finish();
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

ToolChoice read_tool_choice(JsonFields& body) {
  using Kind = ToolChoice::Kind;
  const Json* const choice = body.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return {};
  if (*choice == "none") return {.kind = Kind::none};
  if (*choice == "required") return {.kind = Kind::required};
  JsonFields named(*choice, "tool_choice");
  if (const std::string type = named.require_text("type"); type != "function") {
    named.refuse("type", "function", fmt::format("'{}'", type));
  }
  ToolChoice result{.kind = Kind::named, .name = named.require_text("name")};
  named.finish();
  return result;
}

// text.format: {"type": "json_schema", "name", "schema", "strict"}, json_object or text.
std::shared_ptr<const Grammar> read_form(JsonFields& body) {
  auto text = body.object("text");
  if (!text) return nullptr;
  text->accept({"verbosity"});
  std::shared_ptr<const Grammar> form;
  if (auto format = text->object("format")) {
    const std::string type = format->require_text("type");
    if (type == "json_schema") {
      format->accept({"name", "description", "strict"});
      form = schema_form(*format, "schema", format->require("schema"));
    } else if (type == "json_object") {
      form = Grammar::any_json_object();
    } else if (type != "text") {
      format->refuse("type", "text, json_object or json_schema", fmt::format("'{}'", type));
    }
    format->finish();
  }
  text->finish();
  return form;
}

Conversation read_input(JsonFields& body) {
  Conversation conversation;
  if (auto instructions = body.text("instructions")) {
    conversation.messages.push_back({{"role", "system"}, {"content", *std::move(instructions)}});
  }
  const Json& input = body.require("input");
  if (input.is_string()) {
    conversation.messages.push_back({{"role", "user"}, {"content", input}});
  } else {
    const Json& items = body.list("input");
    ItemReader reader(conversation.messages);
    for (std::size_t i = 0; i < items.size(); ++i) {
      reader.read(JsonFields(items[i], fmt::format("input[{}]", i)));
    }
  }
  if (conversation.messages.empty()) body.refuse("input", "at least one item", "none");
  return conversation;
}

// The fields of the request that the response repeats.
Json echo_of(JsonFields& body) {
  Json echo;
  for (const char* const name :
       {"instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "temperature",
        "top_p", "tool_choice", "tools", "text", "reasoning", "user"}) {
    const Json* const value = body.find(name);
    echo[name] = value == nullptr ? Json() : *value;
  }
  if (echo["tools"].is_null()) echo["tools"] = Json::array();
  if (echo["tool_choice"].is_null()) echo["tool_choice"] = "auto";
  if (echo["parallel_tool_calls"].is_null()) echo["parallel_tool_calls"] = true;
  if (echo["text"].is_null()) echo["text"] = {{"format", {{"type", "text"}}}};
  if (echo["metadata"].is_null()) echo["metadata"] = Json::object();
  echo["previous_response_id"] = nullptr;
  echo["store"] = false;
  echo["truncation"] = "disabled";
  return echo;
}

}  // namespace

void responses(const Call& call) {
  JsonFields body(*call.body);
  body.accept({"model", "store", "service_tier", "safety_identifier", "prompt_cache_key", "include",
               "client_metadata"});
  for (const char* const name : {"previous_response_id", "conversation", "prompt"}) {
    if (body.has(name)) {
      body.refuse(name, "the whole conversation in input: this server stores none", "one");
    }
  }
  if (const auto truncation = body.text("truncation"); truncation && *truncation != "disabled") {
    body.refuse("truncation", "disabled", fmt::format("'{}'", *truncation));
  }
  if (body.boolean("background").value_or(false)) body.refuse("background", "false", "true");
  ChatRequest request;
  request.conversation = read_input(body);
  request.conversation.tools = read_tools(body);
  request.fields = read_generation_fields(body, *call.model);
  if (request.fields.n_choices != 1) {
    body.refuse("n", "1: a response has one text", std::to_string(request.fields.n_choices));
  }
  request.tool_choice = read_tool_choice(body);
  request.parallel_calls = body.boolean("parallel_tool_calls").value_or(true);
  request.form = read_form(body);
  if (auto reasoning = body.object("reasoning")) {
    reasoning->accept({"summary", "generate_summary"});
    if (auto effort = reasoning->text("effort")) {
      request.conversation.variables["reasoning_effort"] = *std::move(effort);
    }
    reasoning->finish();
  }
  const bool streams = body.boolean("stream").value_or(false);
  if (auto options = body.object("stream_options")) {
    options->accept({"include_obfuscation"});
    options->finish();
  }
  Json echo = echo_of(body);
  body.finish();
  PreparedChat chat = prepare(*call.model, std::move(request));
  auto sink = std::make_shared<ResponsesSink>(call.model, call.reply, streams, chat.n_prompt,
                                              std::move(echo));
  run(call.model, std::move(chat), call.reply, std::move(sink));
}

}  // namespace outrider::server
