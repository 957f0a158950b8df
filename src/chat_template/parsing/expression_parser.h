// SPDX-License-Identifier: Apache-2.0
// Expressions of a template, by recursive descent. Not thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_EXPRESSION_PARSER_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_EXPRESSION_PARSER_H_

#include <string_view>

#include "chat_template/parsing/syntax.h"
#include "chat_template/parsing/token_stream.h"

namespace outrider::jinja {

class ExpressionParser {
 public:
  // `heap` owns the constants. Both must outlive the parser.
  ExpressionParser(TokenStream& tokens, Heap& heap) : tokens_(&tokens), heap_(&heap) {}

  ExpressionPtr expression() { return choice(); }
  // An expression, or several separated by commas as a tuple. Without choices, "if" ends it (in for
  // loops); so does the name `end`.
  ExpressionPtr expressions(bool with_choice, std::string_view end = {});
  // name | name(arguments) ... on `subject`, which is null in filter blocks; the name is the next
  // token.
  ExpressionPtr filter_chain(ExpressionPtr subject);

 private:
  class Nesting;

  ExpressionPtr make(Expression::Kind kind, int line) const;
  ExpressionPtr sealed(ExpressionPtr node) const;
  ExpressionPtr binary(Operator operation, ExpressionPtr left, ExpressionPtr right, int line) const;

  ExpressionPtr tuple(bool with_choice, std::string_view end, bool in_parentheses);
  ExpressionPtr choice();
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr compare();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_checks(ExpressionPtr node);
  ExpressionPtr attribute(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr subscribed();
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr filter(ExpressionPtr subject);
  ExpressionPtr check(ExpressionPtr subject);
  void arguments(Expression& node);
  std::string dotted_name();
  bool at_tuple_end(std::string_view end) const;

  TokenStream* tokens_;
  Heap* heap_;
  int n_nested_ = 0;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_EXPRESSION_PARSER_H_
