// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/schema_reference.h"

#include <cstddef>
#include <optional>

namespace outrider {
namespace {

int hex_digit(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

// nullopt if a percent sign is not followed by two hex digits.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      decoded += text[i];
      continue;
    }
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace

const nlohmann::ordered_json* referred_schema(const nlohmann::ordered_json& document,
                                              std::string_view reference) {
  if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/')) return nullptr;
  const std::optional<std::string> place = percent_decoded(reference.substr(1));
  if (!place) return nullptr;
  try {
    const nlohmann::ordered_json::json_pointer at(*place);
    return document.contains(at) ? &document.at(at) : nullptr;
  } catch (const nlohmann::ordered_json::exception&) {  // an invalid pointer
    return nullptr;
  }
}

std::string reference_of_member(std::string_view reference, std::string_view name) {
  std::string out(reference);
  out += '/';
  for (const char byte : name) {
    if (byte == '~') {
      out += "~0";
    } else if (byte == '/') {
      out += "~1";
    } else if (byte == '%') {
      out += "%25";
    } else {
      out += byte;
    }
  }
  return out;
}

}  // namespace outrider
