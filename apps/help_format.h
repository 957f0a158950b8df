// How --help looks: one column of flags, one of words, wrapped to fit.
#ifndef OUTRIDER_APPS_HELP_FORMAT_H_
#define OUTRIDER_APPS_HELP_FORMAT_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace outrider::cli {

// Words of `text` in lines of at most `width` characters, every line after the first indented.
std::string wrap_words(const std::string& text, std::size_t indent, std::size_t width);

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_HELP_FORMAT_H_
