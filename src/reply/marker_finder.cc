// SPDX-License-Identifier: Apache-2.0
#include "reply/marker_finder.h"

#include <algorithm>
#include <utility>

namespace outrider {

MarkerFinder::MarkerFinder(std::vector<std::string> markers) : markers_(std::move(markers)) {
  std::erase(markers_, std::string());
  for (const std::string& marker : markers_) longest_ = std::max(longest_, marker.size());
}

std::optional<std::size_t> MarkerFinder::push(char byte, std::string& out) {
  held_ += byte;
  std::size_t n_free = 0;
  while (n_free < held_.size() && !begins_marker(std::string_view(held_).substr(n_free))) ++n_free;
  out.append(held_, 0, n_free);
  held_.erase(0, n_free);
  const auto found = std::find(markers_.begin(), markers_.end(), held_);
  if (found == markers_.end()) return std::nullopt;
  held_.clear();
  return static_cast<std::size_t>(found - markers_.begin());
}

std::string MarkerFinder::release() { return std::exchange(held_, std::string()); }

std::size_t MarkerFinder::resume_behind(std::string_view text) {
  std::size_t n = std::min(text.size(), longest_ == 0 ? 0 : longest_ - 1);
  while (n > 0 && !begins_marker(text.substr(text.size() - n))) --n;
  // A complete marker does not count as the beginning of one.
  held_.assign(text.substr(text.size() - n));
  if (std::find(markers_.begin(), markers_.end(), held_) != markers_.end()) held_.clear();
  return held_.size();
}

bool MarkerFinder::begins_marker(std::string_view text) const {
  return std::any_of(markers_.begin(), markers_.end(),
                     [text](const std::string& marker) { return marker.starts_with(text); });
}

}  // namespace outrider
