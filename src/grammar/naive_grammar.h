// SPDX-License-Identifier: Apache-2.0
// Grammars for tests: written as GBNF, and matched by exhaustive search.
//
// Shares no code with the readers and the automaton.
#ifndef OUTRIDER_GRAMMAR_NAIVE_GRAMMAR_H_
#define OUTRIDER_GRAMMAR_NAIVE_GRAMMAR_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace outrider {

struct NaiveNode {
  enum class Kind { literal, one_of, sequence, choice, repeat, call };
  Kind kind = Kind::literal;
  std::string text = {};  // of a literal; the characters of one_of
  std::vector<NaiveNode> nodes = {};
  int min = 0;
  int max = 0;  // -1: any number
  int rule = 0;
};

class NaiveGrammar {
 public:
  std::vector<NaiveNode> rules;  // the first is the language

  std::string gbnf() const {
    std::string text;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      text += name(static_cast<int>(i)) + " ::= " + written(rules[i]) + "\n";
    }
    return text;
  }

  bool matches(const std::string& text) {
    look_at(text);
    return ends(rules[0], 0).contains(text.size());
  }

  // Whether some text of the language begins with this one.
  bool begins(const std::string& text) {
    look_at(text);
    return opens(rules[0], 0);
  }

 private:
  static std::string name(int rule) { return rule == 0 ? "root" : "r" + std::to_string(rule); }

  std::string written(const NaiveNode& node) const {
    std::string text;
    switch (node.kind) {
      case NaiveNode::Kind::literal:
        return "\"" + node.text + "\"";
      case NaiveNode::Kind::one_of:
        return "[" + node.text + "]";
      case NaiveNode::Kind::sequence:
        for (const NaiveNode& part : node.nodes) text += written(part) + " ";
        return "(" + text + ")";
      case NaiveNode::Kind::choice:
        for (const NaiveNode& part : node.nodes)
          text += (text.empty() ? "" : " | ") + written(part);
        return "(" + text + ")";
      case NaiveNode::Kind::repeat:
        text = "(" + written(node.nodes[0]) + "){" + std::to_string(node.min);
        if (node.max != node.min) text += ",";
        if (node.max > node.min) text += std::to_string(node.max);
        return text + "}";
      case NaiveNode::Kind::call:
        break;
    }
    return name(node.rule);
  }

  void look_at(const std::string& text) {
    text_ = text;
    ends_of_rule_.clear();
    opens_of_rule_.clear();
    if (!productive_.empty()) return;
    productive_.assign(rules.size(), false);
    for (std::size_t round = 0; round < rules.size(); ++round) {
      for (std::size_t i = 0; i < rules.size(); ++i) productive_[i] = is_productive(rules[i]);
    }
  }

  // Whether the part matches some text.
  bool is_productive(const NaiveNode& node) const {
    const auto productive = [this](const NaiveNode& part) { return is_productive(part); };
    switch (node.kind) {
      case NaiveNode::Kind::literal:
      case NaiveNode::Kind::one_of:
        return true;
      case NaiveNode::Kind::sequence:
        return std::all_of(node.nodes.begin(), node.nodes.end(), productive);
      case NaiveNode::Kind::choice:
        return std::any_of(node.nodes.begin(), node.nodes.end(), productive);
      case NaiveNode::Kind::repeat:
        return node.min == 0 || is_productive(node.nodes[0]);
      case NaiveNode::Kind::call:
        break;
    }
    return productive_[static_cast<std::size_t>(node.rule)];
  }

  // Whether the rest of the text from `from` on is the beginning of a text that the part matches.
  bool opens(const NaiveNode& node, std::size_t from) {
    if (from == text_.size()) return is_productive(node);
    switch (node.kind) {
      case NaiveNode::Kind::literal:
        return node.text.starts_with(text_.substr(from));
      case NaiveNode::Kind::one_of:
        return from + 1 == text_.size() && node.text.find(text_[from]) != std::string::npos;
      case NaiveNode::Kind::sequence: {
        std::set<std::size_t> reached = {from};
        for (std::size_t i = 0; i < node.nodes.size(); ++i) {
          bool rest = true;
          for (std::size_t j = i + 1; j < node.nodes.size(); ++j) {
            rest = rest && is_productive(node.nodes[j]);
          }
          for (const std::size_t at : reached) {
            if (rest && opens(node.nodes[i], at)) return true;
          }
          reached = ends_of_all(node.nodes[i], reached);
        }
        return reached.contains(text_.size());
      }
      case NaiveNode::Kind::choice:
        return std::any_of(node.nodes.begin(), node.nodes.end(),
                           [&](const NaiveNode& part) { return opens(part, from); });
      case NaiveNode::Kind::repeat: {
        std::set<std::size_t> reached = {from};
        const int max = node.max >= 0 ? node.max : node.min + static_cast<int>(text_.size());
        for (int n = 1; n <= max && !reached.empty(); ++n) {
          for (const std::size_t at : reached) {
            if (at < text_.size() && opens(node.nodes[0], at)) return true;
          }
          reached = ends_of_all(node.nodes[0], reached);
          if (reached.contains(text_.size())) return true;
        }
        return false;
      }
      case NaiveNode::Kind::call:
        break;
    }
    const auto key = std::pair(node.rule, from);
    const auto known = opens_of_rule_.find(key);
    if (known != opens_of_rule_.end()) return known->second;
    const bool result = opens(rules[static_cast<std::size_t>(node.rule)], from);
    return opens_of_rule_[key] = result;
  }

  // Where a match of the part from `from` on may end. Terminates because there is no left
  // recursion.
  std::set<std::size_t> ends(const NaiveNode& node, std::size_t from) {
    std::set<std::size_t> result;
    switch (node.kind) {
      case NaiveNode::Kind::literal:
        if (text_.compare(from, node.text.size(), node.text) == 0) {
          result.insert(from + node.text.size());
        }
        return result;
      case NaiveNode::Kind::one_of:
        if (from < text_.size() && node.text.find(text_[from]) != std::string::npos) {
          result.insert(from + 1);
        }
        return result;
      case NaiveNode::Kind::sequence:
        result = {from};
        for (const NaiveNode& part : node.nodes) result = ends_of_all(part, result);
        return result;
      case NaiveNode::Kind::choice:
        for (const NaiveNode& part : node.nodes) result.merge(ends(part, from));
        return result;
      case NaiveNode::Kind::repeat: {
        std::set<std::size_t> reached = {from};
        if (node.min == 0) result = reached;
        const int max = node.max >= 0 ? node.max : node.min + static_cast<int>(text_.size());
        for (int n = 1; n <= max && !reached.empty(); ++n) {
          reached = ends_of_all(node.nodes[0], reached);
          if (n >= node.min) result.insert(reached.begin(), reached.end());
        }
        return result;
      }
      case NaiveNode::Kind::call:
        break;
    }
    const auto key = std::pair(node.rule, from);
    const auto known = ends_of_rule_.find(key);
    if (known != ends_of_rule_.end()) return known->second;
    result = ends(rules[static_cast<std::size_t>(node.rule)], from);
    return ends_of_rule_[key] = result;
  }

  std::set<std::size_t> ends_of_all(const NaiveNode& node, const std::set<std::size_t>& from) {
    std::set<std::size_t> result;
    for (const std::size_t at : from) result.merge(ends(node, at));
    return result;
  }

  std::string text_;
  std::map<std::pair<int, std::size_t>, std::set<std::size_t>> ends_of_rule_;
  std::map<std::pair<int, std::size_t>, bool> opens_of_rule_;
  std::vector<bool> productive_;  // of rules
};

