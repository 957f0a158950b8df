// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/json_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "grammar/limits.h"

namespace outrider {
namespace {

constexpr int kMaxIndent = 32;
constexpr int kIntegerDigits = 18;  // all such numbers are below 2^63
constexpr int kNumberDigits = 16;

const CodePoints kEscaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};

ByteSet byte_set(std::string_view bytes) {
  ByteSet set;
  for (const char byte : bytes) set.set(static_cast<std::uint8_t>(byte));
  return set;
}
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

std::string escape_of(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

}  // namespace

int JsonParts::blank() {
  if (blank_ == kNone) {
    const int indent = parts_.repeat(parts_.text(" "), 0, kMaxIndent);
    const int line = parts_.sequence({parts_.text("\n"), indent});
    blank_ = parts_.shared("blank", parts_.choice({parts_.nothing(), parts_.text(" "), line}));
  }
  return blank_;
}

int JsonParts::value() {
  if (value_ == kNone) {
    const int rule = parts_.declare("value");
    value_ = parts_.call(rule);
    parts_.define(rule, parts_.choice({object(), array(), string(), number(), boolean(), null()}));
  }
  return value_;
}

int JsonParts::object() {
  if (object_ == kNone) {
    const int rule = parts_.declare("object");
    object_ = parts_.call(rule);
    parts_.define(rule, object_of({}, member(string(), value())));
  }
  return object_;
}

int JsonParts::array() {
  if (array_ == kNone) {
    const int rule = parts_.declare("array");
    array_ = parts_.call(rule);
    parts_.define(rule, array_of({}, value(), 0, kUnlimited));
  }
  return array_;
}

int JsonParts::any_character() {
  if (character_ == kNone) {
    const auto hex = [this](std::string_view digits) { return parts_.bytes(byte_set(digits)); };
    const int any = hex(kHexDigits);
    // Surrogates come in pairs, each for one character.
    const int no_surrogate =
        parts_.choice({parts_.sequence({hex("0123456789abcefABCEF"), any, any, any}),
                       parts_.sequence({hex("dD"), hex("01234567"), any, any})});
    const int pair = parts_.sequence({hex("dD"), hex("89abAB"), any, any, parts_.text("\\u"),
                                      hex("dD"), hex("cdefCDEF"), any, any});
    const int number = parts_.sequence({parts_.text("u"), parts_.choice({no_surrogate, pair})});
    const int letter = parts_.bytes(byte_set("\"\\/bfnrt"));
    const int escape = parts_.sequence({parts_.text("\\"), parts_.choice({letter, number})});
    character_ = parts_.shared("character",
                               parts_.choice({parts_.character(kEscaped.complement()), escape}));
  }
  return character_;
}

int JsonParts::string() {
  if (string_ == kNone) string_ = parts_.shared("string", string(0, kUnlimited));
  return string_;
}

int JsonParts::string(int min, int max) { return quoted(parts_.repeat(any_character(), min, max)); }

int JsonParts::number() {
  if (number_ == kNone) {
    const int digit = parts_.bytes(byte_set(kDigits));
    const int whole = parts_.choice(
        {parts_.text("0"), parts_.sequence({parts_.bytes(byte_set("123456789")),
                                            parts_.repeat(digit, 0, kNumberDigits - 1)})});
    const int fraction =
        parts_.sequence({parts_.text("."), parts_.repeat(digit, 1, kNumberDigits)});
    const int exponent = parts_.sequence({parts_.bytes(byte_set("eE")),
                                          parts_.optional(parts_.bytes(byte_set("+-"))),
                                          parts_.repeat(digit, 1, 2)});
    number_ = parts_.shared(
        "number", parts_.sequence({parts_.optional(parts_.text("-")), whole,
                                   parts_.optional(fraction), parts_.optional(exponent)}));
  }
  return number_;
}

int JsonParts::integer() {
  if (integer_ == kNone) {
    const int digit = parts_.bytes(byte_set(kDigits));
    const int whole =
        parts_.sequence({parts_.optional(parts_.text("-")), parts_.bytes(byte_set("123456789")),
                         parts_.repeat(digit, 0, kIntegerDigits - 1)});
    integer_ = parts_.shared("integer", parts_.choice({parts_.text("0"), whole}));
  }
  return integer_;
}

int JsonParts::boolean() { return parts_.choice({parts_.text("true"), parts_.text("false")}); }

int JsonParts::character(const CodePoints& set) {
  const CodePoints plain = set.less(kEscaped);
  std::vector<int> choices;
  if (!plain.empty()) choices.push_back(parts_.character(plain));
  const CodePoints escaped = set.common(kEscaped);
  for (const CodePointRange& range : escaped.ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) {
      choices.push_back(parts_.text(escape_of(c)));
    }
  }
  return parts_.choice(std::move(choices));
}

int JsonParts::quoted(int content) {
  return parts_.sequence({parts_.text("\""), content, parts_.text("\"")});
}

