// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "apps/cli/completion_scripts.h"

namespace outrider::cli {

std::string with_name(const std::string& text, const std::string& name) {
  std::string named;
  for (const char c : text) {
    if (c == '@') {
      named += name;
    } else {
      named += c;
    }
  }
  return named;
}

std::string quoted_for_sh(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

namespace {

// The kind of a flag's value, for _outrider_value.
std::string bash_kind(const FlagDescription& flag) {
  switch (flag.kind) {
    case ValueKind::file:
      return "file";
    case ValueKind::folder:
      return "folder";
    case ValueKind::choice:
      return fmt::format("{} {}", flag.completes_prefix ? "begin" : "words",
                         fmt::join(flag.choices, " "));
    case ValueKind::any:
    case ValueKind::none:
      break;
  }
  return "any";
}

// The tables of one command and of all below it. `path` is "" or " generate".
struct BashTables {
  std::string below;  // the commands that may follow
  std::string flags;
  std::string values;  // kinds of its flags' values
  std::string places;  // kinds of its positional arguments that are not files

  void add(const CommandDescription& command, const std::string& path) {
    std::vector<std::string> names;
    for (const CommandDescription& one : command.commands) names.push_back(one.name);
    if (!names.empty()) {
      below += fmt::format("    {}) words='{}' ;;\n", quoted_for_sh(path), fmt::join(names, " "));
    }
    std::vector<std::string> all;
    std::map<std::string, std::vector<std::string>> flags_of_kind;
    for (const FlagDescription& flag : command.flags) {
      if (flag.is_place) {
        if (flag.kind == ValueKind::choice) {
          places += fmt::format("    {}) kind='{}' ;;\n", quoted_for_sh(path), bash_kind(flag));
        }
        continue;
      }
      all.push_back(flag.names.back());
      if (flag.kind == ValueKind::none) continue;
      std::vector<std::string>& known = flags_of_kind[bash_kind(flag)];
      known.insert(known.end(), flag.names.begin(), flag.names.end());
    }
    flags += fmt::format("    {}) words='{}' ;;\n", quoted_for_sh(path), fmt::join(all, " "));
    if (!flags_of_kind.empty()) {
      values += fmt::format("    {})\n      case $2 in\n", quoted_for_sh(path));
      for (const auto& [kind, known] : flags_of_kind) {
        values += fmt::format("        {}) kind='{}' ;;\n", fmt::join(known, " | "), kind);
      }
      values += "      esac\n      ;;\n";
    }
    for (const CommandDescription& one : command.commands) add(one, path + " " + one.name);
  }
};

constexpr const char* kBashHead = R"(# bash completion for @, made by "@ completion bash".

# words: the commands that may follow the command $1.
_@_commands() {
  words=''
  case $1 in
)";

constexpr const char* kBashFlags = R"(  esac
}

# words: the flags of the command $1.
_@_flags() {
  words=''
  case $1 in
)";

constexpr const char* kBashValues = R"(  esac
}

# kind: what the value of flag $2 of the command $1 is; empty for a flag without one.
_@_value() {
  kind=''
  case $1 in
)";

constexpr const char* kBashPlaces = R"(  esac
}

# kind: what a word of the command $1 is that belongs to no flag.
_@_place() {
  kind=file
  case $1 in
)";

constexpr const char* kBashTail = R"(  esac
}

_@_reply() {
  case $1 in
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$2")
      ;;
    folder)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$2")
      ;;
    words\ *) mapfile -t COMPREPLY < <(compgen -W "${1#words }" -- "$2") ;;
    begin\ *)
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "${1#begin }" -- "$2")
      ;;
  esac
}

_@() {
  local command='' words kind word i
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  # bash breaks "--flag=value" and "model:PATH" into three words.
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]] && ((COMP_CWORD > 2)); then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -* ]]; then
      _@_value "$command" "$word"
      if [[ ${COMP_WORDS[i + 1]} == '=' ]]; then
        ((i += 2))
      elif [[ -n $kind ]]; then
        ((++i))
      fi
      continue
    fi
    _@_commands "$command"
    [[ " $words " == *" $word "* ]] && command+=" $word"
  done
  if [[ $previous == -* ]]; then
    _@_value "$command" "$previous"
    if [[ -n $kind ]]; then
      _@_reply "$kind" "$current"
      return
    fi
  fi
  if [[ $current == -* ]]; then
    _@_flags "$command"
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  _@_commands "$command"
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  _@_place "$command"
  _@_reply "$kind" "$current"
}

complete -F _@ @
)";

}  // namespace

std::string bash_completion(const CommandDescription& program) {
  BashTables tables;
  tables.add(program, "");
  const auto named = [&program](const char* text) { return with_name(text, program.name); };
  return named(kBashHead) + tables.below + named(kBashFlags) + tables.flags + named(kBashValues) +
         tables.values + named(kBashPlaces) + tables.places + named(kBashTail);
}

}  // namespace outrider::cli
