#include "outrider/error.h"

#include <fmt/format.h>

namespace outrider {
namespace {

// A message is one line on a terminal whatever bytes a file put into it, and of bounded length.
std::string one_line(std::string_view text) {
  constexpr std::size_t kLongest = 300;
  std::string line;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  if (text.size() > kLongest) line += "...";
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
