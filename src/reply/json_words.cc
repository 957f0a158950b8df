// SPDX-License-Identifier: Apache-2.0
#include "reply/json_words.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "reply/json_scanner.h"

namespace outrider {

void append_escaped(char byte, std::string& out) {
  const auto code = static_cast<unsigned char>(byte);
  if (byte == '"' || byte == '\\') {
    out += '\\';
    out += byte;
  } else if (code >= 0x20) {
    out += byte;
  } else if (byte == '\n') {
    out += "\\n";
  } else if (byte == '\t') {
    out += "\\t";
  } else {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
  }
}

std::string as_json_string(std::string_view text) {
  std::string out = "\"";
  for (const char byte : text) append_escaped(byte, out);
  return out += '"';
}

std::optional<std::string> text_of_string(std::string_view json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_string()) return std::nullopt;
  return parsed.get<std::string>();
}

std::optional<std::string> json_value(std::string_view text) {
  using Step = JsonScanner::Step;
  text = without_blanks(text);
  JsonScanner scanner;
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Step step = scanner.push(text[i], value);
    if (step == Step::wrong || step == Step::done_before) return std::nullopt;
    if (step == Step::done && i + 1 < text.size()) return std::nullopt;
  }
  if (!scanner.complete()) return std::nullopt;
  return value;
}

}  // namespace outrider
