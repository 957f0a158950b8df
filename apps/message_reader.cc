#include "message_reader.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider::cli {
namespace {

constexpr std::string_view kMark = "\"\"\"";

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
  while (!line.ends_with(kMark)) {
    lines.push_back(line);
    on_further_line();
    const LineStatus status = lines_.next(interrupt, line);
    if (status == LineStatus::interrupted) return status;
    if (status == LineStatus::end) {
      throw Error("chat", "message", "\"\"\" at its end", "the end of the input");
    }
  }
  line.resize(line.size() - kMark.size());
  lines.push_back(std::move(line));
  // A mark may have a line of its own.
  auto begin = lines.begin();
  auto end = lines.end();
  if (begin->empty()) ++begin;
  if (begin != end && std::prev(end)->empty()) --end;
  message.text = fmt::format("{}", fmt::join(begin, end, "\n"));
  return LineStatus::line;
}

}  // namespace outrider::cli
