// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/command_tree.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/cli/help_format.h"

namespace outrider::cli {
namespace {

using TreeJson = nlohmann::ordered_json;

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// "f32|bf16" lists the values; "NAME|FILE" describes them.
bool lists_values(const std::string& value) {
  return value.find('|') != std::string::npos &&
         std::none_of(value.begin(), value.end(),
                      [](unsigned char c) { return std::isupper(c) != 0; });
}

ValueKind kind_of(const std::string& value) {
  if (value.empty()) return ValueKind::none;
  if (lists_values(value)) return ValueKind::choice;
  if (value.starts_with("DIR")) return ValueKind::folder;
  for (const char* const path : {"PATH", "FILE", "TARGET"}) {
    if (value.find(path) != std::string::npos) return ValueKind::file;
  }
  return ValueKind::any;
}

FlagDescription describe_flag(const CLI::Option& option) {
  FlagDescription flag;
  flag.is_place = option.get_positional();
  if (flag.is_place) {
    flag.names = {option.get_name(true)};
  } else {
    flag.names = split_at(option.get_name(false, true), ',');
  }
  if (option.get_type_size() != 0) flag.value = value_name(option);
  if (flag.is_place && flag.value.empty()) flag.value = flag.names.front();
  flag.kind = kind_of(flag.value);
  if (flag.kind == ValueKind::choice) flag.choices = split_at(flag.value, '|');
  flag.repeatable = option.get_items_expected_max() > 1 ||
                    option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  flag.group = option.get_group();
  flag.description = option.get_description();
  return flag;
}

}  // namespace

CommandDescription describe_commands(const CLI::App& app) {
  CommandDescription command{
      .name = app.get_name(), .description = app.get_description(), .footer = app.get_footer()};
  for (const std::string& group : app.get_groups()) {
    for (const CLI::Option* option :
         app.get_options([&](const CLI::Option* one) { return one->get_group() == group; })) {
      if (!group.empty()) command.flags.push_back(describe_flag(*option));
    }
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!below->get_group().empty()) command.commands.push_back(describe_commands(*below));
  }
  return command;
}

namespace {

TreeJson json_of(const CommandDescription& command) {
  TreeJson flags = TreeJson::array();
  for (const FlagDescription& flag : command.flags) {
    flags.push_back({{"names", flag.names},
                     {"value", flag.value},
                     {"kind", static_cast<int>(flag.kind)},
                     {"choices", flag.choices},
                     {"completes_prefix", flag.completes_prefix},
                     {"repeatable", flag.repeatable},
                     {"is_place", flag.is_place},
                     {"group", flag.group},
                     {"description", flag.description}});
  }
  TreeJson commands = TreeJson::array();
  for (const CommandDescription& below : command.commands) commands.push_back(json_of(below));
  return {{"name", command.name},
          {"description", command.description},
          {"footer", command.footer},
          {"flags", std::move(flags)},
          {"commands", std::move(commands)}};
}

CommandDescription command_of(const TreeJson& json) {
  CommandDescription command{
      .name = json.at("name"), .description = json.at("description"), .footer = json.at("footer")};
  for (const TreeJson& flag : json.at("flags")) {
    command.flags.push_back({.names = flag.at("names"),
                             .value = flag.at("value"),
                             .kind = static_cast<ValueKind>(flag.at("kind").get<int>()),
                             .choices = flag.at("choices"),
                             .completes_prefix = flag.at("completes_prefix"),
                             .repeatable = flag.at("repeatable"),
                             .is_place = flag.at("is_place"),
                             .group = flag.at("group"),
                             .description = flag.at("description")});
  }
  for (const TreeJson& below : json.at("commands")) command.commands.push_back(command_of(below));
  return command;
}

}  // namespace

std::string json_text(const CommandDescription& command) { return json_of(command).dump() + "\n"; }

CommandDescription command_from_json(const std::string& text) {
  return command_of(TreeJson::parse(text));
}

}  // namespace outrider::cli
