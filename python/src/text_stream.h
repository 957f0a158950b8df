// SPDX-License-Identifier: Apache-2.0
// A text in progress, token by token: the implementation of stream() and stream_chat().
//
// One thread at a time may use a stream: a second one gets UsageError while a pass runs. All
// functions are called with the GIL, which is released in passes.
#ifndef OUTRIDER_PYTHON_TEXT_STREAM_H_
#define OUTRIDER_PYTHON_TEXT_STREAM_H_

#include <memory>
#include <optional>

#include "bindings.h"
#include "text_generator.h"

namespace outrider::python {

// Closing or destroying it cancels the text.
class TextStream {
 public:
  // Submits the request. Throws as Batch::submit().
  TextStream(std::shared_ptr<TextGenerator> generator, GenerateRequest request);
  TextStream(TextStream&&) = default;
  ~TextStream();

  // The next token, after as many passes as it takes; nullopt after the last one. The text's error
  // is thrown once. Ctrl-C, and exceptions of callbacks, end the text.
  std::optional<Token> next();
  // Cancels the text, if it has not ended. next() still returns the tokens generated until then.
  void close();
  // Whether the text has ended without an error.
  bool has_result() const { return text_->ended && !text_->failed; }
  // The Result, or None.
  py::object result();

 private:
  std::optional<Token> next_token();

  std::shared_ptr<TextGenerator> generator_;
  std::shared_ptr<Text> text_;
  py::object result_ = py::none();
};

// Runs a function that may call back. StopIteration would mean that the stream is over: it becomes
// a RuntimeError. (PEP 479 has the same rule for Python's generators.)
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
