// SPDX-License-Identifier: Apache-2.0
#include "chat_template/parsing/expression_parser.h"

#include <algorithm>
#include <array>
#include <optional>

namespace outrider::jinja {
namespace {

using Node = Expression::Kind;

std::optional<Operator> comparison_of(const Token& token) {
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kComparisons = {{
      {"==", Operator::equal},
      {"!=", Operator::not_equal},
      {"<", Operator::less},
      {"<=", Operator::less_equal},
      {">", Operator::greater},
      {">=", Operator::greater_equal},
  }};
  if (token.kind != Token::Kind::symbol) return std::nullopt;
  for (const auto& [text, operation] : kComparisons) {
    if (token.text == text) return operation;
  }
  return std::nullopt;
}

std::optional<Operator> factor_of(const Token& token) {
  if (TokenStream::is_symbol(token, "*")) return Operator::multiply;
  if (TokenStream::is_symbol(token, "/")) return Operator::divide;
  if (TokenStream::is_symbol(token, "//")) return Operator::floor_divide;
  if (TokenStream::is_symbol(token, "%")) return Operator::modulo;
  return std::nullopt;
}

[[noreturn]] void too_deep(int line) {
  syntax_error(
      line, fmt::format("expected expressions nested at most {} deep, got more", kDeepestSyntax));
}

}  // namespace

// Limits the recursion of the parser.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(&parser) {
    if (++parser.n_nested_ > kDeepestSyntax) too_deep(parser.tokens_->line());
  }
  ~Nesting() { --parser_->n_nested_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExpressionParser* parser_;
};

