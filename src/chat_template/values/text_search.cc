// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/text_search.h"

#include <algorithm>
#include <cstring>

#include "chat_template/values/characters.h"

namespace outrider::jinja {
namespace {

std::vector<std::string_view> split_right_at_blanks(std::string_view text,
                                                    std::int64_t max_splits) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::right);
  while (!text.empty()) {
    if (max_splits >= 0 && static_cast<std::int64_t>(parts.size()) >= max_splits) {
      parts.push_back(text);
      break;
    }
    std::size_t begin = text.size();
    while (begin > 0) {
      std::size_t at = begin - 1;
      while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
      if (is_space(character_at(text, at).value)) break;
      begin = at;
    }
    parts.push_back(text.substr(begin));
    text = strip(text.substr(0, begin), Side::right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::size_t place_in(std::string_view text, std::string_view part, std::size_t at) {
  if (at > text.size()) return std::string_view::npos;
  const std::string_view rest = text.substr(at);
  if (part.empty()) return at;
  if (rest.empty()) return std::string_view::npos;
  const void* found = ::memmem(rest.data(), rest.size(), part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t byte_offset(std::string_view text, std::int64_t n_characters) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < n_characters && at < text.size(); ++i) {
    at += character_at(text, at).n_bytes;
  }
  return at;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::int64_t max_splits, bool from_right) {
  std::vector<std::string_view> parts;
  while (max_splits < 0 || static_cast<std::int64_t>(parts.size()) < max_splits) {
    const std::size_t at = from_right ? text.rfind(separator) : place_in(text, separator);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text = text.substr(at + separator.size());
    }
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at_blanks(std::string_view text, std::int64_t max_splits,
                                              bool from_right) {
  if (from_right) return split_right_at_blanks(text, max_splits);
  std::vector<std::string_view> parts;
  text = strip(text, Side::left);
  while (!text.empty()) {
    if (max_splits >= 0 && static_cast<std::int64_t>(parts.size()) >= max_splits) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size()) {
      const Character c = character_at(text, end);
      if (is_space(c.value)) break;
      end += c.n_bytes;
    }
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), Side::left);
  }
  return parts;
}

std::string replaced(std::string_view text, std::string_view part, std::string_view by,
                     std::int64_t max_replaced, Heap& heap) {
  std::string out;
  std::int64_t n = 0;
  heap.count_bytes_read(text.size());
  for (std::size_t at = 0;;) {
    const bool may_go_on = max_replaced < 0 || n < max_replaced;
    const std::size_t found = may_go_on ? place_in(text, part, at) : std::string_view::npos;
    if (found == std::string_view::npos) return out.append(text.substr(at));
    out.append(text.substr(at, found - at)).append(by);
    ++n;
    at = found + part.size();
    if (part.empty()) {
      if (at == text.size()) return out;
      const std::size_t n_bytes = character_at(text, at).n_bytes;
      out.append(text.substr(at, n_bytes));
      at += n_bytes;
    }
    heap.check_text_size(out.size());
  }
}

bool all_cased_upper(std::string_view text) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (is_lower(c.value) || is_title(c.value)) return false;
    any = any || is_upper(c.value);
    at += c.n_bytes;
  }
  return any;
}

bool all_cased_lower(std::string_view text) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (is_upper(c.value) || is_title(c.value)) return false;
    any = any || is_lower(c.value);
    at += c.n_bytes;
  }
  return any;
}

std::string centered(std::string_view text, std::int64_t width, std::string_view fill) {
  const auto n = static_cast<std::int64_t>(count_characters(text));
  if (width <= n) return std::string(text);
  const std::int64_t missing = width - n;
  // An odd blank goes to the left if the width is odd.
  const std::int64_t left = missing / 2 + (missing & width & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (std::int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

}  // namespace outrider::jinja
