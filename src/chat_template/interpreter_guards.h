// SPDX-License-Identifier: Apache-2.0
// Temporary changes of the interpreter's state, restored also after an exception.
#ifndef OUTRIDER_CHAT_TEMPLATE_INTERPRETER_GUARDS_H_
#define OUTRIDER_CHAT_TEMPLATE_INTERPRETER_GUARDS_H_

#include <fmt/format.h>

#include <string>
#include <utility>

#include "chat_template/interpreter.h"

namespace outrider::jinja {

// Limits the recursion of the interpreter.
class Interpreter::Nesting {
 public:
  explicit Nesting(Interpreter& interpreter) : interpreter_(&interpreter) {
    interpreter.heap_->count_steps(1);
    if (++interpreter.n_nested_ > kDeepestEvaluation) {
      --interpreter.n_nested_;
      fail(
          fmt::format("expected evaluations nested at most {} deep, got more", kDeepestEvaluation));
    }
  }
  ~Nesting() { --interpreter_->n_nested_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Interpreter* interpreter_;
};

class Interpreter::Inside {
 public:
  explicit Inside(Interpreter& interpreter) : Inside(interpreter, interpreter.scope_) {}
  Inside(Interpreter& interpreter, Scope* outer)
      : interpreter_(&interpreter), before_(interpreter.scope_) {
    interpreter.scope_ = interpreter.scopes_.open(outer);
  }
  ~Inside() {
    interpreter_->scopes_.close(interpreter_->scope_);
    interpreter_->scope_ = before_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // Starts another iteration with no variables.
  void renew() {
    Scope* outer = interpreter_->scope_->outer;
    interpreter_->scopes_.close(interpreter_->scope_);
    interpreter_->scope_ = interpreter_->scopes_.open(outer);
  }

 private:
  Interpreter* interpreter_;
  Scope* before_;
};

class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(&interpreter), before_(std::exchange(interpreter.out_, &text_)) {}
  ~Capture() { interpreter_->out_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Value take() { return interpreter_->heap_->text(std::move(text_)); }

 private:
  Interpreter* interpreter_;
  std::string text_;
  std::string* before_;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_INTERPRETER_GUARDS_H_
