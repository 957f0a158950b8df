// SPDX-License-Identifier: Apache-2.0
// Statements.
#include <fmt/format.h>

#include <memory>

#include "chat_template/interpreter.h"
#include "chat_template/interpreter_guards.h"
#include "chat_template/loop.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"

namespace outrider::jinja {
namespace {

const std::string kLoop = "loop";

}  // namespace

Interpreter::Interpreter(const Value& variables, std::function<std::tm()> now, Heap& heap)
    : variables_(variables),
      now_(std::move(now)),
      heap_(&heap),
      scopes_(heap),
      scope_(scopes_.open(nullptr)) {}

std::string Interpreter::run(const Block& block) {
  std::string out;
  out_ = &out;
  run_block(block);
  return out;
}

void Interpreter::print(std::string_view text) {
  heap_->check_text_size(out_->size() + text.size());
  heap_->count_bytes_read(text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::run_block(const Block& block) {
  const Nesting nesting(*this);
  for (const auto& statement : block) {
    const Flow flow = run_statement(*statement);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::run_statement(const Statement& node) {
  using Node = Statement::Kind;
  heap_->count_steps(1);
  line_ = node.line;
  switch (node.kind) {
    case Node::text:
      print(node.text);
      break;
    case Node::print: {
      const Value value = evaluate(*node.expression);
      if (value.is_text()) {
        print(value.as_text().bytes);
      } else {
        print(printed(value, *heap_));
      }
      break;
    }
    case Node::condition:
      return run_condition(node);
    case Node::loop:
      run_loop(node, evaluate(*node.expression), 0);
      break;
    case Node::assign:
      assign(node.target, evaluate(*node.expression));
      break;
    case Node::assign_block:
      assign_block(node);
      break;
    case Node::macro:
      scope_->set(node.name, make_macro(node, node.name));
      break;
    case Node::call_block:
      call_block(node);
      break;
    case Node::filter_block:
      filter_block(node);
      break;
    case Node::with:
      run_with(node);
      break;
    case Node::scope: {
      const Inside inside(*this);
      return run_block(node.body);
    }
    case Node::break_loop:
      return Flow::broken;
    case Node::continue_loop:
      return Flow::continued;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::run_condition(const Statement& node) {
  for (const Statement::Branch& branch : node.branches) {
    if (!branch.condition || truth(evaluate(*branch.condition))) return run_block(branch.body);
  }
  return Flow::on;
}

// The items of a loop: those that pass the loop's own condition.
std::function<Value()> Interpreter::loop_items(const Statement& node, const Value& items) {
  auto next = items_of(items, *heap_);
  if (!node.filter) return next;
  return [this, &node, next = std::move(next), outer = scope_]() -> Value {
    for (Value item = next(); !item.is_absent(); item = next()) {
      const Inside inside(*this, outer);
      assign(node.target, item);
      if (truth(evaluate(*node.filter))) return item;
    }
    return {};
  };
}

void Interpreter::run_loop(const Statement& node, const Value& items, std::int64_t depth0) {
  Value loop;
  auto next = loop_items(node, items);
  if (node.uses_loop) {
    auto made = std::make_unique<Loop>();
    made->next = std::move(next);
    made->depth0 = depth0;
    if (!node.filter && has_length(items)) made->length = length(items, *heap_);
    if (node.recursive) {
      made->recurse = [this, &node, depth0, outer = scope_](const Value& inner) {
        const Nesting nesting(*this);
        Capture capture(*this);
        const Inside inside(*this, outer);
        run_loop(node, inner, depth0 + 1);
        return capture.take();
      };
    }
    loop = heap_->loop(std::move(made));
    next = [held = loop]() -> Value {
      Loop& under_way = held.as_loop();
      return under_way.advance() ? under_way.current : Value();
    };
  }
  // Whether an iteration was completed. If break or continue left all of them, Jinja also runs the
  // else block.
  bool any = false;
  bool first = true;
  {
    Inside inside(*this);
    for (;;) {
      const Value item = next();
      if (item.is_absent()) break;
      if (!std::exchange(first, false)) inside.renew();
      assign(node.target, item);
      if (node.uses_loop) scope_->set(kLoop, loop);
      const Flow flow = run_block(node.body);
      if (flow == Flow::broken) break;
      any = any || flow == Flow::on;
    }
  }
  if (any) return;
  const Inside inside(*this);
  run_block(node.orelse);
}

void Interpreter::assign(const Target& target, const Value& value) {
  switch (target.kind) {
    case Target::Kind::variable:
      scope_->set(target.name, value);
      return;
    case Target::Kind::attribute: {
      const Value space = variable(target.name);
      if (!space.is(Kind::name_space)) {
        fail(fmt::format("{}.{}: expected a namespace to assign to, got {}", target.name,
                         target.attribute, type_name(space)));
      }
      auto& attributes = space.as_namespace().attributes;
      for (auto& [name, held] : attributes) {
        if (name == target.attribute) {
          held = value;
          return;
        }
      }
      heap_->count_memory(sizeof(Value) + sizeof(std::string));
      attributes.emplace_back(target.attribute, value);
      return;
    }
    case Target::Kind::unpacked:
      break;
  }
  const auto next = items_of(value, *heap_);
  for (const Target& part : target.parts) {
    const Value item = next();
    if (item.is_absent()) {
      fail(fmt::format("expected {} values to assign, got fewer", target.parts.size()));
    }
    assign(part, item);
  }
  if (!next().is_absent()) {
    fail(fmt::format("expected {} values to assign, got more", target.parts.size()));
  }
}

void Interpreter::assign_block(const Statement& node) {
  Value value;
  {
    Capture capture(*this);
    const Inside inside(*this);
    run_block(node.body);
    value = capture.take();
    if (node.filter) value = filter(*node.filter, value);
  }
  assign(node.target, value);
}

void Interpreter::run_with(const Statement& node) {
  std::vector<Value> values = evaluate_all(node.values);
  const Inside inside(*this);
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.targets[i], values[i]);
  run_block(node.body);
}

void Interpreter::filter_block(const Statement& node) {
  Value value;
  {
    Capture capture(*this);
    const Inside inside(*this);
    run_block(node.body);
    value = filter(*node.expression, capture.take());
  }
  print(printed(value, *heap_));
}

}  // namespace outrider::jinja