ExpressionPtr ExpressionParser::make(Node kind, int line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

// Limits the depth of the tree, which long chains of operators increase as well.
ExpressionPtr ExpressionParser::sealed(ExpressionPtr node) const {
  int depth = 0;
  const auto look_at = [&depth](const ExpressionPtr& part) {
    if (part) depth = std::max(depth, part->depth);
  };
  for (const ExpressionPtr& part : node->parts) look_at(part);
  for (const ExpressionPtr& part : node->arguments) look_at(part);
  for (const auto& named : node->named_arguments) look_at(named.second);
  look_at(node->more_arguments);
  look_at(node->more_named_arguments);
  node->depth = depth + 1;
  if (node->depth > kDeepestSyntax) too_deep(node->line);
  return node;
}

ExpressionPtr ExpressionParser::binary(Operator operation, ExpressionPtr left, ExpressionPtr right,
                                       int line) const {
  ExpressionPtr node = make(Node::binary, line);
  node->binary_operator = operation;
  node->parts.push_back(std::move(left));
  node->parts.push_back(std::move(right));
  return sealed(std::move(node));
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  return tokens_->is(Token::Kind::print_end) || tokens_->is(Token::Kind::block_end) ||
         tokens_->is_symbol(")") || (!end.empty() && tokens_->is_name(end));
}

ExpressionPtr ExpressionParser::expressions(bool with_choice, std::string_view end) {
  return tuple(with_choice, end, false);
}

ExpressionPtr ExpressionParser::tuple(bool with_choice, std::string_view end, bool in_parentheses) {
  const Nesting nesting(*this);
  const int line = tokens_->line();
  ExpressionPtr node = make(Node::tuple, line);
  bool is_tuple = false;
  while (!at_tuple_end(end)) {
    node->parts.push_back(with_choice ? choice() : logical_or());
    if (!tokens_->take_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!node->parts.empty()) return std::move(node->parts.front());
    if (!in_parentheses) tokens_->fail_expected("an expression");
  }
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::choice() {
  const Nesting nesting(*this);
  ExpressionPtr value = logical_or();
  while (tokens_->is_name("if")) {
    ExpressionPtr node = make(Node::choice, tokens_->take().line);
    node->parts.push_back(std::move(value));
    node->parts.push_back(logical_or());
    node->parts.push_back(tokens_->take_name("else") ? choice() : nullptr);
    value = sealed(std::move(node));
  }
  return value;
}

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (tokens_->is_name("or")) {
    ExpressionPtr node = make(Node::logical_or, tokens_->take().line);
    node->parts.push_back(std::move(left));
    node->parts.push_back(logical_and());
    left = sealed(std::move(node));
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (tokens_->is_name("and")) {
    ExpressionPtr node = make(Node::logical_and, tokens_->take().line);
    node->parts.push_back(std::move(left));
    node->parts.push_back(logical_not());
    left = sealed(std::move(node));
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!tokens_->is_name("not")) return compare();
  const Nesting nesting(*this);
  ExpressionPtr node = make(Node::logical_not, tokens_->take().line);
  node->parts.push_back(logical_not());
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::compare() {
  const int line = tokens_->line();
  ExpressionPtr first = sum();
  ExpressionPtr node = make(Node::compare, line);
  node->parts.push_back(std::move(first));
  for (;;) {
    if (const auto operation = comparison_of(tokens_->current())) {
      tokens_->take();
      node->operators.push_back(*operation);
    } else if (tokens_->take_name("in")) {
      node->operators.push_back(Operator::in);
    } else if (tokens_->is_name("not") && TokenStream::is_name(tokens_->next(), "in")) {
      tokens_->take();
      tokens_->take();
      node->operators.push_back(Operator::not_in);
    } else {
      break;
    }
    node->parts.push_back(sum());
  }
  if (node->operators.empty()) return std::move(node->parts.front());
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concat();
  while (tokens_->is_symbol("+") || tokens_->is_symbol("-")) {
    const Token sign = tokens_->take();
    left = binary(sign.text == "+" ? Operator::add : Operator::subtract, std::move(left), concat(),
                  sign.line);
  }
  return left;
}

ExpressionPtr ExpressionParser::concat() {
  const int line = tokens_->line();
  ExpressionPtr first = product();
  if (!tokens_->is_symbol("~")) return first;
  ExpressionPtr node = make(Node::concat, line);
  node->parts.push_back(std::move(first));
  while (tokens_->take_symbol("~")) node->parts.push_back(product());
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (const auto operation = factor_of(tokens_->current())) {
    const int line = tokens_->take().line;
    left = binary(*operation, std::move(left), power(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (tokens_->is_symbol("**")) {
    const int line = tokens_->take().line;
    left = binary(Operator::power, std::move(left), unary(true), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const Nesting nesting(*this);
  ExpressionPtr node;
  if (tokens_->is_symbol("-") || tokens_->is_symbol("+")) {
    const Token sign = tokens_->take();
    node = make(sign.text == "-" ? Node::negative : Node::positive, sign.line);
    node->parts.push_back(unary(false));
    node = sealed(std::move(node));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_checks(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::name_or_constant() {
  const Token token = tokens_->take();
  ExpressionPtr node = make(Node::constant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->value = Value::boolean(true);
  } else if (token.text == "false" || token.text == "False") {
    node->value = Value::boolean(false);
  } else if (token.text == "none" || token.text == "None") {
    node->value = Value::none();
  } else {
    node->kind = Node::variable;
    node->name = token.text;
  }
  return node;
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = tokens_->current();
  const int line = token.line;
  switch (token.kind) {
    case Token::Kind::name:
      return name_or_constant();
    case Token::Kind::string: {
      std::string text;
      while (tokens_->is(Token::Kind::string)) text += tokens_->take().text;
      ExpressionPtr node = make(Node::constant, line);
      node->value = heap_->text(std::move(text));
      return node;
    }
    case Token::Kind::integer:
    case Token::Kind::real: {
      ExpressionPtr node = make(Node::constant, line);
      const Token number = tokens_->take();
      node->value = number.kind == Token::Kind::integer ? Value::integer(number.integer)
                                                        : Value::real(number.real);
      return node;
    }
    default:
      break;
  }
  if (tokens_->is_symbol("[")) return list();
  if (tokens_->is_symbol("{")) return dict();
  if (!tokens_->take_symbol("(")) tokens_->fail_expected("an expression");
  ExpressionPtr node = tuple(true, {}, true);
  tokens_->expect_symbol(")");
  return node;
}

ExpressionPtr ExpressionParser::list() {
  ExpressionPtr node = make(Node::list, tokens_->take().line);
  while (!tokens_->is_symbol("]")) {
    node->parts.push_back(expression());
    if (!tokens_->is_symbol("]")) tokens_->expect_symbol(",");
  }
  tokens_->take();
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr node = make(Node::dict, tokens_->take().line);
  while (!tokens_->is_symbol("}")) {
    node->parts.push_back(expression());
    tokens_->expect_symbol(":");
    node->parts.push_back(expression());
    if (!tokens_->is_symbol("}")) tokens_->expect_symbol(",");
  }
  tokens_->take();
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  for (;;) {
    if (tokens_->is_symbol(".")) {
      node = attribute(std::move(node));
    } else if (tokens_->is_symbol("[")) {
      node = subscript(std::move(node));
    } else if (tokens_->is_symbol("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_checks(ExpressionPtr node) {
  for (;;) {
    if (tokens_->take_symbol("|")) {
      node = filter(std::move(node));
    } else if (tokens_->take_name("is")) {
      node = check(std::move(node));
    } else if (tokens_->is_symbol("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr node) {
  const int line = tokens_->take().line;
  ExpressionPtr made = make(Node::attribute, line);
  made->parts.push_back(std::move(node));
  if (tokens_->is(Token::Kind::integer)) {
    made->kind = Node::item;
    ExpressionPtr number = make(Node::constant, line);
    number->value = Value::integer(tokens_->take().integer);
    made->parts.push_back(std::move(number));
  } else if (tokens_->is(Token::Kind::name)) {
    made->name = tokens_->take().text;
  } else {
    tokens_->fail_expected("a name or a number");
  }
  return sealed(std::move(made));
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  ExpressionPtr made = make(Node::item, tokens_->take().line);
  made->parts.push_back(std::move(node));
  ExpressionPtr several = make(Node::tuple, made->line);
  while (!tokens_->is_symbol("]")) {
    if (!several->parts.empty()) tokens_->expect_symbol(",");
    several->parts.push_back(subscribed());
  }
  tokens_->take();
  made->parts.push_back(several->parts.size() == 1 ? std::move(several->parts.front())
                                                   : sealed(std::move(several)));
  return sealed(std::move(made));
}

ExpressionPtr ExpressionParser::subscribed() {
  ExpressionPtr start = tokens_->is_symbol(":") ? nullptr : expression();
  if (!tokens_->is_symbol(":")) return start;
  ExpressionPtr node = make(Node::slice, tokens_->take().line);
  const auto part = [this]() -> ExpressionPtr {
    const bool left_out =
        tokens_->is_symbol(":") || tokens_->is_symbol("]") || tokens_->is_symbol(",");
    return left_out ? nullptr : expression();
  };
  node->parts.push_back(std::move(start));
  node->parts.push_back(part());
  node->parts.push_back(tokens_->take_symbol(":") ? part() : nullptr);
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  ExpressionPtr made = make(Node::call, tokens_->line());
  made->parts.push_back(std::move(node));
  arguments(*made);
  return sealed(std::move(made));
}

void ExpressionParser::arguments(Expression& node) {
  tokens_->expect_symbol("(");
  const auto ensure = [&](bool in_order) {
    if (!in_order) tokens_->fail_expected("arguments by name behind those without, * and ** last");
  };
  while (!tokens_->is_symbol(")")) {
    if (tokens_->take_symbol("*")) {
      ensure(!node.more_arguments && !node.more_named_arguments);
      node.more_arguments = expression();
    } else if (tokens_->take_symbol("**")) {
      ensure(!node.more_named_arguments);
      node.more_named_arguments = expression();
    } else if (tokens_->is(Token::Kind::name) && TokenStream::is_symbol(tokens_->next(), "=")) {
      ensure(!node.more_named_arguments);
      std::string name = tokens_->take().text;
      tokens_->take();
      const bool is_new = std::none_of(node.named_arguments.begin(), node.named_arguments.end(),
                                       [&](const auto& named) { return named.first == name; });
      if (!is_new) {
        syntax_error(tokens_->line(), fmt::format("expected '{}' once, got it twice", name));
      }
      node.named_arguments.emplace_back(std::move(name), expression());
    } else {
      ensure(!node.more_arguments && !node.more_named_arguments && node.named_arguments.empty());
      node.arguments.push_back(expression());
    }
    if (!tokens_->is_symbol(")")) tokens_->expect_symbol(",");
  }
  tokens_->take();
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_->expect_any_name();
  while (tokens_->take_symbol(".")) name.append(1, '.').append(tokens_->expect_any_name());
  return name;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr subject) {
  ExpressionPtr node = make(Node::filter, tokens_->line());
  node->name = dotted_name();
  node->parts.push_back(std::move(subject));
  if (tokens_->is_symbol("(")) arguments(*node);
  return sealed(std::move(node));
}

ExpressionPtr ExpressionParser::filter_chain(ExpressionPtr subject) {
  ExpressionPtr node = filter(std::move(subject));
  while (tokens_->take_symbol("|")) node = filter(std::move(node));
  return node;
}

ExpressionPtr ExpressionParser::check(ExpressionPtr subject) {
  const Nesting nesting(*this);
  ExpressionPtr node = make(Node::check, tokens_->line());
  const bool negated = tokens_->take_name("not");
  node->name = dotted_name();
  node->parts.push_back(std::move(subject));
  const Token& token = tokens_->current();
  const bool begins_operand =
      token.kind == Token::Kind::string || token.kind == Token::Kind::integer ||
      token.kind == Token::Kind::real || tokens_->is_symbol("[") || tokens_->is_symbol("{") ||
      (token.kind == Token::Kind::name && token.text != "else" && token.text != "or" &&
       token.text != "and");
  if (tokens_->is_symbol("(")) {
    arguments(*node);
  } else if (tokens_->is_name("is")) {
    tokens_->fail_expected("one test");
  } else if (begins_operand) {
    node->arguments.push_back(postfix(primary()));
  }
  node = sealed(std::move(node));
  if (!negated) return node;
  ExpressionPtr made = make(Node::logical_not, node->line);
  made->parts.push_back(std::move(node));
  return sealed(std::move(made));
}

}  // namespace outrider::jinja
