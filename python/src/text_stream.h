// SPDX-License-Identifier: Apache-2.0
// A text under way, token by token: what stream() and stream_chat() are made of.
//
// One thread at a time may use a stream: a second one gets UsageError while a pass runs. All of it
// is called with the GIL, which is released in passes.
#ifndef OUTRIDER_PYTHON_TEXT_STREAM_H_
#define OUTRIDER_PYTHON_TEXT_STREAM_H_

#include <memory>
#include <optional>

#include "bindings.h"
#include "text_generator.h"

namespace outrider::python {

// Leaving it, by close() or by forgetting it, cancels the text.
class TextStream {
 public:
  // Submits the request. Throws as Batch::submit().
  TextStream(std::shared_ptr<TextGenerator> generator, GenerateRequest request);
  TextStream(TextStream&&) = default;
  ~TextStream();

  // The next token, behind as many passes as it takes; nullopt behind the last one. What the text
  // ended with comes out once. Ctrl-C, and what callbacks raise, ends the text.
  std::optional<Token> next();
  // Cancels the text, if it has not ended. What it has said until then still comes out of next().
  void close();
  // Whether the text has ended, and not in an error.
  bool has_result() const { return text_->ended && !text_->failed; }
  // The Result; None where there is none.
  py::object result();

 private:
  std::optional<Token> next_token();

  std::shared_ptr<TextGenerator> generator_;
  std::shared_ptr<Text> text_;
  py::object result_ = py::none();
};

// Runs a function that may call back. StopIteration would say that the stream is over: it becomes a
// RuntimeError. (PEP 479 has the same of Python's generators.)
template <typename Function>
auto without_stop_iteration(const Function& function) {
  try {
    return function();
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_StopIteration)) throw;
    py::raise_from(error, PyExc_RuntimeError, "a callback raised StopIteration");
    throw py::error_already_set();
  }
}

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_TEXT_STREAM_H_