int JsonParts::quoted(std::string_view content) {
  std::string text = "\"";
  for (std::size_t at = 0; at < content.size();) {
    const SpelledCharacter here = character_at(content, at);
    if (kEscaped.contains(here.value)) {
      text += escape_of(here.value);
    } else {
      append_character(here.value, text);
    }
    at += here.n_bytes;
  }
  return parts_.text(text + '"');
}

int JsonParts::other_key(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (rest_of_key_ == kNone) {
    rest_of_key_ = parts_.shared(
        "rest of a key", parts_.repeat(parts_.character(kEscaped.complement()), 0, kUnlimited));
  }
  return quoted(without(names, 0));
}

// Names that agree in their first `depth` bytes, ascending: returns what may follow such that the
// whole is none of them.
int JsonParts::without(std::span<const std::string> names, std::size_t depth) {
  if (names.empty()) return rest_of_key_;
  std::vector<int> choices;
  const bool is_name = names.front().size() == depth;
  // Beyond this length, nothing else is generated along a name.
  if (depth >= kLongestToldApart_bytes) return is_name ? parts_.never() : parts_.nothing();
  if (is_name) names = names.subspan(1);
  if (!is_name) choices.push_back(parts_.nothing());
  CodePoints others = kEscaped.complement();
  while (!names.empty()) {
    const SpelledCharacter next = character_at(names.front(), depth);
    std::size_t n = 0;
    while (n < names.size() && names[n].size() > depth &&
           character_at(names[n], depth).value == next.value) {
      ++n;
    }
    const CodePoints here = {{next.value, next.value}};
    // Names with characters that must be escaped have no other spelling.
    if (!kEscaped.contains(next.value)) {
      const int rest = without(names.first(n), depth + next.n_bytes);
      choices.push_back(parts_.sequence({parts_.character(here), rest}));
    }
    others = others.less(here);
    names = names.subspan(n);
  }
  choices.push_back(parts_.sequence({parts_.character(others), rest_of_key_}));
  return parts_.choice(std::move(choices));
}

int JsonParts::member(int key, int value) {
  return parts_.sequence({key, parts_.text(":"), blank(), value});
}

int JsonParts::object_of(std::span<const Member> members, int other) {
  const int comma = parts_.sequence({parts_.text(","), blank()});
  // What may follow after some members, built from the last on; and the first member, if there is
  // none yet.
  int behind_some = parts_.nothing();
  std::vector<int> firsts;
  if (other != kNone) {
    behind_some = parts_.repeat(parts_.sequence({comma, other}), 0, kUnlimited);
    firsts.push_back(parts_.sequence({other, behind_some}));
  }
  for (std::size_t i = members.size(); i-- > 0;) {
    const Member& one = members[i];
    const int written = parts_.shared("member", member(one.key, one.value));
    const int rest = parts_.shared("members", behind_some);
    const int here = parts_.sequence({written, rest});
    const int next = parts_.sequence({comma, written, rest});
    if (one.required) firsts.clear();
    firsts.push_back(here);
    behind_some = one.required ? next : parts_.choice({next, rest});
  }
  std::reverse(firsts.begin(), firsts.end());
  const int first = parts_.choice(std::move(firsts));
  std::vector<int> choices = {
      parts_.sequence({parts_.text("{"), blank(), first, blank(), parts_.text("}")})};
  if (std::none_of(members.begin(), members.end(),
                   [](const Member& one) { return one.required; })) {
    choices.push_back(parts_.sequence({parts_.text("{"), blank(), parts_.text("}")}));
  }
  return parts_.choice(std::move(choices));
}

int JsonParts::array_of(std::span<const int> first, int rest, int min, int max) {
  const int comma = parts_.sequence({parts_.text(","), blank()});
  const int n_first = static_cast<int>(first.size());
  const auto left = [](int count, int taken) {
    return count == kUnlimited ? kUnlimited : std::max(0, count - taken);
  };
  const int open = parts_.sequence({parts_.text("["), blank()});
  const int close = parts_.sequence({blank(), parts_.text("]")});
  // What may follow the first n items of `first`, built from the last on.
  int behind = parts_.nothing();
  if (rest != kNone) {
    behind = parts_.repeat(parts_.sequence({comma, rest}), left(min, n_first), left(max, n_first));
  } else if (min > n_first) {
    behind = parts_.never();
  }
  for (int n = n_first; n-- > 1;) {
    const int next = parts_.sequence({comma, first[static_cast<std::size_t>(n)], behind});
    if (max != kUnlimited && n >= max) {
      behind = parts_.nothing();
    } else {
      behind = parts_.shared("items", n < min ? next : parts_.optional(next));
    }
  }
  std::vector<int> choices;
  if (min == 0) choices.push_back(parts_.sequence({parts_.text("["), blank(), parts_.text("]")}));
  if (max != 0 && n_first > 0) {
    choices.push_back(parts_.sequence({open, first[0], behind, close}));
  } else if (max != 0 && rest != kNone) {
    const int others = parts_.repeat(parts_.sequence({comma, rest}), left(min, 1), left(max, 1));
    choices.push_back(parts_.sequence({open, rest, others, close}));
  }
  return parts_.choice(std::move(choices));
}

}  // namespace outrider
