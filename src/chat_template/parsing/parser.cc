// SPDX-License-Identifier: Apache-2.0
#include "chat_template/parsing/parser.h"

#include <algorithm>
#include <initializer_list>

#include "chat_template/parsing/expression_parser.h"
#include "chat_template/parsing/token_stream.h"
#include "chat_template/parsing/variables_named.h"

namespace outrider::jinja {
namespace {

using Node = Statement::Kind;

// Parses the statements of one template. The number of open blocks limits the recursion.
class StatementParser {
 public:
  StatementParser(std::string_view text, Heap& heap)
      : tokens_(split_tokens(text)), expressions_(tokens_, heap) {}

  Block run() {
    Block block = statements({});
    return block;
  }

 private:
  using StatementPtr = std::unique_ptr<Statement>;

  StatementPtr make(Node kind) const {
    auto node = std::make_unique<Statement>();
    node->kind = kind;
    node->line = tokens_.line();
    return node;
  }

  bool at_any(std::initializer_list<std::string_view> ends) const {
    return std::any_of(ends.begin(), ends.end(),
                       [this](std::string_view end) { return tokens_.is_name(end); });
  }

  // Parses up to a block that begins with one of the names `ends`, which is then the current token;
  // with no names, to the end of the template.
  Block statements(std::initializer_list<std::string_view> ends) {
    if (++n_open_ > kDeepestSyntax) {
      syntax_error(tokens_.line(),
                   fmt::format("expected blocks nested at most {} deep, got more", kDeepestSyntax));
    }
    Block block;
    for (;;) {
      if (tokens_.is(Token::Kind::end)) {
        if (ends.size() > 0) tokens_.fail_expected(fmt::format("{{% {} %}}", *(ends.end() - 1)));
        break;
      }
      if (tokens_.is(Token::Kind::data)) {
        StatementPtr node = make(Node::text);
        node->text = tokens_.take().text;
        block.push_back(std::move(node));
      } else if (tokens_.is(Token::Kind::print_begin)) {
        StatementPtr node = make(Node::print);
        tokens_.take();
        node->expression = expressions_.expressions(true);
        tokens_.expect(Token::Kind::print_end, "'}}'");
        block.push_back(std::move(node));
      } else {
        tokens_.expect(Token::Kind::block_begin, "a statement");
        if (at_any(ends)) break;
        statement(block);
        end_of_tag();
      }
    }
    --n_open_;
    return block;
  }

  void end_of_tag() { tokens_.expect(Token::Kind::block_end, "'%}'"); }

  // The body of a statement whose tag ends here.
  Block body(std::initializer_list<std::string_view> ends) {
    tokens_.take_symbol(":");
    end_of_tag();
    return statements(ends);
  }
  Block body_until(std::string_view end) {
    Block block = body({end});
    tokens_.take();
    return block;
  }

  void statement(Block& block) {
    if (!tokens_.is(Token::Kind::name)) tokens_.fail_expected("a statement");
    const std::string name = tokens_.current().text;
    if (name == "print") {
      print(block);
      return;
    }
    block.push_back(one_statement(name));
  }

  StatementPtr one_statement(const std::string& name) {
    if (name == "if") return condition();
    if (name == "for") return loop();
    if (name == "set") return assignment();
    if (name == "macro") return macro();
    if (name == "call") return call_block();
    if (name == "filter") return filter_block();
    if (name == "with") return with();
    if (name == "generation") return generation();
    if (name == "break" || name == "continue") return jump(name);
    syntax_error(tokens_.line(), fmt::format("expected a known statement, got '{}'", name));
  }

  void print(Block& block) {
    tokens_.take();
    while (!tokens_.is(Token::Kind::block_end)) {
      StatementPtr node = make(Node::print);
      node->expression = expressions_.expression();
      block.push_back(std::move(node));
      if (!tokens_.is(Token::Kind::block_end)) tokens_.expect_symbol(",");
    }
  }

  StatementPtr condition() {
    StatementPtr node = make(Node::condition);
    tokens_.take();
    for (;;) {
      ExpressionPtr test = expressions_.expressions(false);
      Block block = body({"elif", "else", "endif"});
      node->branches.push_back({std::move(test), std::move(block)});
      if (tokens_.take_name("elif")) continue;
      if (tokens_.take_name("else")) {
        node->branches.push_back({nullptr, body_until("endif")});
      } else {
        tokens_.take();
      }
      return node;
    }
  }

  StatementPtr loop() {
    StatementPtr node = make(Node::loop);
    tokens_.take();
    ++n_around_;
    node->target = target(false, "in");
    tokens_.expect_name("in");
    node->expression = expressions_.expressions(false, "recursive");
    if (tokens_.take_name("if")) node->filter = expressions_.expression();
    node->recursive = tokens_.take_name("recursive");
    ++n_loops_;
    node->body = body({"endfor", "else"});
    --n_loops_;
    node->uses_loop = node->recursive || names_variable(node->body, "loop");
    if (tokens_.take_name("else")) {
      const int outer = std::exchange(n_loops_, node->recursive ? 0 : n_loops_);
      node->orelse = body_until("endfor");
      n_loops_ = outer;
    } else {
      tokens_.take();
    }
    --n_around_;
    return node;
  }

  StatementPtr jump(const std::string& name) {
    if (n_loops_ == 0) {
      syntax_error(tokens_.line(),
                   fmt::format("expected '{}' within a loop, got it outside", name));
    }
    StatementPtr node = make(name == "break" ? Node::break_loop : Node::continue_loop);
    tokens_.take();
    return node;
  }

