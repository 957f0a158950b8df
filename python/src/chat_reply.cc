// SPDX-License-Identifier: Apache-2.0
#include "chat_reply.h"

#include <utility>

namespace outrider::python {
namespace {

// In OpenAI's form.
py::dict call_object(const ReplyCall& call) {
  py::dict function;
  function["name"] = call.name;
  function["arguments"] = call.arguments;
  py::dict object;
  object["id"] = call.id;
  object["type"] = "function";
  object["function"] = std::move(function);
  return object;
}

py::list calls_of(const ChatReply& self) {
  py::list calls;
  for (const ReplyCall& call : self.of.calls) calls.append(call_object(call));
  return calls;
}

const char* name_of(ReplyEvent::Kind kind) {
  switch (kind) {
    case ReplyEvent::Kind::content:
      return "content";
    case ReplyEvent::Kind::reasoning:
      return "reasoning";
    case ReplyEvent::Kind::call_begin:
      return "call_begin";
    case ReplyEvent::Kind::call_arguments:
      return "call_arguments";
    case ReplyEvent::Kind::call_end:
      break;
  }
  return "call_end";
}

py::object whole_call(const ReplyPiece& self) {
  if (!self.whole) return py::none();
  return call_object(*self.whole);
}

void bind_piece(py::module_& module) {
  py::class_<ReplyPiece>(
      module, "ReplyPiece",
      "A piece of what an assistant says, as soon as it is certain. A call is a \"call_begin\", "
      "pieces of its arguments, and a \"call_end\".")
      .def_property_readonly(
          "kind", [](const ReplyPiece& self) { return name_of(self.kind); },
          "\"content\", \"reasoning\", \"call_begin\", \"call_arguments\" or \"call_end\".")
      .def_readonly("text", &ReplyPiece::text,
                    "The next piece of content, of reasoning, or of a call's arguments: whole "
                    "characters. Empty where a call begins and ends.")
      .def_readonly("call", &ReplyPiece::call,
                    "Of a call: which one of the reply it is, from 0, those that break off "
                    "included. Else -1.")
      .def_readonly("name", &ReplyPiece::name, "Where a call begins and ends: the tool's name.")
      .def_readonly("id", &ReplyPiece::id,
                    "Where a call begins and ends: its id, as far as the model has written one.")
      .def_property_readonly("tool_call", &whole_call,
                             "Where a call ends: all of it, as in Reply.tool_calls. None where it "
                             "broke off: its text follows as content.")
      .def_readonly("of_broken_call", &ReplyPiece::of_broken_call,
                    "Content that came as pieces of a call before, which then broke off.");
}

}  // namespace

void bind_chat_reply(py::module_& module) {
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
  bind_piece(module);
}

}  // namespace outrider::python
