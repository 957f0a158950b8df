// SPDX-License-Identifier: Apache-2.0
// Macros, and call blocks.
#include <fmt/format.h>

#include <algorithm>

#include "chat_template/interpreter.h"
#include "chat_template/interpreter_guards.h"
#include "chat_template/values/printed.h"

namespace outrider::jinja {
namespace {

const std::string kCaller = "caller";
const std::string kVarargs = "varargs";
const std::string kKwargs = "kwargs";

}  // namespace

Value Interpreter::make_macro(const Statement& node, const std::string& name) {
  heap_->count_steps(1);
  Scopes::capture(scope_);
  Function made{
      .name = name.empty() ? "Macro anonymous" : fmt::format("Macro {}", quoted(name)),
      .call = [this, &node, closure = scope_](
                  const Arguments& arguments) { return run_macro(node, closure, arguments); },
      .attribute = [this, &node](std::string_view asked) -> Value {
        if (asked == "name") return heap_->text(node.name);
        if (asked == "caller") return Value::boolean(node.takes_caller);
        if (asked == "catch_kwargs") return Value::boolean(node.takes_kwargs);
        if (asked == "catch_varargs") return Value::boolean(node.takes_varargs);
        if (asked != "arguments") return {};
        std::vector<Value> names;
        for (const Parameter& one : node.parameters) names.push_back(heap_->text(one.name));
        return heap_->tuple(std::move(names));
      }};
  return heap_->function(std::move(made));
}

Value Interpreter::run_macro(const Statement& node, Scope* closure, const Arguments& arguments) {
  const Nesting nesting(*this);
  const int line = line_;
  Capture capture(*this);
  const Inside inside(*this, closure);
  bind_parameters(node, arguments);
  run_block(node.body);
  line_ = line;
  return capture.take();
}

// Binds them in the macro's scope, which is open.
void Interpreter::bind_parameters(const Statement& node, const Arguments& arguments) {
  const std::size_t n = node.parameters.size();
  std::vector<std::pair<std::string, Value>> named = arguments.named;
  const auto take = [&named](const std::string& name) -> Value {
    const auto found = std::find_if(named.begin(), named.end(),
                                    [&name](const auto& one) { return one.first == name; });
    if (found == named.end()) return {};
    const Value value = found->second;
    named.erase(found);
    return value;
  };
  std::vector<Value> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] =
        i < arguments.positional.size() ? arguments.positional[i] : take(node.parameters[i].name);
  }
  Value caller;
  if (node.takes_caller) {
    caller = take(kCaller);
    if (caller.is_absent() || caller.is_none()) {
      caller = heap_->undefined("expected a caller of the macro, got none");
    }
  }
  if (!node.takes_kwargs && !named.empty()) {
    fail(fmt::format("macro '{}': expected other arguments, got one called '{}'", node.name,
                     named.front().first));
  }
  if (!node.takes_varargs && arguments.positional.size() > n) {
    fail(fmt::format("macro '{}': expected at most {} arguments, got {}", node.name, n,
                     arguments.positional.size()));
  }
  if (node.takes_caller) scope_->set(kCaller, caller);
  if (node.takes_kwargs) {
    std::vector<std::pair<Value, Value>> items;
    items.reserve(named.size());
    for (const auto& [name, value] : named) items.emplace_back(heap_->text(name), value);
    scope_->set(kKwargs, heap_->dict(std::move(items)));
  }
  if (node.takes_varargs) {
    std::vector<Value> more;
    for (std::size_t i = n; i < arguments.positional.size(); ++i) {
      more.push_back(arguments.positional[i]);
    }
    scope_->set(kVarargs, heap_->tuple(std::move(more)));
  }
  // Default values may refer to earlier parameters.
  for (std::size_t i = 0; i < n; ++i) {
    const Parameter& one = node.parameters[i];
    if (values[i].is_absent()) {
      values[i] = one.default_value
                      ? evaluate(*one.default_value)
                      : heap_->undefined(fmt::format(
                            "expected an argument '{}' of the macro, got none", one.name));
    }
    scope_->set(one.name, values[i]);
  }
}

void Interpreter::call_block(const Statement& node) {
  const Value caller = make_macro(node, "");
  print(printed(call(*node.expression, caller), *heap_));
}

}  // namespace outrider::jinja
