// SPDX-License-Identifier: Apache-2.0
// Generator.chat() and Generator.stream_chat().
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "chat_arguments.h"
#include "chat_reply.h"
#include "chat_stream.h"
#include "generation.h"
#include "text_generator.h"

namespace outrider::python {
namespace {

constexpr const char* kArguments =
    "messages: a list of dicts with role, content and all else that the template reads.\n"
    "tools: a list of dicts, {\"type\": \"function\", \"function\": {name, description, "
    "parameters}}.\n"
    "tool_choice: \"auto\", \"none\", \"required\", or the tool that must be called: its name, or "
    "OpenAI's object for it.\n"
    "variables: a dict of further variables of the template (enable_thinking).\n"
    "parallel_calls: whether a reply that must call a tool may have several calls.\n"
    "trust_messages: whether special tokens spelled in messages become special tokens. Otherwise "
    "they are text.\n"
    "Further keywords: those of generate(), with one seed and without encoder_prompt. grammar is "
    "the form of an answer without calls.";

ChatReply chat(const std::shared_ptr<TextGenerator>& self, ChatRequest asked) {
  std::vector<GenerateRequest> requests;
  requests.push_back(std::move(asked.request));
  Result result = std::move(run(*self, std::move(requests), asked.on_token, true).front());
  Reply reply = asked.turn.read(result.of.text);
  return {std::move(reply), py::cast(std::move(result))};
}

ChatStream stream_chat(const std::shared_ptr<TextGenerator>& self, ChatRequest asked) {
  return {self, std::move(asked)};
}

// Defines chat() or stream_chat(), which take the same arguments.
template <typename Answer>
void define(GeneratorClass& generator, const char* name, Answer answer, const std::string& words) {
  generator.def(
      name,
      [answer](const std::shared_ptr<TextGenerator>& self, const py::object& messages,
               const py::object& tools, const py::object& tool_choice, const py::object& variables,
               bool parallel_calls, bool trust_messages, const py::object& sampling,
               const py::kwargs& keywords) {
        const ChatArguments arguments{messages,       tools,          tool_choice, variables,
                                      parallel_calls, trust_messages, sampling,    keywords};
        return answer(self, make_chat_request(*self->shared_model().model, arguments));
      },
      py::arg("messages"), py::kw_only(), py::arg("tools") = py::none(),
      py::arg("tool_choice") = py::none(), py::arg("variables") = py::none(),
      py::arg("parallel_calls") = true, py::arg("trust_messages") = false,
      py::arg("sampling") = py::none(), (words + "\n\n" + kArguments).c_str());
}

}  // namespace

void bind_chat(py::module_& module, GeneratorClass& generator) {
  bind_chat_reply(module);
  bind_chat_stream(module);
  define(generator, "chat", &chat,
         "Generates the assistant's next turn in a conversation, by the model's chat template. "
         "Returns a Reply.");
  define(generator, "stream_chat", &stream_chat,
         "Returns a ChatStream, an iterator over the pieces of the reply that chat() returns as a "
         "whole. Its property reply is the Reply once generation has ended. on_token is called "
         "between passes, before the pieces of its token are returned.");
}

}  // namespace outrider::python
