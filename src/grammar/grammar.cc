// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "grammar/limits.h"
#include "outrider/error.h"

namespace outrider {

class CompiledGrammar::Compiler {
 public:
  Compiler(const GrammarParts& parts, CompiledGrammar& grammar, const char* operation)
      : parts_(parts), grammar_(grammar), operation_(operation) {}

  void run(int root) {
    grammar_.root_ = root;
    for (const GrammarParts::Rule& rule : parts_.rules()) {
      grammar_.rules_.push_back({.name = rule.name});
      if (rule.part < 0) {
        throw Error(operation_, fmt::format("rule {}", rule.name), "a definition", "none");
      }
    }
    const std::size_t n_named = parts_.rules().size();
    for (std::size_t rule = 0; rule < n_named; ++rule) {
      emit_rule(static_cast<int>(rule), parts_.rules()[rule].part);
    }
    // Bodies of repetitions, and those nested in them.
    while (!bodies_.empty()) {
      const auto [rule, part] = bodies_.back();
      bodies_.pop_back();
      emit_rule(rule, part);
    }
    find_nullable();
    find_alive();
    if (!grammar_.rule(root).alive) {
      throw Error(operation_, fmt::format("rule {}", grammar_.rule(root).name),
                  "a language with a text", "none that ends");
    }
    refuse_left_recursion();
  }

 private:
  using Kind = GrammarParts::Kind;
  using Step = Position::Kind;

  Position& at(int position) { return grammar_.positions_[static_cast<std::size_t>(position)]; }
  Rule& rule(int index) { return grammar_.rules_[static_cast<std::size_t>(index)]; }

  int add(Position position) {
    if (grammar_.positions_.size() >= kMaxPositions) {
      throw Error(operation_, "size", fmt::format("at most {} positions", kMaxPositions), "more");
    }
    grammar_.positions_.push_back(position);
    return static_cast<int>(grammar_.positions_.size()) - 1;
  }

  int set_of(const ByteSet& set) {
    const auto [at, is_new] = set_ids_.try_emplace(set, static_cast<int>(grammar_.sets_.size()));
    if (is_new) grammar_.sets_.push_back(set);
    return at->second;
  }

  void emit_rule(int index, int part) {
    const int end = add({.kind = Step::end});
    const int start = emit(part, end, 0);
    rule(index).start = start;
  }

  // Emits the part and returns its first position; the part leads to `next`.
  int emit(int index, int next, int depth) {
    if (depth > 20 * kDeepestGrammar) {
      throw Error(operation_, "nesting", "groups within groups to some depth", "too many");
    }
    const GrammarParts::Part& part = parts_.part(index);
    switch (part.kind) {
      case Kind::nothing:
        return next;
      case Kind::bytes:
        return add({.kind = Step::bytes, .next = next, .other = set_of(part.bytes)});
      case Kind::sequence:
        for (std::size_t i = part.parts.size(); i-- > 0;) {
          next = emit(part.parts[i], next, depth + 1);
        }
        return next;
      case Kind::choice:
        return emit_choice(part, next, depth);
      case Kind::repetition:
        return emit_repetition(part, next, depth);
      case Kind::call:
        break;
    }
    return add({.kind = Step::call, .next = next, .other = part.rule});
  }

  int emit_choice(const GrammarParts::Part& part, int next, int depth) {
    if (part.parts.empty()) {  // matches no byte
      return add({.kind = Step::bytes, .next = next, .other = set_of({})});
    }
    int rest = emit(part.parts.back(), next, depth + 1);
    for (std::size_t i = part.parts.size() - 1; i-- > 0;) {
      const int first = emit(part.parts[i], next, depth + 1);
      rest = add({.kind = Step::either, .next = first, .other = rest});
    }
    return rest;
  }

  int emit_repetition(const GrammarParts::Part& part, int next, int depth) {
    const int body = part.parts.front();
    if (part.max == 0) return next;
    if (part.min == 1 && part.max == 1) return emit(body, next, depth + 1);
    if (part.min == 0 && part.max == 1) {
      const int once = emit(body, next, depth + 1);
      return add({.kind = Step::either, .next = once, .other = next});
    }
    if (part.max == kUnlimited && part.min <= 1) {
      const int loop = add({.kind = Step::either, .next = -1, .other = next});
      const int once = emit(body, loop, depth + 1);
      at(loop).next = once;
      return part.min == 0 ? loop : once;
    }
    return add({.kind = Step::repeat,
                .next = next,
                .other = rule_of_body(body),
                .min = part.min,
                .max = part.max});
  }

