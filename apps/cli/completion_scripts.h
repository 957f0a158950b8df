// SPDX-License-Identifier: Apache-2.0
// Generates scripts that complete a program's commands, flags and values in a shell.
#ifndef OUTRIDER_APPS_CLI_COMPLETION_SCRIPTS_H_
#define OUTRIDER_APPS_CLI_COMPLETION_SCRIPTS_H_

#include <string>

#include "apps/cli/command_tree.h"

namespace outrider::cli {

// For bash 4 or later, zsh (as an autoloaded function or sourced) and fish 3 or later. The scripts
// find the current command as CLI11 does: from command to subcommand, skipping flags and their
// values. The empty path "" is the program itself.
std::string bash_completion(const CommandDescription& program);
std::string zsh_completion(const CommandDescription& program);
std::string fish_completion(const CommandDescription& program);

// `text` with every @ replaced by the program's name.
std::string with_name(const std::string& text, const std::string& name);

// A text in single quotes, in the syntax of the shell.
std::string quoted_for_sh(const std::string& text);  // bash and zsh
std::string quoted_for_fish(const std::string& text);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_COMPLETION_SCRIPTS_H_
