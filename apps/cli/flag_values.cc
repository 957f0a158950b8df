// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/flag_values.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

constexpr const char* kOperation = "read flags";

// "-m,--model" -> "--model"; "--seed" -> "--seed"; "-m,--model,PATH" -> "--model".
std::string display_name(const std::string& name) {
  const std::size_t dashes = name.find("--");
  return dashes == std::string::npos ? name : name.substr(dashes, name.find(',', dashes) - dashes);
}

// A value as shown in messages.
std::string shown_value(const std::string& text) { return text.empty() ? "an empty text" : text; }

void require_filled(const std::string& shown, const std::string& text,
                    const std::string& expected) {
  if (text.empty()) throw UsageError(kOperation, shown, expected, shown_value(text));
}

// Parses all of `text` as a number; false if it is anything else.
template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void parse_integer(const std::string& shown, const std::string& text, int min, int& value) {
  int number = 0;
  if (!parse_number(text, number) || number < min) {
    throw UsageError(kOperation, shown,
                     fmt::format("an integer from {} to {}", min, std::numeric_limits<int>::max()),
                     shown_value(text));
  }
  value = number;
}

void parse_real(const std::string& shown, const std::string& text, const RealRange& range,
                double& value) {
  double number = 0;
  // Written so that NaN is refused.
  const bool in_range = parse_number(text, number) && std::isfinite(number) &&
                        (range.min_included ? number >= range.min : number > range.min) &&
                        (range.max_included ? number <= range.max : number < range.max);
  if (!in_range) throw UsageError(kOperation, shown, range.words, shown_value(text));
  value = number;
}

// A number with a unit: bytes, or powers of 1024 of them.
void parse_bytes(const std::string& shown, const std::string& text, std::uint64_t& value) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr int kBitsPerUnit = 10;
  // Above 2^53 bytes not every integer is a double; no machine has as much memory.
  constexpr double kMax = 9007199254740992.0;
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  std::string_view number = text;
  const auto drop = [&number, &upper](char last) {
    const bool is_there = !number.empty() && upper(number.back()) == last;
    if (is_there) number.remove_suffix(1);
    return is_there;
  };
  const bool says_bytes = drop('B');
  const bool says_binary = says_bytes && drop('I');
  const std::size_t unit =
      number.empty() ? std::string_view::npos : kUnits.find(upper(number.back()));
  const bool has_unit = unit != std::string_view::npos;
  if (has_unit) number.remove_suffix(1);
  double bytes = 0;
  bool is_good = parse_number(number, bytes) && (has_unit || !says_binary);
  if (has_unit) bytes = std::ldexp(bytes, kBitsPerUnit * (static_cast<int>(unit) + 1));
  // Written so that NaN is refused. A fraction of a byte is an error.
  is_good = is_good && bytes >= 0 && bytes <= kMax && (has_unit || bytes == std::floor(bytes));
  if (!is_good) {
    throw UsageError(kOperation, shown, "bytes, as in 1048576, 512K, 64M, 1.5G or 2T", text);
  }
  value = static_cast<std::uint64_t>(bytes);
}

// Value: a type to which a number can be assigned.
template <typename Value>
CLI::Option* add_real_to(CLI::App& app, const std::string& name, Value& value,
                         const RealRange& range, const std::string& description) {
  const std::string shown = display_name(name);
  return app
      .add_option_function<std::string>(
          name,
          [&value, range, shown](const std::string& text) {
            double number = 0;
            parse_real(shown, text, range, number);
            value = number;
          },
          description)
      ->type_name("X");
}

// parse(part, value) for each part of a list.
template <typename Value, typename Parse>
void parse_list(const std::string& text, std::vector<Value>& values, Parse&& parse) {
  values.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse(text.substr(begin, end - begin), values.emplace_back());
    begin = end + 1;
  }
}

}  // namespace