  int rule_of_body(int part) {
    if (parts_.part(part).kind == Kind::call) return parts_.part(part).rule;
    const auto [at, is_new] = rule_of_part_.try_emplace(part, grammar_.n_rules());
    if (is_new) {
      if (grammar_.rules_.size() >= kMaxRules) {
        throw Error(operation_, "rules", fmt::format("at most {}", kMaxRules), "more");
      }
      grammar_.rules_.push_back({.name = "(repeated)"});
      bodies_.emplace_back(at->second, part);
    }
    return at->second;
  }

  // Which positions depend on which: on those of `next` and `other`, and the callers of a rule on
  // its start. As concatenated lists.
  struct Dependents {
    std::vector<int> first;  // (n_positions + 1)
    std::vector<int> list;
  };
  Dependents dependents() const {
    const auto n = static_cast<std::size_t>(grammar_.n_positions());
    Dependents result{.first = std::vector<int>(n + 1, 0), .list = {}};
    const auto for_each = [&](const auto& visit) {
      for (int i = 0; i < grammar_.n_positions(); ++i) {
        const Position& position = grammar_.position(i);
        if (position.next >= 0) visit(position.next, i);
        if (position.kind == Step::either) visit(position.other, i);
        if (position.kind == Step::call || position.kind == Step::repeat) {
          visit(grammar_.rule(position.other).start, i);
        }
      }
    };
    for_each([&](int on, int) { ++result.first[static_cast<std::size_t>(on) + 1]; });
    for (std::size_t i = 0; i < n; ++i) result.first[i + 1] += result.first[i];
    result.list.resize(static_cast<std::size_t>(result.first[n]));
    std::vector<int> filled(result.first.begin(), result.first.end() - 1);
    for_each([&](int on, int who) {
      result.list[static_cast<std::size_t>(filled[static_cast<std::size_t>(on)]++)] = who;
    });
    return result;
  }

  // The positions from which the end is reachable, without reading a byte or with.
  std::vector<bool> reach_end(bool may_read) {
    const Dependents depend = dependents();
    std::vector<bool> set(static_cast<std::size_t>(grammar_.n_positions()), false);
    std::vector<int> work;
    const auto in = [&set](int i) { return i >= 0 && set[static_cast<std::size_t>(i)]; };
    const auto reaches = [&](const Position& position) {
      switch (position.kind) {
        case Step::bytes:
          return may_read && grammar_.set(position.other).any() && in(position.next);
        case Step::either:
          return in(position.next) || in(position.other);
        case Step::call:
          return in(position.next) && in(rule(position.other).start);
        case Step::repeat:
          return in(position.next) && (position.min == 0 || in(rule(position.other).start));
        case Step::end:
          break;
      }
      return true;
    };
    const auto look = [&](int i) {
      if (set[static_cast<std::size_t>(i)] || !reaches(grammar_.position(i))) return;
      set[static_cast<std::size_t>(i)] = true;
      work.push_back(i);
    };
    for (int i = 0; i < grammar_.n_positions(); ++i) look(i);
    while (!work.empty()) {
      const auto i = static_cast<std::size_t>(work.back());
      work.pop_back();
      for (int d = depend.first[i]; d < depend.first[i + 1]; ++d) {
        look(depend.list[static_cast<std::size_t>(d)]);
      }
    }
    return set;
  }

  void find_nullable() {
    const std::vector<bool> nullable = reach_end(false);
    for (Rule& one : grammar_.rules_) one.nullable = nullable[static_cast<std::size_t>(one.start)];
    // A nullable body can match the empty text in the required repetitions, so only those with
    // bytes need counting.
    for (Position& position : grammar_.positions_) {
      if (position.kind == Step::repeat && rule(position.other).nullable) position.min = 0;
    }
  }

  void find_alive() {
    const std::vector<bool> alive = reach_end(true);
    for (std::size_t i = 0; i < alive.size(); ++i) grammar_.positions_[i].alive = alive[i];
    for (Rule& one : grammar_.rules_) one.alive = at(one.start).alive;
  }

  // The rules that are called from a rule's start before a byte is read.
  void list_first_calls(int index, std::vector<int>& calls) {
    std::vector<int> work = {rule(index).start};
    const auto visit = [&](int position) {
      if (position < 0 || !at(position).alive) return;
      int& mark = seen_[static_cast<std::size_t>(position)];
      if (mark == index) return;
      mark = index;
      work.push_back(position);
    };
    seen_[static_cast<std::size_t>(work.front())] = index;
    while (!work.empty()) {
      const Position& position = at(work.back());
      work.pop_back();
      if (!position.alive) continue;
      if (position.kind == Step::either) {
        visit(position.next);
        visit(position.other);
      } else if (position.kind == Step::call || position.kind == Step::repeat) {
        if (rule(position.other).alive) calls.push_back(position.other);
        const bool passes =
            position.kind == Step::repeat ? position.min == 0 : rule(position.other).nullable;
        if (passes) visit(position.next);
      }
    }
    std::sort(calls.begin(), calls.end());
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  }

