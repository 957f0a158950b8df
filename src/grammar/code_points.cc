// SPDX-License-Identifier: Apache-2.0
#include "grammar/code_points.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace outrider {
namespace {

constexpr CodePointRange kSurrogates{0xD800, 0xDFFF};

// The i-th byte of the n bytes of a character.
std::uint8_t byte_of(char32_t value, int i, int n) {
  const char32_t bits = value >> (6 * (n - 1 - i));
  if (i > 0) return static_cast<std::uint8_t>(0x80 | (bits & 0x3F));
  constexpr char32_t kMarks[] = {0, 0, 0xC0, 0xE0, 0xF0};
  return static_cast<std::uint8_t>(kMarks[n] | bits);
}

// Splits a range of characters of n bytes each, until in every part the bytes after a varying one
// cover their whole range.
void add_sequences(CodePointRange range, int n, std::vector<ByteSequence>& out) {
  for (int i = 1; i < n; ++i) {
    // The largest value of the last n - i bytes.
    const char32_t rest = (char32_t{1} << (6 * (n - i))) - 1;
    if ((range.first & ~rest) == (range.last & ~rest)) continue;
    if ((range.first & rest) != 0) {
      add_sequences({range.first, range.first | rest}, n, out);
      add_sequences({(range.first | rest) + 1, range.last}, n, out);
      return;
    }
    if ((range.last & rest) != rest) {
      add_sequences({range.first, (range.last & ~rest) - 1}, n, out);
      add_sequences({range.last & ~rest, range.last}, n, out);
      return;
    }
  }
  ByteSequence sequence;
  sequence.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    sequence.push_back({byte_of(range.first, i, n), byte_of(range.last, i, n)});
  }
  out.push_back(std::move(sequence));
}

int n_bytes_of(char32_t value) {
  if (value < 0x80) return 1;
  if (value < 0x800) return 2;
  return value < 0x10000 ? 3 : 4;
}

}  // namespace

SpelledCharacter character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t n = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t value = first & (0x7FU >> n);
  for (std::size_t i = 1; i < n; ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  }
  return {value, n};
}

void append_character(char32_t value, std::string& out) {
  const int n = n_bytes_of(value);
  for (int i = 0; i < n; ++i) out += static_cast<char>(byte_of(value, i, n));
}

CodePoints::CodePoints(std::initializer_list<CodePointRange> ranges) {
  for (const CodePointRange& range : ranges) add(range);
}

void CodePoints::add(CodePointRange range) {
  if (range.first > range.last) return;
  if (range.first <= kSurrogates.last && range.last >= kSurrogates.first) {
    if (range.first < kSurrogates.first) add({range.first, kSurrogates.first - 1});
    if (range.last > kSurrogates.last) add({kSurrogates.last + 1, range.last});
    return;
  }
  auto at = std::lower_bound(
      ranges_.begin(), ranges_.end(), range, [](const CodePointRange& a, const CodePointRange& b) {
        return a.last + 1 < b.first;  // those that end before it without touching it
      });
  auto end = at;
  for (; end != ranges_.end() && end->first <= range.last + 1; ++end) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
  }
  at = ranges_.erase(at, end);
  ranges_.insert(at, range);
}

void CodePoints::add(const CodePoints& others) {
  for (const CodePointRange& range : others.ranges_) add(range);
}

CodePoints CodePoints::complement() const {
  CodePoints result;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) result.add({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) result.add({next, kLastCodePoint});
  return result;
}

CodePoints CodePoints::less(const CodePoints& others) const { return common(others.complement()); }

CodePoints CodePoints::common(const CodePoints& others) const {
  CodePoints result;
  auto a = ranges_.begin();
  auto b = others.ranges_.begin();
  while (a != ranges_.end() && b != others.ranges_.end()) {
    result.add({std::max(a->first, b->first), std::min(a->last, b->last)});
    (a->last < b->last ? a : b)++;
  }
  return result;
}

bool CodePoints::contains(char32_t value) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [value](const CodePointRange& range) {
    return range.first <= value && value <= range.last;
  });
}

std::vector<ByteSequence> utf8_sequences(const CodePoints& set) {
  constexpr CodePointRange kBySize[] = {
      {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, kLastCodePoint}};
  std::vector<ByteSequence> sequences;
  for (int n = 1; n <= 4; ++n) {
    const CodePoints of_size = set.common({kBySize[n - 1]});
    for (const CodePointRange& range : of_size.ranges()) add_sequences(range, n, sequences);
  }
  return sequences;
}

}  // namespace outrider
