// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/stop_strings.h"

#include <algorithm>
#include <utility>

namespace outrider {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase_if(strings_, [](const std::string& string) { return string.empty(); });
}

void StopStrings::push(std::string_view text, std::string& out) {
  if (found_) return;
  held_ += text;
  // The stop string that is complete first, byte by byte; among equals, the earliest start.
  std::size_t first_end = std::string::npos;
  std::size_t first_begin = std::string::npos;
  for (const std::string& string : strings_) {
    const std::size_t begin = held_.find(string);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + string.size();
    if (end < first_end || (end == first_end && begin < first_begin)) {
      first_end = end;
      first_begin = begin;
      which_ = string;
    }
  }
  if (first_end != std::string::npos) {
    found_ = true;
    out.append(held_, 0, first_begin);
    held_.clear();
    return;
  }
  // Holds back the longest suffix of the text that begins some stop string.
  std::size_t n_held = 0;
  for (const std::string& string : strings_) {
    for (std::size_t n = std::min(string.size() - 1, held_.size()); n > n_held; --n) {
      if (std::string_view(held_).substr(held_.size() - n) ==
          std::string_view(string).substr(0, n)) {
        n_held = n;
        break;
      }
    }
  }
  const std::size_t n_released = held_.size() - n_held;
  out.append(held_, 0, n_released);
  held_.erase(0, n_released);
}

void StopStrings::finish(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace outrider
