// SPDX-License-Identifier: Apache-2.0
#include "apps/generate/message_reader.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

constexpr std::string_view kMark = "\"\"\"";

// The line without a mark at its end (blanks after it are ignored); nullopt without one.
std::optional<std::string> before_mark(const std::string& line) {
  const std::size_t last = line.find_last_not_of(" \t");
  if (last == std::string::npos) return std::nullopt;
  const std::string_view kept = std::string_view(line).substr(0, last + 1);
  if (!kept.ends_with(kMark)) return std::nullopt;
  return std::string(kept.substr(0, kept.size() - kMark.size()));
}

}  // namespace

LineStatus MessageReader::next(const Interrupt& interrupt,
                               const std::function<void()>& on_further_line, Message& message) {
  std::string line;
  const LineStatus first = lines_.next(interrupt, line);
  if (first != LineStatus::line) return first;
  message.is_block = line.starts_with(kMark);
  if (!message.is_block) {
    message.text = std::move(line);
    return LineStatus::line;
  }
  line.erase(0, kMark.size());
  std::vector<std::string> lines;
  std::optional<std::string> end_of_block;
  while (!(end_of_block = before_mark(line))) {
    lines.push_back(line);
    on_further_line();
    const LineStatus status = lines_.next(interrupt, line);
    if (status == LineStatus::interrupted) return status;
    if (status == LineStatus::end) {
      throw Error("chat", fmt::format("message of {} lines", lines.size()),
                  "\"\"\" at the end of its last line", "the end of the input");
    }
  }
  lines.push_back(*std::move(end_of_block));
  // A mark may be on a line of its own.
  auto begin = lines.begin();
  auto end = lines.end();
  if (begin->empty()) ++begin;
  if (begin != end && std::prev(end)->empty()) --end;
  message.text = fmt::format("{}", fmt::join(begin, end, "\n"));
  return LineStatus::line;
}

}  // namespace outrider::cli
