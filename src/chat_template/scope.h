// SPDX-License-Identifier: Apache-2.0
// The variables visible at a place of a template. Not thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_SCOPE_H_
#define OUTRIDER_CHAT_TEMPLATE_SCOPE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Assignments are visible within the scope and the scopes inside it, from the assignment on.
struct Scope {
  Scope* outer = nullptr;
  // A macro defined within it may still read it after the end of its block.
  bool captured = false;
  std::vector<std::pair<const std::string*, Value>> variables;

  void set(const std::string& name, const Value& value) {
    for (auto& [known, held] : variables) {
      if (*known == name) {
        held = value;
        return;
      }
    }
    variables.emplace_back(&name, value);
  }
  // Absent if neither this scope nor an outer one has it.
  Value find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      for (const auto& [known, held] : scope->variables) {
        if (*known == name) return held;
      }
    }
    return {};
  }
};

// Owns the scopes of one rendering; those that cannot be read any more are reused.
class Scopes {
 public:
  explicit Scopes(Heap& heap) : heap_(&heap) {}

  Scope* open(Scope* outer) {
    if (free_.empty()) {
      constexpr std::size_t kBytesOfVariables = 128;
      heap_->count_memory(sizeof(Scope) + kBytesOfVariables);
      all_.push_back(std::make_unique<Scope>());
      free_.push_back(all_.back().get());
    }
    Scope* scope = free_.back();
    free_.pop_back();
    scope->outer = outer;
    scope->captured = false;
    scope->variables.clear();
    return scope;
  }
  void close(Scope* scope) {
    if (!scope->captured) free_.push_back(scope);
  }
  static void capture(Scope* scope) {
    for (; scope != nullptr && !scope->captured; scope = scope->outer) scope->captured = true;
  }

 private:
  Heap* heap_;
  std::vector<std::unique_ptr<Scope>> all_;
  std::vector<Scope*> free_;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_SCOPE_H_
