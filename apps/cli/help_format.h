// SPDX-License-Identifier: Apache-2.0
// The layout of --help: a column of flags and a column of descriptions, wrapped to the width. A
// command with many flags shows only the usual ones, each with the first sentence of its
// description. --help-all shows all flags with full descriptions.
#ifndef OUTRIDER_APPS_CLI_HELP_FORMAT_H_
#define OUTRIDER_APPS_CLI_HELP_FORMAT_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>

namespace outrider::cli {

// Words of `text` in lines of at most `width` characters, every line after the first indented.
std::string wrap_words(const std::string& text, std::size_t indent, std::size_t width);

// `words` up to the first full stop that a capital letter follows, without that full stop.
std::string first_sentence(const std::string& words);

// The placeholder of an option's value, as "FILE" or "f32|bf16"; CLI11 adds its checks.
std::string value_name(const CLI::Option& option);

class HelpFormat : public CLI::Formatter {
 public:
  // After this call, --help of the option's command shows only options marked as usual.
  void add_usual(const CLI::Option* option) { usual_.insert(option); }
  // Whether --help hides options of this command.
  bool has_further(const CLI::App& app) const;

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::set<const CLI::Option*> usual_;
};

// Sets this layout, with --help and --help-all, for the program and all commands added later.
void add_help(CLI::App& program);

// Adds flags to those that --help of this command shows. If no flag is ever added, all are shown.
// The names are of flags that `app` has; throws CLI::OptionNotFound.
void show_usual(CLI::App& app, std::initializer_list<const char*> names);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_HELP_FORMAT_H_