  void refuse_left_recursion() {
    const auto n = grammar_.rules_.size();
    seen_.assign(grammar_.positions_.size(), -1);
    std::vector<std::vector<int>> calls(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (grammar_.rules_[i].alive) list_first_calls(static_cast<int>(i), calls[i]);
    }
    // Depth-first search without recursion: chains of rules may be long.
    enum class Mark : std::uint8_t { fresh, open, done };
    std::vector<Mark> marks(n, Mark::fresh);
    // A rule, and the index of its next call.
    std::vector<std::pair<std::size_t, std::size_t>> path;
    for (std::size_t first = 0; first < n; ++first) {
      if (marks[first] != Mark::fresh) continue;
      marks[first] = Mark::open;
      path.emplace_back(first, 0);
      while (!path.empty()) {
        auto& [index, next] = path.back();
        if (next == calls[index].size()) {
          marks[index] = Mark::done;
          path.pop_back();
          continue;
        }
        const auto callee = static_cast<std::size_t>(calls[index][next++]);
        if (marks[callee] == Mark::open) {
          throw Error(operation_, fmt::format("rule {}", grammar_.rules_[callee].name),
                      "a byte to be read before the rule is called again", "left recursion");
        }
        if (marks[callee] == Mark::fresh) {
          marks[callee] = Mark::open;
          path.emplace_back(callee, 0);
        }
      }
    }
  }

  const GrammarParts& parts_;
  CompiledGrammar& grammar_;
  const char* operation_;
  std::unordered_map<ByteSet, int> set_ids_;
  std::unordered_map<int, int> rule_of_part_;
  std::vector<std::pair<int, int>> bodies_;  // rules still to be emitted, with their parts
  std::vector<int> seen_;                    // the rule that visited each position
};

CompiledGrammar::CompiledGrammar(const GrammarParts& parts, int root, const char* operation) {
  Compiler(parts, *this, operation).run(root);
}

// The appended rules, positions and sets are numbered after the existing ones.
void CompiledGrammar::append(const CompiledGrammar& other) {
  const int n_rules = this->n_rules();
  const int n_positions = this->n_positions();
  const auto n_sets = static_cast<int>(sets_.size());
  for (const Rule& rule : other.rules_) {
    rules_.push_back(rule);
    rules_.back().start += n_positions;
  }
  for (const Position& position : other.positions_) {
    positions_.push_back(position);
    Position& moved = positions_.back();
    if (moved.next >= 0) moved.next += n_positions;
    if (moved.kind == Position::Kind::either) moved.other += n_positions;
    if (moved.kind == Position::Kind::bytes) moved.other += n_sets;
    if (moved.kind == Position::Kind::call || moved.kind == Position::Kind::repeat) {
      moved.other += n_rules;
    }
  }
  sets_.insert(sets_.end(), other.sets_.begin(), other.sets_.end());
}

int CompiledGrammar::add_call(int rule, int next) {
  positions_.push_back({.kind = Position::Kind::call, .alive = true, .next = next, .other = rule});
  return n_positions() - 1;
}

void CompiledGrammar::add_root(const char* name, int start, bool nullable) {
  root_ = n_rules();
  rules_.push_back({.start = start, .nullable = nullable, .alive = true, .name = name});
}

CompiledGrammar CompiledGrammar::choice(const CompiledGrammar& one, const CompiledGrammar& other) {
  CompiledGrammar both = one;
  const int root_of_other = both.n_rules() + other.root();
  both.append(other);
  both.positions_.push_back({.kind = Position::Kind::end, .alive = true});
  const int end = both.n_positions() - 1;
  const int first = both.add_call(one.root(), end);
  const int second = both.add_call(root_of_other, end);
  both.positions_.push_back(
      {.kind = Position::Kind::either, .alive = true, .next = first, .other = second});
  both.add_root("choice", both.n_positions() - 1,
                one.rule(one.root()).nullable || other.rule(other.root()).nullable);
  return both;
}

CompiledGrammar CompiledGrammar::sequence(const CompiledGrammar& first,
                                          const CompiledGrammar& second) {
  CompiledGrammar both = first;
  const int root_of_second = both.n_rules() + second.root();
  both.append(second);
  both.positions_.push_back({.kind = Position::Kind::end, .alive = true});
  const int then = both.add_call(root_of_second, both.n_positions() - 1);
  both.add_root("sequence", both.add_call(first.root(), then),
                first.rule(first.root()).nullable && second.rule(second.root()).nullable);
  return both;
}

}  // namespace outrider
