// SPDX-License-Identifier: Apache-2.0
#include "chat_template/parsing/variables_named.h"

#include <algorithm>

namespace outrider::jinja {
namespace {

bool names(const ExpressionPtr& node, std::string_view name) {
  if (!node) return false;
  if (node->kind == Expression::Kind::variable && node->name == name) return true;
  const auto any = [name](const std::vector<ExpressionPtr>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [name](const ExpressionPtr& one) { return names(one, name); });
  };
  return any(node->parts) || any(node->arguments) ||
         std::any_of(node->named_arguments.begin(), node->named_arguments.end(),
                     [name](const auto& named) { return names(named.second, name); }) ||
         names(node->more_arguments, name) || names(node->more_named_arguments, name);
}

bool names(const Statement& node, std::string_view name) {
  return names(node.expression, name) || names(node.filter, name) ||
         std::any_of(node.branches.begin(), node.branches.end(),
                     [name](const Statement::Branch& branch) {
                       return names(branch.condition, name) || names_variable(branch.body, name);
                     }) ||
         std::any_of(node.values.begin(), node.values.end(),
                     [name](const ExpressionPtr& one) { return names(one, name); }) ||
         std::any_of(node.parameters.begin(), node.parameters.end(),
                     [name](const Parameter& one) { return names(one.default_value, name); }) ||
         names_variable(node.body, name) || names_variable(node.orelse, name);
}

}  // namespace

bool names_variable(const Block& block, std::string_view name) {
  return std::any_of(block.begin(), block.end(),
                     [name](const auto& statement) { return names(*statement, name); });
}

}  // namespace outrider::jinja
