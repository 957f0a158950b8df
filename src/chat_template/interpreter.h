// SPDX-License-Identifier: Apache-2.0
// Runs the syntax tree of a template with variables. One object for each rendering. Not
// thread-safe; several may run the same tree at once.
#ifndef OUTRIDER_CHAT_TEMPLATE_INTERPRETER_H_
#define OUTRIDER_CHAT_TEMPLATE_INTERPRETER_H_

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "chat_template/parsing/syntax.h"
#include "chat_template/scope.h"
#include "chat_template/values/value.h"

namespace outrider::jinja {

class Interpreter {
 public:
  // `variables` is a dict of the heap; heap and tree must outlive the object.
  Interpreter(const Value& variables, std::function<std::tm()> now, Heap& heap);

  // Returns the template's output. Throws Problem, or Refusal (globals.h); line() then gives the
  // place.
  std::string run(const Block& block);
  int line() const { return line_; }

 private:
  enum class Flow : std::uint8_t { on, broken, continued };
  class Nesting;
  class Inside;   // a separate scope
  class Capture;  // output into a separate text

  // Expressions (evaluate.cc).
  Value evaluate(const Expression& node);
  Value evaluate_or_none(const ExpressionPtr& node);
  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& nodes);
  Value variable(const std::string& name);
  Value call(const Expression& node, const Value& caller);
  Value call_value(const Value& function, const Arguments& arguments);
  Value filter(const Expression& node, const Value& body);
  Value dict(const Expression& node);
  bool compare_chain(const Expression& node);
  Value concatenate(const Expression& node);
  Arguments arguments_of(const Expression& node);

  // Statements (run_statements.cc).
  Flow run_block(const Block& block);
  Flow run_statement(const Statement& node);
  Flow run_condition(const Statement& node);
  void run_loop(const Statement& node, const Value& items, std::int64_t depth0);
  std::function<Value()> loop_items(const Statement& node, const Value& items);
  void assign(const Target& target, const Value& value);
  void assign_block(const Statement& node);
  void run_with(const Statement& node);
  void filter_block(const Statement& node);
  void call_block(const Statement& node);
  void print(std::string_view text);

  // Macros (run_macros.cc).
  Value make_macro(const Statement& node, const std::string& name);
  Value run_macro(const Statement& node, Scope* closure, const Arguments& arguments);
  void bind_parameters(const Statement& node, const Arguments& arguments);

  Value variables_;
  std::function<std::tm()> now_;
  Heap* heap_;
  Scopes scopes_;
  Scope* scope_;
  std::string* out_ = nullptr;
  std::vector<std::pair<std::string, Value>> globals_;  // those used so far
  int n_nested_ = 0;
  int line_ = 0;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_INTERPRETER_H_
