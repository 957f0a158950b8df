// SPDX-License-Identifier: Apache-2.0
// An assistant's turn in progress, piece by piece: outrider.ChatStream.
//
// Threads and the GIL as for TextStream.
#ifndef OUTRIDER_PYTHON_CHAT_STREAM_H_
#define OUTRIDER_PYTHON_CHAT_STREAM_H_

#include <deque>
#include <memory>

#include "bindings.h"
#include "chat_arguments.h"
#include "chat_reply.h"
#include "outrider/reply_reader.h"
#include "text_stream.h"

namespace outrider::python {

// Closing or destroying it cancels the text.
class ChatStream {
 public:
  // Submits the request. Throws as Batch::submit().
  ChatStream(std::shared_ptr<TextGenerator> generator, ChatRequest asked);

  // The next piece, after as many passes as it takes. Throws StopIteration after the last one, and
  // as TextStream::next().
  ReplyPiece next();
  void close();
  // The Reply, as chat() returns it; None for a text in progress, or one that ended with an error.
  py::object reply();

 private:
  // Pieces from the reader that were not yet returned. Their address does not change when the
  // stream is moved.
  struct Pieces {
    std::deque<ReplyPiece> queue = {};
    ReplyCall call = {};  // the call in progress
    void add(const ReplyEvent& event);
  };

  void tell(Token token);
  void end();

  ChatTurn turn_;
  std::unique_ptr<Pieces> pieces_;
  ReplyReader reader_;
  py::object on_token_;
  TextStream stream_;
  bool is_over_ = false;  // all tokens are read
  py::object reply_ = py::none();
};

void bind_chat_stream(py::module_& module);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_CHAT_STREAM_H_
