// SPDX-License-Identifier: Apache-2.0
// The commands of a program and their flags as data, read from CLI11's description. Shell
// completions and manual pages are generated from it.
#ifndef OUTRIDER_APPS_CLI_COMMAND_TREE_H_
#define OUTRIDER_APPS_CLI_COMMAND_TREE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace outrider::cli {

enum class ValueKind { none, any, file, folder, choice };

struct FlagDescription {
  std::vector<std::string> names = {};  // "-m", "--model"; of a positional: "PATH"
  std::string value = {};               // placeholder of the value: "PATH"; empty: no value
  ValueKind kind = ValueKind::none;
  std::vector<std::string> choices = {};  // of ValueKind::choice
  bool completes_prefix = false;          // a choice may continue, as "model" in "model:PATH"
  bool repeatable = false;
  bool is_place = false;
  std::string group = {};
  std::string description = {};
};

struct CommandDescription {
  std::string name = {};
  std::string description = {};
  std::string footer = {};  // the examples
  std::vector<FlagDescription> flags = {};
  std::vector<CommandDescription> commands = {};  // without those hidden from the help
};

CommandDescription describe_commands(const CLI::App& app);

// To one line of JSON, and back; the second throws nlohmann::json::exception.
std::string json_text(const CommandDescription& command);
CommandDescription command_from_json(const std::string& text);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_COMMAND_TREE_H_
