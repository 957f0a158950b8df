// SPDX-License-Identifier: Apache-2.0
#include "outrider/error.h"

#include <fmt/format.h>

namespace outrider {
namespace {

// A message is one terminal line, whatever bytes a file puts into it, and its parts have limited
// length: three of them with the words between stay below 1000 bytes.
std::string one_line(std::string_view text) {
  constexpr std::size_t kLongest_bytes = 300;
  std::string line;
  for (std::size_t index = 0; index < text.size();) {
    const auto byte = static_cast<unsigned char>(text[index]);
    // Keeps characters whole: a lead byte with its continuation bytes.
    std::size_t end = index + 1;
    while (byte >= 0xC0 && end < text.size() && end - index < 4 &&
           (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      ++end;
    }
    const std::string_view character = text.substr(index, end - index);
    // C1 controls (U+0080 to U+009F) start escape sequences on some terminals.
    const bool control =
        byte < 0x20 || byte == 0x7f ||
        (byte == 0xC2 && end == index + 2 && static_cast<unsigned char>(text[index + 1]) < 0xA0);
    const std::string shown =
        control ? fmt::format("\\x{:02x}", static_cast<unsigned char>(character.back()))
                : std::string(character);
    if (line.size() + shown.size() > kLongest_bytes) return line + "...";
    line += shown;
    index = end;
  }
  return line;
}

}  // namespace

Error::Error(std::string_view operation, std::string_view object, std::string_view expected,
             std::string_view got)
    : std::runtime_error(fmt::format("[{}] {}: expected {}, got {}", one_line(operation),
                                     one_line(object), one_line(expected), one_line(got))) {}

Error::Error(std::string_view operation, std::string_view object, std::string_view problem)
    : std::runtime_error(
          fmt::format("[{}] {}: {}", one_line(operation), one_line(object), one_line(problem))) {}

}  // namespace outrider
