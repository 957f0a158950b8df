// SPDX-License-Identifier: Apache-2.0
#include "chat_reply.h"

#include <utility>

namespace outrider::python {
namespace {

// A call as a dict in OpenAI's form.
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
      "A piece of an assistant's reply, available as soon as it is certain. A tool call is a "
      "\"call_begin\", pieces of its arguments, and a \"call_end\".")
      .def_property_readonly(
          "kind", [](const ReplyPiece& self) { return name_of(self.kind); },
          "Kind of the piece: \"content\", \"reasoning\", \"call_begin\", \"call_arguments\" or "
          "\"call_end\".")
      .def_readonly("text", &ReplyPiece::text,
                    "Next part of the content, of the reasoning, or of a call's arguments: whole "
                    "characters. Empty for \"call_begin\" and \"call_end\".")
      .def_readonly("call", &ReplyPiece::call,
                    "Index of the call in the reply, from 0, including calls that break off; -1 "
                    "for other pieces.")
      .def_readonly("name", &ReplyPiece::name,
                    "Name of the tool, for \"call_begin\" and \"call_end\".")
      .def_readonly("id", &ReplyPiece::id,
                    "Id of the call, for \"call_begin\" and \"call_end\", as far as the model has "
                    "written one.")
      .def_property_readonly("tool_call", &whole_call,
                             "Whole call, for \"call_end\", as in Reply.tool_calls. None if the "
                             "call broke off: its text then follows as content.")
      .def_readonly(
          "of_broken_call", &ReplyPiece::of_broken_call,
          "Whether this is content that came before as pieces of a call, which then broke off.");
}

}  // namespace

void bind_chat_reply(py::module_& module) {
  py::class_<ChatReply>(module, "Reply", "An assistant's reply.")
      .def_property_readonly(
          "content", [](const ChatReply& self) { return self.of.content; },
          "Text for the user, without reasoning and tool calls.")
      .def_property_readonly(
          "reasoning", [](const ChatReply& self) { return self.of.reasoning; },
          "Text of the model's reasoning; empty if it wrote none.")
      .def_property_readonly(
          "tool_calls", &calls_of,
          "Tool calls, as dicts in OpenAI's form: id, type and function. id is empty if the model "
          "writes none. function has name and arguments, the text of a JSON object.")
      .def_property_readonly(
          "result", [](const ChatReply& self) { return self.result; },
          "Result with the text as the model wrote it.");
  bind_piece(module);
}

}  // namespace outrider::python