CLI::Option* add_integer(CLI::App& app, const std::string& name, int& value, int min,
                         const std::string& description) {
  const std::string shown = display_name(name);
  return app
      .add_option_function<std::string>(
          name,
          [&value, min, shown](const std::string& text) { parse_integer(shown, text, min, value); },
          description)
      ->type_name("N");
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& description) {
  const std::string shown = display_name(name);
  return app
      .add_option_function<std::string>(
          name,
          [&value, shown](const std::string& text) {
            if (!parse_number(text, value)) {
              throw UsageError(
                  kOperation, shown,
                  fmt::format("an integer from 0 to {}", std::numeric_limits<std::uint64_t>::max()),
                  shown_value(text));
            }
          },
          description)
      ->type_name("N");
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& value,
                       const std::string& description) {
  const std::string shown = display_name(name);
  return app
      .add_option_function<std::string>(
          name, [&value, shown](const std::string& text) { parse_bytes(shown, text, value); },
          description)
      ->type_name("BYTES");
}

CLI::Option* add_real(CLI::App& app, const std::string& name, double& value, const RealRange& range,
                      const std::string& description) {
  return add_real_to(app, name, value, range, description);
}

CLI::Option* add_real(CLI::App& app, const std::string& name, std::optional<double>& value,
                      const RealRange& range, const std::string& description) {
  return add_real_to(app, name, value, range, description);
}

CLI::Option* add_integers(CLI::App& app, const std::string& name, std::vector<int>& values, int min,
                          const std::string& description) {
  const std::string shown = display_name(name);
  return app
      .add_option_function<std::string>(
          name,
          [&values, min, shown](const std::string& text) {
            parse_list(text, values, [&](const std::string& part, int& value) {
              parse_integer(shown, part, min, value);
            });
          },
          description)
      ->type_name("N,...");
}

CLI::Option* add_reals(CLI::App& app, const std::string& name, std::vector<double>& values,
                       const RealRange& range, const std::string& description) {
  const std::string shown = display_name(name);
  return app
      .add_option_function<std::string>(
          name,
          [&values, range, shown](const std::string& text) {
            parse_list(text, values, [&](const std::string& part, double& value) {
              parse_real(shown, part, range, value);
            });
          },
          description)
      ->type_name("X,...");
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        std::vector<std::string> choices, const std::string& description) {
  const std::string shown = display_name(name);
  const std::string placeholder = fmt::format("{}", fmt::join(choices, "|"));
  return app
      .add_option_function<std::string>(
          name,
          [&value, choices = std::move(choices), shown](const std::string& text) {
            if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
              throw UsageError(kOperation, shown,
                               fmt::format("one of {}", fmt::join(choices, ", ")),
                               shown_value(text));
            }
            value = text;
          },
          description)
      ->type_name(placeholder);
}

CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& placeholder, const std::string& description) {
  return app.add_option(name, value, description)->type_name(placeholder);
}

CLI::Option* add_filled_text(CLI::App& app, const std::string& name, std::string& value,
                             const std::string& placeholder, const std::string& expected,
                             const std::string& description) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, shown = display_name(name), expected](const std::string& text) {
            require_filled(shown, text, expected);
            value = text;
          },
          description)
      ->type_name(placeholder);
}

CLI::Option* add_path(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& placeholder, const std::string& description) {
  return add_filled_text(app, name, value, placeholder, "a path", description);
}

CLI::Option* add_filled_texts(CLI::App& app, const std::string& name,
                              std::vector<std::string>& values, const std::string& placeholder,
                              const std::string& expected, const std::string& description) {
  return app
      .add_option_function<std::vector<std::string>>(
          name,
          [&values, shown = display_name(name), expected](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) require_filled(shown, text, expected);
            values = texts;
          },
          description)
      ->type_name(placeholder);
}

std::string read_text(const std::string& file) {
  const bool standard_input = file == "-";
  const std::string shown = standard_input ? "standard input" : file;
  const auto fail = [&] { throw Error("read text", shown, std::strerror(errno)); };
  const int descriptor = standard_input ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail();
  struct CloseFile {
    int descriptor;
    ~CloseFile() {
      if (descriptor != STDIN_FILENO) ::close(descriptor);
    }
  } close_file{descriptor};
  // The tokenizer's limit; without one, an endless device file would fill the memory.
  constexpr std::size_t kLongest_bytes = std::size_t{1} << 28;
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n_read = ::read(descriptor, buffer, sizeof(buffer));
    if (n_read == 0) break;
    if (n_read < 0) fail();
    text.append(buffer, static_cast<std::size_t>(n_read));
    if (text.size() > kLongest_bytes) {
      throw Error("read text", shown, fmt::format("at most {} bytes", kLongest_bytes), "more");
    }
  }
  require_text(text, shown);
  return text;
}

}  // namespace outrider::cli