// A random grammar over the letters a to c, without left recursion: a rule is called after a
// letter, or from an earlier rule.
inline NaiveGrammar random_grammar(std::mt19937& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  const int n_rules = 1 + below(4);
  std::function<NaiveNode(int, int, bool)> node = [&](int rule, int depth,
                                                      bool behind) -> NaiveNode {
    const int kind = below(depth > 3 ? 2 : 8);
    const auto letters = [&](int max) {
      std::string text;
      for (int n = 1 + below(max); n > 0; --n) text += static_cast<char>('a' + below(3));
      return text;
    };
    if (kind == 0) return {.kind = NaiveNode::Kind::literal, .text = letters(2)};
    if (kind == 1) return {.kind = NaiveNode::Kind::one_of, .text = letters(3)};
    if (kind <= 3) {
      NaiveNode result{.kind = NaiveNode::Kind::sequence};
      const bool starts = below(2) == 0;  // with a letter; then any rule may be called
      if (starts) result.nodes.push_back({.kind = NaiveNode::Kind::literal, .text = letters(1)});
      for (int n = below(3); n > 0; --n)
        result.nodes.push_back(node(rule, depth + 1, behind || starts));
      return result;
    }
    if (kind == 4) {
      NaiveNode result{.kind = NaiveNode::Kind::choice};
      for (int n = 1 + below(3); n > 0; --n) result.nodes.push_back(node(rule, depth + 1, behind));
      return result;
    }
    if (kind <= 6) {
      NaiveNode result{.kind = NaiveNode::Kind::repeat};
      result.nodes.push_back(node(rule, depth + 1, behind));
      result.min = below(4);
      result.max = below(3) == 0 ? -1 : result.min + below(3);
      return result;
    }
    const int callee = behind ? below(n_rules) : rule + 1 + below(std::max(1, n_rules - rule - 1));
    if (callee >= n_rules) return {.kind = NaiveNode::Kind::literal, .text = letters(1)};
    return {.kind = NaiveNode::Kind::call, .rule = callee};
  };
  NaiveGrammar grammar;
  for (int rule = 0; rule < n_rules; ++rule) grammar.rules.push_back(node(rule, 0, false));
  return grammar;
}

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_NAIVE_GRAMMAR_H_
