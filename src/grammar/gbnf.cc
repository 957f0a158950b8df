// SPDX-License-Identifier: Apache-2.0
#include "grammar/gbnf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/limits.h"
#include "grammar/scanner.h"
#include "grammar/schema/json_schema.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read grammar";

bool is_name_character(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : scanner_(text, kOperation) {}

  CompiledGrammar read(std::span<const GrammarSchema> schemas) {
    for (skip(Lines::pass); !scanner_.ended(); skip(Lines::pass)) read_rule();
    for (const GrammarSchema& one : schemas) define(one);
    for (const auto& [name, rule] : rules_) {
      if (parts_.rules()[static_cast<std::size_t>(rule.index)].part >= 0) continue;
      scanner_.fail_at(rule.first_use, fmt::format("a rule {} to be defined", name), "none");
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) scanner_.fail("a rule root", "none");
    return {parts_, root->second.index, kOperation};
  }

 private:
  struct Rule {
    int index = -1;
    std::size_t first_use = 0;  // in the text
  };
  // Whether blanks before the next word may contain line ends.
  enum class Lines { stop, pass };

  void skip(Lines lines) {
    for (;;) {
      const char32_t c = scanner_.peek();
      if (c == ' ' || c == '\t' || (lines == Lines::pass && (c == '\n' || c == '\r'))) {
        scanner_.take();
      } else if (c == '#') {
        while (!scanner_.ended() && scanner_.peek() != '\n' && scanner_.peek() != '\r') {
          scanner_.take();
        }
      } else {
        return;
      }
    }
  }

  std::string take_name() {
    const std::size_t first = scanner_.position();
    while (is_name_character(scanner_.peek())) scanner_.take();
    if (first == scanner_.position()) scanner_.fail("a rule's name");
    return std::string(scanner_.from(first));
  }

  int rule_of(const std::string& name, std::size_t position) {
    const auto [at, is_new] = rules_.try_emplace(name, Rule{.index = -1, .first_use = position});
    if (is_new) at->second.index = parts_.declare(name);
    return at->second.index;
  }

  // Defines those of a schema's rules that are used.
  void define(const GrammarSchema& one) {
    std::vector<int> rules;
    std::vector<std::string> places;
    const auto add = [&](const std::string& name, const std::string& place) {
      const auto at = rules_.find(name);
      if (at == rules_.end()) return;
      const bool is_defined = parts_.rules()[static_cast<std::size_t>(at->second.index)].part >= 0;
      if (is_defined || std::find(rules.begin(), rules.end(), at->second.index) != rules.end()) {
        scanner_.fail_at(at->second.first_use, fmt::format("no rule {}", name),
                         "one beside a schema of that name");
      }
      rules.push_back(at->second.index);
      places.push_back(place);
    };
    add(one.rule, "#");
    for (const GrammarSchemaPart& part : one.parts) add(part.rule, part.reference);
    if (rules.empty()) return;
    const std::vector<int> read = add_json_schema(one.schema, places, parts_);
    for (std::size_t i = 0; i < rules.size(); ++i) parts_.define(rules[i], parts_.call(read[i]));
  }

  void read_rule() {
    const std::size_t first = scanner_.position();
    const std::string name = take_name();
    const int rule = rule_of(name, first);
    if (parts_.rules()[static_cast<std::size_t>(rule)].part >= 0) {
      scanner_.fail_at(first, "a rule to be defined once", fmt::format("{} again", name));
    }
    skip(Lines::stop);
    if (!scanner_.take_if("::=")) scanner_.fail("::=");
    skip(Lines::pass);
    parts_.define(rule, read_alternatives(Lines::stop, 0));
    const char32_t c = scanner_.peek();
    if (c != '\n' && c != '\r' && !scanner_.ended()) scanner_.fail("the end of the rule");
  }

  int read_alternatives(Lines lines, int depth) {
    if (depth > kDeepestGrammar) {
      scanner_.fail(fmt::format("at most {} groups within groups", kDeepestGrammar), "more");
    }
    std::vector<int> choices = {read_sequence(lines, depth)};
    while (scanner_.take_if("|")) {
      skip(Lines::pass);
      choices.push_back(read_sequence(lines, depth));
    }
    return parts_.choice(std::move(choices));
  }

  int read_sequence(Lines lines, int depth) {
    std::vector<int> row;
    for (;;) {
      const char32_t c = scanner_.peek();
      if (c == '"') {
        row.push_back(parts_.text(read_literal()));
      } else if (c == '[') {
        row.push_back(parts_.character(read_class()));
      } else if (c == '.') {
        scanner_.take();
        row.push_back(parts_.character(CodePoints::all()));
      } else if (c == '(') {
        scanner_.take();
        skip(Lines::pass);
        row.push_back(read_alternatives(Lines::pass, depth + 1));
        if (!scanner_.take_if(")")) scanner_.fail(")");
      } else if (is_name_character(c)) {
        const std::size_t first = scanner_.position();
        const std::string name = take_name();
        row.push_back(parts_.call(rule_of(name, first)));
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (row.empty()) scanner_.fail("something to repeat");
        row.back() = read_repetition(row.back());
      } else {
        return parts_.sequence(std::move(row));
      }
      skip(lines);
    }
  }

  int read_repetition(int part) {
    const char32_t c = scanner_.take();
    if (c == '*') return parts_.repeat(part, 0, kUnlimited);
    if (c == '+') return parts_.repeat(part, 1, kUnlimited);
    if (c == '?') return parts_.optional(part);
    const Bounds bounds = take_bounds(scanner_);
    return parts_.repeat(part, bounds.min, bounds.max);
  }

  // One character of a literal or a class, escaped or not.
  char32_t take_character(char32_t closing) {
    const std::size_t first = scanner_.position();
    const char32_t c = scanner_.peek();
    if (c == Scanner::kEnd || c == '\n') {
      scanner_.fail(closing == '"' ? "a closing quote" : "a closing bracket");
    }
    scanner_.take();
    if (c != '\\') return c;
    switch (scanner_.take()) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case '\\':
        return '\\';
      case '"':
        return '"';
      case '[':
        return '[';
      case ']':
        return ']';
      case '-':
        return '-';
      case '^':
        return '^';
      case 'x':
        return scanner_.take_hex(2);
      case 'u':
        return scanner_.take_hex(4);
      case 'U':
        return scanner_.take_hex(8);
      default:
        scanner_.fail_at(first, "a known escape", scanner_.from(first));
    }
  }

  std::string read_literal() {
    scanner_.take();
    std::string text;
    while (scanner_.peek() != '"') append_character(take_character('"'), text);
    scanner_.take();
    return text;
  }

  CodePoints read_class() {
    const std::size_t begin = scanner_.position();
    scanner_.take();
    const bool negated = scanner_.take_if("^");
    CodePoints set;
    while (scanner_.peek() != ']') {
      const std::size_t first = scanner_.position();
      CodePointRange range{};
      range.first = range.last = take_character(']');
      if (scanner_.starts("-") && !scanner_.starts("-]")) {
        scanner_.take();
        range.last = take_character(']');
      }
      if (range.first > range.last) {
        scanner_.fail_at(first, "a range that grows", scanner_.from(first));
      }
      set.add(range);
    }
    scanner_.take();
    if (negated) set = set.complement();
    if (set.empty()) scanner_.fail_at(begin, "a class with a character", scanner_.from(begin));
    return set;
  }

  Scanner scanner_;
  GrammarParts parts_;
  std::map<std::string, Rule> rules_;
};

}  // namespace

CompiledGrammar read_gbnf(std::string_view text) { return read_gbnf(text, {}); }

CompiledGrammar read_gbnf(std::string_view text, std::span<const GrammarSchema> schemas) {
  return Reader(text).read(schemas);
}

}  // namespace outrider
