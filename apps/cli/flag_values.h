// SPDX-License-Identifier: Apache-2.0
// Flags with checked values. CLI11 would read 010 as eight and accept NaN; these functions reject
// both, with uniform messages.
#ifndef OUTRIDER_APPS_CLI_FLAG_VALUES_H_
#define OUTRIDER_APPS_CLI_FLAG_VALUES_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::cli {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct RealRange {
  double min;
  bool min_included;
  double max;  // infinity: no upper bound
  bool max_included;
  const char* words;  // "a number in (0, 1]", for the message
};

// Each binds `name` (in CLI11's syntax, "--seed") to `value`. The value before parsing is the
// default and is not shown. Parsing throws UsageError.
CLI::Option* add_integer(CLI::App& app, const std::string& name, int& value, int min,
                         const std::string& description);
CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& description);
// Bytes: 1048576, 512K, 64M, 1.5G or 2T, in powers of 1024; also 64m, 64MB and 64MiB.
CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& value,
                       const std::string& description);
CLI::Option* add_real(CLI::App& app, const std::string& name, double& value, const RealRange& range,
                      const std::string& description);
// `value` is unchanged if the flag is not given.
CLI::Option* add_real(CLI::App& app, const std::string& name, std::optional<double>& value,
                      const RealRange& range, const std::string& description);
// Lists separated by commas; an empty list is refused.
CLI::Option* add_integers(CLI::App& app, const std::string& name, std::vector<int>& values, int min,
                          const std::string& description);
CLI::Option* add_reals(CLI::App& app, const std::string& name, std::vector<double>& values,
                       const RealRange& range, const std::string& description);
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        std::vector<std::string> choices, const std::string& description);
CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& placeholder, const std::string& description);
// Text that must not be empty. An empty path or spec usually comes from an unset shell variable,
// and later code would read it as a missing flag. `expected` is the message's description of the
// text.
CLI::Option* add_filled_text(CLI::App& app, const std::string& name, std::string& value,
                             const std::string& placeholder, const std::string& expected,
                             const std::string& description);
// The same for a path.
CLI::Option* add_path(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& placeholder, const std::string& description);
// Several such texts, after one flag or after repeated flags.
CLI::Option* add_filled_texts(CLI::App& app, const std::string& name,
                              std::vector<std::string>& values, const std::string& placeholder,
                              const std::string& expected, const std::string& description);

// The contents of a UTF-8 text file, or of standard input for "-"; at most 256 MiB. Throws Error.
std::string read_text(const std::string& file);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_FLAG_VALUES_H_
