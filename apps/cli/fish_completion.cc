// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "apps/cli/completion_scripts.h"
#include "apps/cli/help_format.h"

namespace outrider::cli {

std::string quoted_for_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

namespace {

struct FishLines {
  std::string paths;     // all commands, as "train lm"
  std::string complete;  // their completion lines

  void add(const CommandDescription& command, const std::string& program, const std::string& path) {
    const std::string line =
        fmt::format("complete -c {} -n {}", program,
                    quoted_for_fish(fmt::format("__{}_at {}", program, quoted_for_fish(path))));
    for (const CommandDescription& one : command.commands) {
      const std::string one_path = path.empty() ? one.name : path + " " + one.name;
      paths += " " + quoted_for_fish(one_path);
      complete += fmt::format("{} -f -a {} -d {}\n", line, one.name,
                              quoted_for_fish(first_sentence(one.description)));
    }
    for (const FlagDescription& flag : command.flags) {
      if (!flag.is_place) {
        complete += line + flag_words(flag) + "\n";
      } else if (flag.kind == ValueKind::choice) {
        complete += fmt::format("{} -f -a {}\n", line,
                                quoted_for_fish(fmt::format("{}", fmt::join(flag.choices, " "))));
      }
    }
    for (const CommandDescription& one : command.commands) {
      add(one, program, path.empty() ? one.name : path + " " + one.name);
    }
  }

 private:
  static std::string flag_words(const FlagDescription& flag) {
    std::string words;
    for (const std::string& name : flag.names) {
      words += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    switch (flag.kind) {
      case ValueKind::none:
        break;
      case ValueKind::any:
        words += " -x";
        break;
      case ValueKind::file:
        words += " -r -F";
        break;
      case ValueKind::folder:
        words += " -x -a '(__fish_complete_directories)'";
        break;
      case ValueKind::choice:
        words += " -x -a " + quoted_for_fish(fmt::format("{}", fmt::join(flag.choices, " ")));
        break;
    }
    return words + " -d " + quoted_for_fish(first_sentence(flag.description));
  }
};

constexpr const char* kFishHead = R"(# fish completion for @, made by "@ completion fish".

# Whether the words so far name this command, "" for the program itself.
function __@_at
    set -l command
    for word in (commandline -opc)[2..-1]
        set -l longer (string trim -- "$command $word")
        contains -- $longer $__@_commands; and set command $longer
    end
    test "$command" = "$argv[1]"
end

)";

}  // namespace

std::string fish_completion(const CommandDescription& program) {
  FishLines lines;
  lines.add(program, program.name, "");
  return with_name(kFishHead, program.name) +
         fmt::format("set -g __{}_commands{}\n\n", program.name, lines.paths) + lines.complete;
}

}  // namespace outrider::cli
