// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/manual_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace outrider::cli {
namespace {

// A line of text, escaped so that no character is a request or an escape.
std::string man_text(const std::string& text) {
  std::string escaped;
  if (text.starts_with('.') || text.starts_with('\'')) escaped += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";  // a minus sign to type, not a hyphen
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string dashed(std::string words) {
  std::replace(words.begin(), words.end(), ' ', '-');
  return words;
}

// Indented lines, including examples, are kept; other text becomes paragraphs.
std::string man_footer(const std::string& footer) {
  std::istringstream lines(footer);
  std::string text;
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_indented = line.starts_with("  ");
    if (in_block && !is_indented) text += ".EE\n";
    if (!in_block && is_indented) text += ".EX\n";
    in_block = is_indented;
    if (line == "Example:" || line == "Examples:") {
      text += ".SH EXAMPLES\n";
    } else if (is_indented) {
      text += man_text(line) + "\n";
    } else if (!line.empty()) {
      text += (text.empty() ? ".SH NOTES\n" : ".PP\n") + man_text(line) + "\n";
    }
  }
  return text + (in_block ? ".EE\n" : "");
}

std::string man_flag(const FlagDescription& flag) {
  std::string text = ".TP\n";
  for (const std::string& name : flag.names) {
    text += (name == flag.names.front() ? "" : ", ") + ("\\fB" + man_text(name) + "\\fR");
  }
  if (!flag.value.empty() && !flag.is_place) text += " \\fI" + man_text(flag.value) + "\\fR";
  return text + "\n" + man_text(flag.description) + "\n";
}

// The flags by group; CLI11's first group, with --help, comes last.
std::string man_flags(const CommandDescription& command) {
  std::vector<std::string> groups;
  for (const FlagDescription& flag : command.flags) {
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  if (groups.empty()) return {};
  std::rotate(groups.begin(), groups.begin() + 1, groups.end());
  std::string text = ".SH OPTIONS\n";
  for (const std::string& group : groups) {
    text += ".SS \"" + man_text(group) + "\"\n";
    for (const FlagDescription& flag : command.flags) {
      if (flag.group == group) text += man_flag(flag);
    }
  }
  return text;
}

void add_pages(const CommandDescription& command, const std::string& words,
               const std::string& above, const std::string& version, const std::string& date,
               std::vector<ManualPage>& pages) {
  const std::string title = dashed(words);
  std::string text = fmt::format(".TH {} 1 {} \"{}\" \"User Commands\"\n",
                                 man_text(upper_case(title)), date, man_text(version));
  text += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n\\fB{}\\fR", man_text(title),
                      man_text(command.description), man_text(words));
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  text += " [\\fIflags\\fR]\n";
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CommandDescription& one : command.commands) {
      text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", man_text(one.name), man_text(one.description));
    }
  }
  text += man_flags(command) + man_footer(command.footer);
  std::vector<std::string> others;
  if (!above.empty()) others.push_back(dashed(above));
  for (const CommandDescription& one : command.commands) others.push_back(title + "-" + one.name);
  if (!others.empty()) text += ".SH \"SEE ALSO\"\n";
  for (const std::string& other : others) {
    text += fmt::format(".BR {} (1){}\n", man_text(other), &other == &others.back() ? "" : ",");
  }
  pages.push_back({title + ".1", std::move(text)});
  for (const CommandDescription& one : command.commands) {
    add_pages(one, words + " " + one.name, words, version, date, pages);
  }
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandDescription& program, const std::string& version,
                                     const std::string& date) {
  std::vector<ManualPage> pages;
  add_pages(program, program.name, "", version, date, pages);
  return pages;
}

}  // namespace outrider::cli
