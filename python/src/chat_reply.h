// SPDX-License-Identifier: Apache-2.0
// An assistant's reply, whole and in pieces: outrider.Reply and outrider.ReplyPiece.
#ifndef OUTRIDER_PYTHON_CHAT_REPLY_H_
#define OUTRIDER_PYTHON_CHAT_REPLY_H_

#include <optional>
#include <string>

#include "bindings.h"
#include "outrider/chat_turn.h"
#include "outrider/reply_reader.h"

namespace outrider::python {

struct ChatReply {
  Reply of;
  py::object result;  // a Result
};

// A ReplyEvent that outlives its callback.
struct ReplyPiece {
  ReplyEvent::Kind kind = ReplyEvent::Kind::content;
  std::string text = {};
  int call = -1;
  std::string name = {};
  std::string id = {};
  std::optional<ReplyCall> whole = {};  // at the end of a complete call
  bool of_broken_call = false;
};

void bind_chat_reply(py::module_& module);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_CHAT_REPLY_H_
