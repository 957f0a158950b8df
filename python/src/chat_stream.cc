// SPDX-License-Identifier: Apache-2.0
#include "chat_stream.h"

#include <optional>
#include <string>
#include <utility>

#include "generation.h"

namespace outrider::python {

ChatStream::ChatStream(std::shared_ptr<TextGenerator> generator, ChatRequest asked)
    : turn_(std::move(asked.turn)),
      pieces_(std::make_unique<Pieces>()),
      reader_(
          turn_.reader([pieces = pieces_.get()](const ReplyEvent& event) { pieces->add(event); })),
      on_token_(std::move(asked.on_token)),
      stream_(std::move(generator), std::move(asked.request)) {}

void ChatStream::Pieces::add(const ReplyEvent& event) {
  using Kind = ReplyEvent::Kind;
  ReplyPiece piece;
  piece.kind = event.kind;
  piece.text = event.text;
  piece.call = event.call;
  piece.of_broken_call = event.of_broken_call;
  if (event.kind == Kind::call_begin) {
    call = {};
    call.name = event.name;
    call.id = event.id;
  } else if (event.kind == Kind::call_arguments) {
    call.arguments += event.text;
  } else if (event.kind == Kind::call_end && !event.id.empty()) {
    call.id = event.id;
  }
  if (event.kind == Kind::call_begin || event.kind == Kind::call_end) {
    piece.name = call.name;
    piece.id = call.id;
  }
  if (event.kind == Kind::call_end && event.complete) piece.whole = std::move(call);
  queue.push_back(std::move(piece));
}

// The pieces of a token are stored before on_token is called, because it may use the stream.
ReplyPiece ChatStream::next() {
  const CallInProgress call_in_progress;
  while (pieces_->queue.empty()) {
    if (is_over_) throw py::stop_iteration();
    std::optional<Token> token = stream_.next();
    if (!token) {
      end();
      continue;
    }
    reader_.push(token->text);
    if (!on_token_.is_none()) tell(*std::move(token));
  }
  ReplyPiece piece = std::move(pieces_->queue.front());
  pieces_->queue.pop_front();
  return piece;
}

// After an error there are no more pieces, and no reply.
void ChatStream::end() {
  is_over_ = true;
  on_token_ = py::none();  // it may hold this stream
  if (stream_.has_result()) reader_.finish();
}

void ChatStream::tell(Token token) {
  const py::object on_token = on_token_;  // which its own call may drop
  try {
    without_stop_iteration([&] { return call(on_token, std::move(token)); });
  } catch (...) {
    stream_.close();
    throw;
  }
}

void ChatStream::close() { stream_.close(); }

py::object ChatStream::reply() {
  if (!stream_.has_result()) return py::none();
  if (reply_.is_none()) {
    ChatReply reply;
    reply.result = stream_.result();
    reply.of = turn_.read(reply.result.cast<const Result&>().of.text);
    reply_ = py::cast(std::move(reply));
  }
  return reply_;
}

void bind_chat_stream(py::module_& module) {
  py::class_<ChatStream>(
      module, "ChatStream",
      "Iterator over the pieces of an assistant's reply, each as soon as it is certain. Leaving "
      "the loop, close() and the end of a with block cancel the request.\n\n"
      "The texts of all pieces of kind \"content\" make up the reply's content, those of kind "
      "\"reasoning\" its reasoning. tool_call of the pieces of kind \"call_end\", where it is not "
      "None, make up its tool_calls.")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", by_reference<&ChatStream::next>)
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](ChatStream& self, const py::args& /*error*/) { self.close(); })
      .def("close", by_reference<&ChatStream::close>, "Cancels the request if it has not ended.")
      .def_property_readonly("reply", by_reference<&ChatStream::reply>,
                             "Reply once generation has ended, as chat() returns it. None before, "
                             "and if it ended in an error.");
}

}  // namespace outrider::python
