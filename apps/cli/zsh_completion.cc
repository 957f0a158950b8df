// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "apps/cli/completion_scripts.h"
#include "apps/cli/help_format.h"

namespace outrider::cli {
namespace {

// "outrider train lm" -> "_outrider_train_lm"
std::string zsh_function(const std::string& path) {
  std::string name = "_";
  for (const char c : path) name += c == ' ' || c == '-' ? '_' : c;
  return name;
}

// The first sentence of a description, with the punctuation of _arguments escaped.
std::string zsh_words(const std::string& description) {
  std::string words;
  for (const char c : first_sentence(description)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') words += '\\';
    words += c;
  }
  return words;
}

std::string zsh_action(const FlagDescription& flag) {
  switch (flag.kind) {
    case ValueKind::file:
      return "_files";
    case ValueKind::folder:
      return "_files -/";
    case ValueKind::choice:
      return flag.completes_prefix
                 ? fmt::format("{{compadd -S \"\" -- {}}}", fmt::join(flag.choices, " "))
                 : fmt::format("({})", fmt::join(flag.choices, " "));
    case ValueKind::any:
    case ValueKind::none:
      break;
  }
  return " ";  // a value about which nothing is known
}

// A flag's specifications for _arguments, one for each of its names.
std::string zsh_flag(const FlagDescription& flag) {
  std::string text;
  for (const std::string& name : flag.names) {
    std::string spec = flag.repeatable ? "*" : "";
    if (!flag.repeatable && flag.names.size() > 1) {
      spec = fmt::format("({})", fmt::join(flag.names, " "));
    }
    spec += name;
    if (flag.kind != ValueKind::none && name.starts_with("--")) spec += '=';
    spec += '[' + zsh_words(flag.description) + ']';
    if (flag.kind != ValueKind::none) spec += ":value:" + zsh_action(flag);
    text += " \\\n    " + quoted_for_sh(spec);
  }
  return text;
}

// A command's function, after those of the commands below it.
std::string zsh_command(const CommandDescription& command, const std::string& path) {
  std::string below;
  std::string names;
  std::string cases;
  for (const CommandDescription& one : command.commands) {
    const std::string one_path = path + " " + one.name;
    below += zsh_command(one, one_path);
    names += fmt::format("        {}\n",
                         quoted_for_sh(one.name + ":" + first_sentence(one.description)));
    cases += fmt::format("        {}) {} ;;\n", one.name, zsh_function(one_path));
  }
  std::string text = below + zsh_function(path) + "() {\n";
  std::string flags;
  std::string place = "'*:file:_files'";
  for (const FlagDescription& flag : command.flags) {
    if (!flag.is_place) {
      flags += zsh_flag(flag);
    } else if (flag.kind == ValueKind::choice) {
      place = quoted_for_sh("1:word:" + zsh_action(flag));
    }
  }
  if (command.commands.empty()) {
    return text + "  _arguments -S" + flags + " \\\n    " + place + "\n}\n\n";
  }
  text += "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n";
  text +=
      "  _arguments -C -S" + flags + " \\\n    '1:command:->command' '*::word:->words' && return\n";
  text += "  case $state in\n    command)\n      local -a commands\n      commands=(\n" + names;
  text +=
      "      )\n      _describe command commands\n      ;;\n    words)\n      case $line[1] in\n";
  return text + cases + "      esac\n      ;;\n  esac\n}\n\n";
}

constexpr const char* kZshHead =
    "#compdef @\n# zsh completion for @, made by \"@ completion zsh\".\n\n";
// If autoloaded, this file is the function's body; if sourced, it defines it.
constexpr const char* kZshTail = R"(if [[ ${funcstack[1]} == _@ ]]; then
  _@ $argv
else
  compdef _@ @
fi
)";

}  // namespace

std::string zsh_completion(const CommandDescription& program) {
  return with_name(kZshHead, program.name) + zsh_command(program, program.name) +
         with_name(kZshTail, program.name);
}

}  // namespace outrider::cli
