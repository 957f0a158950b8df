// SPDX-License-Identifier: Apache-2.0
#include "chat_arguments.h"

#include <string>
#include <utility>

#include "generate_arguments.h"
#include "outrider/error.h"

namespace outrider::python {
namespace {

// "auto", "none", "required", a tool's name, or OpenAI's object that names a function.
ToolChoice read_tool_choice(const py::object& choice) {
  if (choice.is_none()) return {};
  py::object name = choice;
  if (py::isinstance<py::dict>(choice)) {
    name = choice.attr("get")("function", py::dict()).attr("get")("name", py::none());
  }
  if (!py::isinstance<py::str>(name)) {
    throw UsageError("chat", "tool_choice", "auto, none, required or a tool",
                     std::string(py::str(choice)));
  }
  const std::string word = read_text(name, "chat", "tool_choice");
  if (!py::isinstance<py::dict>(choice)) {
    if (word == "auto") return {};
    if (word == "none") return {.kind = ToolChoice::Kind::none};
    if (word == "required") return {.kind = ToolChoice::Kind::required};
  }
  return {.kind = ToolChoice::Kind::named, .name = word};
}

}  // namespace

ChatRequest make_chat_request(const Model& model, const ChatArguments& arguments) {
  GenerateArguments generate = read_arguments(model, arguments.sampling, arguments.keywords);
  if (generate.seeds.size() != 1 || !generate.encoder_prompt.is_none()) {
    throw UsageError("chat", "keywords", "one seed and no encoder_prompt", "others");
  }
  // Set one by one: if a braced list within a braced list is followed by a member that throws, g++
  // 12 frees the inner list's parts twice.
  ChatTurnOptions options;
  options.messages = to_json(arguments.messages);
  options.chat.tools = to_json(arguments.tools);
  options.chat.variables = to_json(arguments.variables);
  options.guard = arguments.trust_messages ? MessageGuard::none : MessageGuard::special_tokens;
  options.tool_choice = read_tool_choice(arguments.tool_choice);
  options.parallel_calls = arguments.parallel_calls;
  ChatTurn turn(model.tokenizer(), options);
  generate.options.seed = generate.seeds.front();
  GenerateRequest request = turn.request(std::move(generate.options));
  return {std::move(turn), std::move(request), std::move(generate.on_token)};
}

}  // namespace outrider::python
