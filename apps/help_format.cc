#include "help_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace outrider::cli {
namespace {

constexpr std::size_t kWidth = 96;   // readable in a terminal of 100 columns
constexpr std::size_t kColumn = 32;  // where the words begin: the longest common flag, and a gap

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

}  // namespace

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
  std::string places;  // of words that stand by themselves
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    places += fmt::format(" [{}]", option->get_name(/*positional=*/true));
  }
  // A command that runs a model needs none behind it.
  const bool runs_alone = app->get_option_no_throw("--model") != nullptr;
  const char* const command = runs_alone ? " [COMMAND]" : " COMMAND";
  return fmt::format("Usage: {}{}{} [flags]\n", name, has_commands ? command : "", places);
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name,
                                  CLI::AppFormatMode mode) const {
  std::string text = make_description(app) + make_usage(app, std::move(name));
  text += make_subcommands(app, mode);
  // The group of --help and the like, made first by CLI11, is what a reader needs last.
  std::vector<std::string> groups = app->get_groups();
  std::rotate(groups.begin(), groups.begin() + (groups.empty() ? 0 : 1), groups.end());
  for (const std::string& group : groups) {
    const std::vector<const CLI::Option*> options = app->get_options(
        [&group](const CLI::Option* option) { return option->get_group() == group; });
    if (!group.empty() && !options.empty()) text += make_group(group, false, options);
  }
  return text + "\n" + app->get_footer();
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  std::string left = option->get_name(is_positional, !is_positional);
  for (std::size_t comma = left.find(','); comma != std::string::npos;
       comma = left.find(',', comma + 2)) {
    left.insert(comma + 1, " ");
  }
  if (option->get_type_size() != 0) left += " " + option->get_type_name();
  return entry(left, option->get_description());
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

}  // namespace outrider::cli
