// SPDX-License-Identifier: Apache-2.0
// Expressions.
#include <fmt/format.h>

#include "chat_template/functions/checks.h"
#include "chat_template/functions/filters.h"
#include "chat_template/functions/globals.h"
#include "chat_template/functions/methods.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/interpreter.h"
#include "chat_template/interpreter_guards.h"
#include "chat_template/loop.h"
#include "chat_template/values/lookup.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"

namespace outrider::jinja {

Value Interpreter::evaluate(const Expression& node) {
  using Node = Expression::Kind;
  const Nesting nesting(*this);
  line_ = node.line;
  switch (node.kind) {
    case Node::constant:
      return node.value;
    case Node::variable:
      return variable(node.name);
    case Node::list:
      return heap_->list(evaluate_all(node.parts));
    case Node::tuple:
      return heap_->tuple(evaluate_all(node.parts));
    case Node::dict:
      return dict(node);
    case Node::attribute:
      return get_attribute(evaluate(*node.parts[0]), node.name, *heap_);
    case Node::item: {
      const Value value = evaluate(*node.parts[0]);
      const Value key = evaluate(*node.parts[1]);
      line_ = node.line;
      return get_item(value, key, *heap_);
    }
    case Node::slice: {
      const Value start = evaluate_or_none(node.parts[0]);
      const Value stop = evaluate_or_none(node.parts[1]);
      return heap_->slice(start, stop, evaluate_or_none(node.parts[2]));
    }
    case Node::call:
      return call(node, {});
    case Node::filter:
      return filter(node, {});
    case Node::check: {
      const Value subject = evaluate(*node.parts[0]);
      const Arguments arguments = arguments_of(node);
      line_ = node.line;
      return Value::boolean(apply_check(node.name, subject, arguments, *heap_));
    }
    case Node::binary: {
      const Value left = evaluate(*node.parts[0]);
      const Value right = evaluate(*node.parts[1]);
      line_ = node.line;
      return arithmetic(node.binary_operator, left, right, *heap_);
    }
    case Node::compare:
      return Value::boolean(compare_chain(node));
    case Node::concat:
      return concatenate(node);
    case Node::negative:
      return negative(evaluate(*node.parts[0]));
    case Node::positive:
      return positive(evaluate(*node.parts[0]));
    case Node::logical_not:
      return Value::boolean(!truth(evaluate(*node.parts[0])));
    case Node::logical_and: {
      const Value left = evaluate(*node.parts[0]);
      return truth(left) ? evaluate(*node.parts[1]) : left;
    }
    case Node::logical_or: {
      const Value left = evaluate(*node.parts[0]);
      return truth(left) ? left : evaluate(*node.parts[1]);
    }
    case Node::choice:
      break;
  }
  if (truth(evaluate(*node.parts[1]))) return evaluate(*node.parts[0]);
  if (node.parts[2]) return evaluate(*node.parts[2]);
  return heap_->undefined("expected an else of the choice whose condition is false, got none");
}

Value Interpreter::evaluate_or_none(const ExpressionPtr& node) {
  return node ? evaluate(*node) : Value::none();
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& nodes) {
  std::vector<Value> values;
  values.reserve(nodes.size());
  for (const ExpressionPtr& node : nodes) values.push_back(evaluate(*node));
  return values;
}

Value Interpreter::variable(const std::string& name) {
  const Value found = scope_->find(name);
  if (!found.is_absent()) return found;
  if (const Value* given = find(variables_.as_dict(), name)) return *given;
  for (const auto& [known, value] : globals_) {
    if (known == name) return value;
  }
  const Value global = find_global(name, now_, *heap_);
  if (global.is_absent()) {
    return heap_->undefined(
        fmt::format("expected a variable '{}', got none (it is undefined)", name));
  }
  globals_.emplace_back(name, global);
  return global;
}

Value Interpreter::dict(const Expression& node) {
  std::vector<std::pair<Value, Value>> items;
  for (std::size_t i = 0; i < node.parts.size(); i += 2) {
    const Value key = evaluate(*node.parts[i]);
    items.emplace_back(key, evaluate(*node.parts[i + 1]));
  }
  return heap_->dict(std::move(items));
}

bool Interpreter::compare_chain(const Expression& node) {
  Value left = evaluate(*node.parts[0]);
  for (std::size_t i = 0; i < node.operators.size(); ++i) {
    const Value right = evaluate(*node.parts[i + 1]);
    line_ = node.line;
    if (!compare(node.operators[i], left, right, *heap_)) return false;
    left = right;
  }
  return true;
}

Value Interpreter::concatenate(const Expression& node) {
  std::string text;
  for (const Value& part : evaluate_all(node.parts)) {
    text += printed(part, *heap_);
    heap_->check_text_size(text.size());
  }
  return heap_->text(std::move(text));
}

Arguments Interpreter::arguments_of(const Expression& node) {
  Arguments arguments;
  arguments.positional = evaluate_all(node.arguments);
  for (const auto& [name, value] : node.named_arguments) {
    arguments.named.emplace_back(name, evaluate(*value));
  }
  if (node.more_arguments) {
    for (const Value& item : list_of(evaluate(*node.more_arguments), *heap_)) {
      arguments.positional.push_back(item);
    }
  }
  if (node.more_named_arguments) {
    const Value more = evaluate(*node.more_named_arguments);
    if (!more.is_dict()) fail(fmt::format("'**': expected a mapping, got {}", type_name(more)));
    for (const auto& [key, value] : more.as_dict().items) {
      const std::string& name = text_of(key, "'**'");
      for (const auto& given : arguments.named) {
        if (given.first == name) fail(fmt::format("expected '{}' once, got it twice", name));
      }
      arguments.named.emplace_back(name, value);
    }
  }
  return arguments;
}

Value Interpreter::call(const Expression& node, const Value& caller) {
  const Expression& callee = *node.parts[0];
  Value self;
  Value function;
  Method method = nullptr;
  if (callee.kind == Expression::Kind::attribute) {  // a method call: needs no bound method
    self = evaluate(*callee.parts[0]);
    if (!callee.name.starts_with('_')) method = find_method(self, callee.name);
    line_ = callee.line;
    if (method == nullptr) function = get_attribute(self, callee.name, *heap_);
  } else {
    function = evaluate(callee);
  }
  Arguments arguments = arguments_of(node);
  if (!caller.is_absent()) arguments.named.emplace_back("caller", caller);
  line_ = node.line;
  return method == nullptr ? call_value(function, arguments) : method(self, arguments, *heap_);
}

Value Interpreter::call_value(const Value& function, const Arguments& arguments) {
  if (function.is_undefined()) fail_undefined(function);
  if (function.is(Kind::function)) return function.as_function().call(arguments);
  if (!function.is(Kind::loop)) {
    fail(fmt::format("expected something to call, got {}", type_name(function)));
  }
  const Parameters given("loop", arguments, {"iterable"});
  const auto recurse = function.as_loop().recurse;
  if (!recurse) fail("expected a loop that says 'recursive' where it is called, got another");
  return recurse(given.required(0));
}

Value Interpreter::filter(const Expression& node, const Value& body) {
  Value subject = body;
  if (node.parts[0]) {
    // In filter blocks the innermost filter of a chain gets the body.
    const bool is_chain = !body.is_absent() && node.parts[0]->kind == Expression::Kind::filter;
    subject = is_chain ? filter(*node.parts[0], body) : evaluate(*node.parts[0]);
  }
  const Arguments arguments = arguments_of(node);
  line_ = node.line;
  return apply_filter(node.name, subject, arguments, *heap_);
}

}  // namespace outrider::jinja
