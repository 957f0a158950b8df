// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/help_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

namespace outrider::cli {
namespace {

constexpr std::size_t kWidth = 96;   // fits a terminal of 100 columns
constexpr std::size_t kColumn = 32;  // where descriptions begin: the longest common flag, and a gap
constexpr std::size_t kExampleIndent = 6;  // of an example's second line

std::string wrap(const std::string& text, std::size_t indent) {
  return wrap_words(text, indent, kWidth);
}

std::string entry(const std::string& left, const std::string& words) {
  const std::string head = "  " + left;
  if (head.size() + 2 > kColumn) {
    return fmt::format("{}\n{:{}}{}\n", head, "", kColumn, wrap(words, kColumn));
  }
  return fmt::format("{:<{}}{}\n", head, kColumn, wrap(words, kColumn));
}

// "-m, --model PATH"
std::string left_of(const CLI::Option& option, bool is_positional) {
  std::string left = option.get_name(is_positional, !is_positional);
  for (std::size_t comma = left.find(','); comma != std::string::npos;
       comma = left.find(',', comma + 2)) {
    left.insert(comma + 1, " ");
  }
  if (option.get_type_size() != 0) left += " " + value_name(option);
  return left;
}

// The last space outside quotes within kWidth characters that leaves space for a backslash, where
// the shell may continue a command line. npos if there is none.
std::size_t last_break(const std::string& line) {
  std::size_t found = std::string::npos;
  bool is_quoted = false;
  for (std::size_t at = kExampleIndent; at + 2 <= kWidth && at < line.size(); ++at) {
    if (line[at] == '"') is_quoted = !is_quoted;
    if (line[at] == ' ' && !is_quoted) found = at;
  }
  return found;
}

// Examples, which are indented by two, continue after a backslash; other long lines are wrapped.
std::string wrap_examples(const std::string& footer) {
  std::istringstream lines(footer);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kWidth && !line.starts_with("  ")) line = wrap(line, 0);
    while (line.size() > kWidth && line.starts_with("  ")) {
      const std::size_t at = last_break(line);
      if (at == std::string::npos) break;
      text += line.substr(0, at) + " \\\n";
      line = std::string(kExampleIndent, ' ') + line.substr(at + 1);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

std::string first_sentence(const std::string& words) {
  for (std::size_t at = words.find(". "); at != std::string::npos; at = words.find(". ", at + 1)) {
    if (at + 2 < words.size() && std::isupper(static_cast<unsigned char>(words[at + 2])) != 0) {
      return words.substr(0, at);
    }
  }
  return words;
}

std::string wrap_words(const std::string& text, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string wrapped;
  std::string word;
  std::size_t column = indent;
  while (words >> word) {
    if (column > indent && column + 1 + word.size() > width) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped;
}

std::string HelpFormat::make_description(const CLI::App* app) const {
  return wrap(app->get_description(), 0) + "\n\n";
}

std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
  const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
  std::string places;  // positional arguments
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    places += fmt::format(" [{}]", option->get_name(/*positional=*/true));
  }
  // A command that runs a model needs no subcommand.
  const bool runs_alone = app->get_option_no_throw("--model") != nullptr;
  const char* const command = runs_alone ? " [COMMAND]" : " COMMAND";
  return fmt::format("Usage: {}{}{} [flags]\n", name, has_commands ? command : "", places);
}

bool HelpFormat::has_further(const CLI::App& app) const {
  const auto options = app.get_options([](const CLI::Option*) { return true; });
  return std::any_of(options.begin(), options.end(),
                     [this](const CLI::Option* option) { return usual_.contains(option); });
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name,
                                  CLI::AppFormatMode mode) const {
  std::string text = make_description(app) + make_usage(app, std::move(name));
  text += make_subcommands(app, CLI::AppFormatMode::Normal);
  const bool has_more = has_further(*app);
  const bool shows_all = mode == CLI::AppFormatMode::All || !has_more;
  const auto is_shown = [&](const CLI::Option* option) {
    if (option == app->get_help_all_ptr()) return has_more;
    return shows_all || option == app->get_help_ptr() || usual_.contains(option);
  };
  // CLI11 puts the group with --help first; readers need it last.
  std::vector<std::string> groups = app->get_groups();
  std::rotate(groups.begin(), groups.begin() + (groups.empty() ? 0 : 1), groups.end());
  for (const std::string& group : groups) {
    const std::vector<const CLI::Option*> options =
        app->get_options([&](const CLI::Option* option) {
          return option->get_group() == group && is_shown(option);
        });
    if (group.empty() || options.empty()) continue;
    text += "\n" + group + ":\n";
    for (const CLI::Option* option : options) {
      const std::string words = option->get_description();
      text += entry(left_of(*option, false), shows_all ? words : first_sentence(words));
    }
  }
  return text + "\n" + wrap_examples(app->get_footer());
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(left_of(*option, is_positional), option->get_description());
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

void add_help(CLI::App& program) {
  program.formatter(std::make_shared<HelpFormat>());
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.set_help_all_flag("--help-all", "Print all flags and exit");
}

void show_usual(CLI::App& app, std::initializer_list<const char*> names) {
  const auto format = std::dynamic_pointer_cast<HelpFormat>(app.get_formatter());
  for (const char* const name : names) {
    const CLI::Option* const option = app.get_option(name);
    if (format != nullptr) format->add_usual(option);
  }
}

}  // namespace outrider::cli
