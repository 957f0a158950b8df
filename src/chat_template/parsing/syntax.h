// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template. Built once by the parser, then only read.
//
// There is one node type for expressions and one for statements, each with the parts that its kind
// uses. The tree is processed in one place (interpreter.h), so classes would only scatter the code.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_SYNTAX_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_SYNTAX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat_template/values/value.h"

namespace outrider::jinja {

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct Expression {
  enum class Kind : std::uint8_t {
    constant,   // value
    variable,   // name
    list,       // parts
    tuple,      // parts
    dict,       // parts: key, value, key, value, ...
    attribute,  // parts[0].name
    item,       // parts[0][parts[1]]
    slice,      // parts: start, stop, step; null where left out
    call,       // parts[0](arguments)
    filter,     // parts[0] | name(arguments); parts[0] null in filter blocks
    check,      // parts[0] is name(arguments)
    binary,     // parts[0] operator parts[1]
    compare,    // parts[0] operators[0] parts[1] operators[1] ...
    concat,     // parts joined by ~
    negative,   // -parts[0]
    positive,   // +parts[0]
    logical_not,
    logical_and,
    logical_or,
    choice,  // parts[0] if parts[1] else parts[2]; null without an else
  };
  Kind kind;
  Operator binary_operator = Operator::add;
  int line = 0;
  int depth = 1;
  std::string name;
  Value value;
  std::vector<std::unique_ptr<Expression>> parts;
  std::vector<Operator> operators;
  // For calls, filters and checks.
  std::vector<std::unique_ptr<Expression>> arguments;
  std::vector<std::pair<std::string, std::unique_ptr<Expression>>> named_arguments;
  std::unique_ptr<Expression> more_arguments;        // *list
  std::unique_ptr<Expression> more_named_arguments;  // **dict
};
using ExpressionPtr = std::unique_ptr<Expression>;

// The target of an assignment by set, for and with.
struct Target {
  enum class Kind : std::uint8_t { variable, attribute, unpacked };
  Kind kind = Kind::variable;
  std::string name;
  std::string attribute;  // of the namespace `name`
  std::vector<Target> parts;
};

struct Parameter {
  std::string name;
  ExpressionPtr default_value;  // null if there is none
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Statement {
  enum class Kind : std::uint8_t {
    text,          // text
    print,         // expression
    condition,     // branches; the last has no condition if it is an else
    loop,          // for target in expression if filter: body, else orelse
    assign,        // target = expression
    assign_block,  // target = output of body, through the filter if there is one
    macro,         // name(parameters): body
    call_block,    // expression is the call; body with parameters is its caller
    filter_block,  // expression is the filter
    with,          // targets = values: body
    scope,         // body with separate variables
    break_loop,
    continue_loop,
  };
  struct Branch {
    ExpressionPtr condition;
    Block body;
  };
  Kind kind;
  int line = 0;
  std::string text;
  std::string name;
  ExpressionPtr expression;
  ExpressionPtr filter;
  std::vector<Branch> branches;
  Target target;
  std::vector<Target> targets;
  std::vector<ExpressionPtr> values;
  std::vector<Parameter> parameters;
  Block body;
  Block orelse;
  bool recursive = false;
  bool uses_loop = false;  // the body of a loop uses `loop`
  // For macros and call blocks: whether the body uses varargs, kwargs or caller; only then the
  // macro takes such arguments.
  bool takes_varargs = false;
  bool takes_kwargs = false;
  bool takes_caller = false;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_SYNTAX_H_
