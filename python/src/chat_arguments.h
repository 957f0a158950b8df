// SPDX-License-Identifier: Apache-2.0
// The arguments of chat() and stream_chat().
#ifndef OUTRIDER_PYTHON_CHAT_ARGUMENTS_H_
#define OUTRIDER_PYTHON_CHAT_ARGUMENTS_H_

#include "bindings.h"
#include "outrider/chat_turn.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::python {

// The arguments as Python passes them.
struct ChatArguments {
  py::object messages;
  py::object tools;
  py::object tool_choice;
  py::object variables;
  bool parallel_calls = true;
  bool trust_messages = false;
  py::object sampling;
  py::kwargs keywords;  // those of generate()
};

// A turn, and the request that generates it.
struct ChatRequest {
  ChatTurn turn;
  GenerateRequest request;
  py::object on_token;  // None, or a function
};

// Throws as ChatTurn and read_arguments(), and UsageError for arguments of generate() only.
ChatRequest make_chat_request(const Model& model, const ChatArguments& arguments);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_CHAT_ARGUMENTS_H_