  StatementPtr assignment() {
    StatementPtr node = make(Node::assign);
    tokens_.take();
    node->target = target(true);
    if (tokens_.take_symbol("=")) {
      node->expression = expressions_.expressions(true);
      return node;
    }
    node->kind = Node::assign_block;
    if (tokens_.take_symbol("|")) node->filter = expressions_.filter_chain(nullptr);
    node->body = body_until("endset");
    return node;
  }

  // Refuses literals as targets, and a namespace's attribute where none is allowed.
  Target target(bool with_attributes, std::string_view end = {}) {
    Target all{.kind = Target::Kind::unpacked, .name = {}, .attribute = {}, .parts = {}};
    bool is_tuple = false;
    for (;;) {
      const bool at_end = tokens_.is(Token::Kind::block_end) || tokens_.is_symbol(")") ||
                          (!end.empty() && tokens_.is_name(end));
      if (at_end && (is_tuple || tokens_.is_symbol(")"))) break;
      all.parts.push_back(one_target(with_attributes));
      if (!tokens_.take_symbol(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && all.parts.size() == 1) return std::move(all.parts.front());
    return all;
  }

  Target one_target(bool with_attributes) {
    if (tokens_.take_symbol("(")) {
      if (++n_open_ > kDeepestSyntax) tokens_.fail_expected("fewer parentheses");
      Target inner = target(false);
      --n_open_;
      tokens_.expect_symbol(")");
      return inner;
    }
    Target one;
    one.name = target_name();
    if (n_around_ > 0 && one.name == "loop") {
      syntax_error(tokens_.line(), "expected another variable than 'loop' within a loop, got that");
    }
    if (with_attributes && tokens_.take_symbol(".")) {
      one.kind = Target::Kind::attribute;
      one.attribute = tokens_.expect_any_name();
    }
    return one;
  }

  std::string target_name() {
    constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    for (const std::string_view constant : kConstants) {
      if (tokens_.is_name(constant)) tokens_.fail_expected("the name of a variable");
    }
    return tokens_.expect_any_name();
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> found;
    bool has_default = false;
    tokens_.expect_symbol("(");
    while (!tokens_.is_symbol(")")) {
      if (!found.empty()) tokens_.expect_symbol(",");
      Parameter one{.name = target_name(), .default_value = nullptr};
      for (const Parameter& other : found) {
        if (other.name == one.name) tokens_.fail_expected("parameters of different names");
      }
      if (tokens_.take_symbol("=")) {
        one.default_value = expressions_.expression();
        has_default = true;
      } else if (has_default) {
        tokens_.fail_expected("a default value behind others");
      }
      found.push_back(std::move(one));
    }
    tokens_.take();
    return found;
  }

  // A body that is a function of its own: break and continue cannot reach loops around it.
  void function_body(Statement& node, std::string_view end) {
    const int outer = std::exchange(n_loops_, 0);
    node.body = body_until(end);
    n_loops_ = outer;
    const auto is_parameter = [&node](std::string_view name) {
      return std::any_of(node.parameters.begin(), node.parameters.end(),
                         [name](const Parameter& one) { return one.name == name; });
    };
    node.takes_varargs = !is_parameter("varargs") && names_variable(node.body, "varargs");
    node.takes_kwargs = !is_parameter("kwargs") && names_variable(node.body, "kwargs");
    node.takes_caller = !is_parameter("caller") && names_variable(node.body, "caller");
  }

  StatementPtr macro() {
    StatementPtr node = make(Node::macro);
    tokens_.take();
    node->name = target_name();
    node->parameters = parameters();
    for (const Parameter& one : node->parameters) {
      if (one.name == "caller" && !one.default_value) {
        syntax_error(node->line, "expected a default value of the parameter 'caller', got none");
      }
    }
    function_body(*node, "endmacro");
    return node;
  }

  StatementPtr call_block() {
    StatementPtr node = make(Node::call_block);
    tokens_.take();
    if (tokens_.is_symbol("(")) node->parameters = parameters();
    node->expression = expressions_.expression();
    if (node->expression->kind != Expression::Kind::call) {
      syntax_error(node->line, "expected a call, got another expression");
    }
    function_body(*node, "endcall");
    return node;
  }

  StatementPtr filter_block() {
    StatementPtr node = make(Node::filter_block);
    tokens_.take();
    node->expression = expressions_.filter_chain(nullptr);
    node->body = body_until("endfilter");
    return node;
  }

  StatementPtr with() {
    StatementPtr node = make(Node::with);
    tokens_.take();
    while (!tokens_.is(Token::Kind::block_end)) {
      if (!node->targets.empty()) tokens_.expect_symbol(",");
      node->targets.push_back(one_target(false));
      tokens_.expect_symbol("=");
      node->values.push_back(expressions_.expression());
    }
    node->body = body_until("endwith");
    return node;
  }

  // What the assistant says, marked for training: a prompt contains just its text.
  StatementPtr generation() {
    StatementPtr node = make(Node::scope);
    tokens_.take();
    const int outer = std::exchange(n_loops_, 0);
    node->body = body_until("endgeneration");
    n_loops_ = outer;
    return node;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int n_open_ = 0;
  int n_loops_ = 0;   // loops that break and continue may leave
  int n_around_ = 0;  // all enclosing blocks
};

}  // namespace

Block parse_template(std::string_view text, Heap& heap) {
  return StatementParser(text, heap).run();
}

}  // namespace outrider::jinja
