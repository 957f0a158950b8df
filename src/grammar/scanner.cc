// SPDX-License-Identifier: Apache-2.0
#include "grammar/scanner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "grammar/limits.h"
#include "grammar/parts.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider {
namespace {

int digit_value(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A') + 10;
  return -1;
}

}  // namespace

Scanner::Scanner(std::string_view text, const char* operation)
    : text_(text), operation_(operation) {
  if (text.size() > kLongestGrammar_bytes) {
    throw Error(operation, "text", fmt::format("at most {} bytes", kLongestGrammar_bytes),
                fmt::format("{}", text.size()));
  }
  require_text(text, operation);
}

char32_t Scanner::peek() const { return ended() ? kEnd : character_at(text_, at_).value; }

char32_t Scanner::take() {
  if (ended()) return kEnd;
  const SpelledCharacter here = character_at(text_, at_);
  at_ += here.n_bytes;
  return here.value;
}

bool Scanner::take_if(std::string_view text) {
  if (!starts(text)) return false;
  at_ += text.size();
  return true;
}

char32_t Scanner::take_hex(int n) {
  const std::size_t first = at_;
  char32_t value = 0;
  for (int i = 0; i < n; ++i) {
    const int digit = digit_value(peek());
    if (digit < 0) fail(fmt::format("{} hexadecimal digits", n));
    value = value << 4 | static_cast<char32_t>(digit);
    take();
  }
  if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
    fail_at(first, "the number of a character", from(first));
  }
  return value;
}

int Scanner::take_count() {
  const std::size_t first = at_;
  std::int64_t value = 0;
  while (peek() >= '0' && peek() <= '9') {
    value = std::min<std::int64_t>(10 * value + digit_value(take()), kMaxRepeats + 1LL);
  }
  if (first == at_) fail("a number");
  if (value > kMaxRepeats) fail_at(first, fmt::format("at most {}", kMaxRepeats), from(first));
  return static_cast<int>(value);
}

std::string Scanner::here() const {
  if (ended()) return "the end";
  const std::size_t n = character_at(text_, at_).n_bytes;
  if (text_[at_] == '\n') return "the end of the line";
  return fmt::format("'{}'", text_.substr(at_, n));
}

void Scanner::fail(std::string_view expected) const { fail(expected, here()); }

void Scanner::fail(std::string_view expected, std::string_view got) const {
  fail_at(at_, expected, got);
}

void Scanner::fail_at(std::size_t position, std::string_view expected, std::string_view got) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::string_view row = before.substr(begin);
  const auto column = 1 + std::count_if(row.begin(), row.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
                      });
  throw Error(operation_, fmt::format("line {}, column {}", line, column), expected, got);
}

Bounds take_bounds(Scanner& scanner) {
  const std::size_t first = scanner.position();
  Bounds bounds;
  bounds.min = scanner.take_count();
  bounds.max = bounds.min;
  if (scanner.take_if(",")) {
    bounds.max = scanner.peek() == '}' ? kUnlimited : scanner.take_count();
  }
  if (!scanner.take_if("}")) scanner.fail("}");
  if (bounds.max != kUnlimited && bounds.max < bounds.min) {
    scanner.fail_at(first, "bounds that grow", scanner.from(first));
  }
  return bounds;
}

}  // namespace outrider
