// Generator.chat() and outrider.Reply.
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "generate_arguments.h"
#include "generation.h"
#include "outrider/chat_turn.h"
#include "outrider/error.h"
#include "text_generator.h"

namespace outrider::python {
namespace {

struct ChatReply {
  Reply of;
  py::object result;
};

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

ChatReply chat(TextGenerator& self, const py::object& messages, const py::object& tools,
               const py::object& tool_choice, const py::object& variables, bool parallel_calls,
               bool trust_messages, const py::object& sampling, const py::kwargs& keywords) {
  GenerateArguments arguments = read_arguments(*self.shared_model().model, sampling, keywords);
  if (arguments.seeds.size() != 1 || !arguments.encoder_prompt.is_none()) {
    throw UsageError("chat", "keywords", "one seed and no encoder_prompt", "others");
  }
  // Set one by one: if a braced list within a braced list is followed by a member that throws, g++
  // 12 frees the inner list's parts twice.
  ChatTurnOptions options;
  options.messages = to_json(messages);
  options.chat.tools = to_json(tools);
  options.chat.variables = to_json(variables);
  options.guard = trust_messages ? MessageGuard::none : MessageGuard::special_tokens;
  options.tool_choice = read_tool_choice(tool_choice);
  options.parallel_calls = parallel_calls;
  const ChatTurn turn(self.shared_model().model->tokenizer(), options);
  arguments.options.seed = arguments.seeds.front();
  std::vector<GenerateRequest> requests;
  requests.push_back(turn.request(std::move(arguments.options)));
  Result result = std::move(run(self, std::move(requests), arguments.on_token, true).front());
  Reply reply = turn.read(result.of.text);
  return {std::move(reply), py::cast(std::move(result))};
}

// In OpenAI's format. ids are the model's own, which few models write.
py::list calls_of(const ChatReply& self) {
  py::list calls;
  for (const ReplyCall& call : self.of.calls) {
    py::dict function;
    function["name"] = call.name;
    function["arguments"] = call.arguments;
    py::dict object;
    object["id"] = call.id;
    object["type"] = "function";
    object["function"] = std::move(function);
    calls.append(std::move(object));
  }
  return calls;
}

}  // namespace

void bind_chat(py::module_& module, GeneratorClass& generator) {
  py::class_<ChatReply>(module, "Reply", "What an assistant said.")
      .def_property_readonly("content", [](const ChatReply& self) { return self.of.content; })
      .def_property_readonly("reasoning", [](const ChatReply& self) { return self.of.reasoning; })
      .def_property_readonly("tool_calls", &calls_of,
                             "The calls, each a dict as OpenAI has it: id (empty where the model "
                             "writes none), type, and function with name and arguments, a text "
                             "that is a JSON object.")
      .def_property_readonly(
          "result", [](const ChatReply& self) { return self.result; },
          "The Result of the text as the model wrote it.");
  generator.def(
      "chat", &chat, py::arg("messages"), py::kw_only(), py::arg("tools") = py::none(),
      py::arg("tool_choice") = py::none(), py::arg("variables") = py::none(),
      py::arg("parallel_calls") = true, py::arg("trust_messages") = false,
      py::arg("sampling") = py::none(),
      "The assistant's next turn in a conversation, by the model's chat template.\n\n"
      "messages: a list of dicts with role, content and all else that the template reads.\n"
      "tools: a list of dicts, {\"type\": \"function\", \"function\": {name, description, "
      "parameters}}.\n"
      "tool_choice: \"auto\", \"none\", \"required\", or the tool that must be called, by its "
      "name or as OpenAI has it.\n"
      "variables: a dict of further variables of the template (enable_thinking).\n"
      "parallel_calls: a reply that must call may call more than once.\n"
      "trust_messages: special tokens that messages spell are these tokens. Else they are text.\n"
      "Further keywords as of generate(); grammar is the form of an answer without calls.");
}

}  // namespace outrider::python
