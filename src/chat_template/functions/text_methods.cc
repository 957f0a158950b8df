// SPDX-License-Identifier: Apache-2.0
// Methods of texts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "chat_template/functions/methods.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/number_format.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/text_search.h"

namespace outrider::jinja {
namespace {

const std::string& bytes(const Value& self) { return self.as_text().bytes; }

Value made(const Value& self, std::string text, Heap& heap) {
  return heap.text(std::move(text), self.as_text().is_markup);
}

Value list_of_texts(const Value& self, const std::vector<std::string_view>& parts, Heap& heap) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(made(self, std::string(part), heap));
  return heap.list(std::move(items));
}

template <Side kSide>
Value strip_side(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("strip", arguments, {""});
  heap.count_bytes_read(bytes(self).size());
  const std::string_view kept = given.is_none_or_absent(0)
                                    ? strip(bytes(self), kSide)
                                    : strip(bytes(self), given.text(0), kSide);
  return made(self, std::string(kept), heap);
}

template <bool kFromRight>
Value split(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("split", arguments, {"sep", "maxsplit"});
  const std::int64_t max_splits = given.integer(1, -1);
  if (given.is_none_or_absent(0)) {
    return list_of_texts(self, split_at_blanks(bytes(self), max_splits, kFromRight), heap);
  }
  if (given.text(0).empty()) fail("split: expected a separator, got an empty text");
  return list_of_texts(self, split_at(bytes(self), given.text(0), max_splits, kFromRight), heap);
}

Value splitlines(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("splitlines", arguments, {"keepends"});
  return list_of_texts(self, split_lines(bytes(self), given.flag(0, false)), heap);
}

template <bool kFromRight>
Value partition(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("partition", arguments, {""});
  const std::string& separator = given.text(0);
  if (separator.empty()) fail("partition: expected a separator, got an empty text");
  const std::string& text = bytes(self);
  const std::size_t at = kFromRight ? text.rfind(separator) : place_in(text, separator);
  const Value empty = made(self, "", heap);
  if (at == std::string::npos) {
    return heap.tuple(kFromRight ? std::vector<Value>{empty, empty, self}
                                 : std::vector<Value>{self, empty, empty});
  }
  return heap.tuple({made(self, text.substr(0, at), heap), made(self, separator, heap),
                     made(self, text.substr(at + separator.size()), heap)});
}

// The part of a text between two character positions, as in slices; nullopt if it begins beyond the
// end.
std::optional<std::string_view> part_of(const Value& self, const Parameters& given,
                                        std::size_t& offset, std::int64_t& n_before) {
  const Text& text = self.as_text();
  const std::int64_t n = n_characters(text);
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    if (given.is_none_or_absent(i)) return otherwise;
    const std::int64_t place = given.integer(i, otherwise);
    return place < 0 ? std::max<std::int64_t>(place + n, 0) : place;
  };
  const std::int64_t begin = bound(1, 0);
  const std::int64_t end = std::min(bound(2, n), n);
  if (begin > n || end < begin) return std::nullopt;
  const std::size_t first = byte_offset(text.bytes, begin);
  offset = first;
  n_before = begin;
  return std::string_view(text.bytes).substr(first, byte_offset(text.bytes, end) - first);
}

template <bool kAtEnd>
Value starts_or_ends(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("startswith", arguments, {"", "", ""});
  std::size_t offset = 0;
  std::int64_t n_before = 0;
  const auto part = part_of(self, given, offset, n_before);
  heap.count_steps(1);
  const auto matches = [&part](const std::string& affix) {
    return part && (kAtEnd ? part->ends_with(affix) : part->starts_with(affix));
  };
  const Value& affix = given.required(0);
  if (!affix.is(Kind::tuple)) return Value::boolean(matches(text_of(affix, "startswith")));
  const auto& items = affix.as_sequence().items;
  return Value::boolean(std::any_of(items.begin(), items.end(), [&](const Value& one) {
    return matches(text_of(one, "startswith"));
  }));
}

// The position in characters; -1 if there is none.
template <bool kFromRight>
std::int64_t place(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("find", arguments, {"", "", ""});
  std::size_t offset = 0;
  std::int64_t n_before = 0;
  heap.count_bytes_read(bytes(self).size());
  const auto part = part_of(self, given, offset, n_before);
  if (!part) return -1;
  const std::size_t at = kFromRight ? part->rfind(given.text(0)) : place_in(*part, given.text(0));
  if (at == std::string_view::npos) return -1;
  return n_before + static_cast<std::int64_t>(count_characters(part->substr(0, at)));
}

template <bool kFromRight>
Value find_text(const Value& self, const Arguments& arguments, Heap& heap) {
  return Value::integer(place<kFromRight>(self, arguments, heap));
}

template <bool kFromRight>
Value index_text(const Value& self, const Arguments& arguments, Heap& heap) {
  const std::int64_t found = place<kFromRight>(self, arguments, heap);
  if (found < 0) fail("index: expected a part of the text, got another text");
  return Value::integer(found);
}

Value count(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("count", arguments, {"", "", ""});
  std::size_t offset = 0;
  std::int64_t n_before = 0;
  heap.count_bytes_read(bytes(self).size());
  const auto part = part_of(self, given, offset, n_before);
  const std::string& wanted = given.text(0);
  if (!part) return Value::integer(0);
  if (wanted.empty()) return Value::integer(static_cast<std::int64_t>(count_characters(*part)) + 1);
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = place_in(*part, wanted, at)) != std::string_view::npos;) {
    ++n;
    at += wanted.size();
  }
  return Value::integer(n);
}

Value replace(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("replace", arguments, {"", "", ""});
  return made(self, replaced(bytes(self), given.text(0), given.text(1), given.integer(2, -1), heap),
              heap);
}

Value remove_prefix(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("removeprefix", arguments, {""});
  if (!bytes(self).starts_with(given.text(0))) return self;
  return made(self, bytes(self).substr(given.text(0).size()), heap);
}

Value remove_suffix(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("removesuffix", arguments, {""});
  if (!bytes(self).ends_with(given.text(0))) return self;
  return made(self, bytes(self).substr(0, bytes(self).size() - given.text(0).size()), heap);
}

Value join(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("join", arguments, {""});
  std::string out;
  bool first = true;
  const auto next = items_of(given.required(0), heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    if (!std::exchange(first, false)) out += bytes(self);
    out += text_of(item, "join");
    heap.check_text_size(out.size());
  }
  return made(self, std::move(out), heap);
}

template <std::string (*kChange)(std::string_view)>
Value changed(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("upper, lower, title", arguments, {});
  heap.count_bytes_read(bytes(self).size());
  return made(self, kChange(bytes(self)), heap);
}

std::string case_folded(std::string_view text) {
  std::string out;
  for (const char32_t c : code_points(to_lower(text))) {
    if (c == 0xDF) {
      out += "ss";
    } else if (c == 0x3C2) {
      append_character(0x3C3, out);
    } else {
      append_character(c, out);
    }
  }
  return out;
}

template <bool (*kIs)(char32_t)>
Value all_are(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("isdigit, isalpha", arguments, {});
  heap.count_bytes_read(bytes(self).size());
  const std::u32string characters = code_points(bytes(self));
  return Value::boolean(!characters.empty() &&
                        std::all_of(characters.begin(), characters.end(), kIs));
}

bool is_alphanumeric(char32_t c) { return is_alphabetic(c) || is_numeric(c) || is_digit(c); }

Value is_ascii(const Value& self, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("isascii", arguments, {});
  return Value::boolean(self.as_text().is_ascii);
}

Value is_all_printable(const Value& self, const Arguments& arguments, Heap& heap) {
  if (bytes(self).empty()) return Value::boolean(true);
  return all_are<is_printable>(self, arguments, heap);
}

Value is_identifier(const Value& self, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("isidentifier", arguments, {});
  const std::u32string characters = code_points(bytes(self));
  const auto is_letter = [](char32_t c) { return c == '_' || is_alphabetic(c); };
  return Value::boolean(!characters.empty() && is_letter(characters.front()) &&
                        std::all_of(characters.begin(), characters.end(),
                                    [&](char32_t c) { return is_letter(c) || is_decimal(c); }));
}

Value is_title_text(const Value& self, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("istitle", arguments, {});
  bool behind_cased = false;
  bool any = false;
  for (const char32_t c : code_points(bytes(self))) {
    if (is_upper(c) || is_title(c)) {
      if (behind_cased) return Value::boolean(false);
      behind_cased = any = true;
    } else if (is_lower(c)) {
      if (!behind_cased) return Value::boolean(false);
      any = true;
    } else {
      behind_cased = false;
    }
  }
  return Value::boolean(any);
}

template <bool kUpper>
Value is_case(const Value& self, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("isupper", arguments, {});
  return Value::boolean(kUpper ? all_cased_upper(bytes(self)) : all_cased_lower(bytes(self)));
}

template <char kAlign>
Value justified(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("center, ljust, rjust", arguments, {"", ""});
  NumberForm form;
  form.width = integer_of(given.required(0), "center, ljust, rjust");
  if (given.given(1)) {
    form.fill = given.text(1);
    if (count_characters(form.fill) != 1) fail("ljust: expected one character, got another text");
  }
  heap.check_text_size(form.width < 0 ? 0 : static_cast<std::size_t>(form.width));
  if (kAlign == '^') return made(self, centered(bytes(self), form.width, form.fill), heap);
  return made(self, padded(bytes(self), form, kAlign), heap);
}

Value zfill(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("zfill", arguments, {""});
  const std::int64_t width = integer_of(given.required(0), "zfill");
  heap.check_text_size(width < 0 ? 0 : static_cast<std::size_t>(width));
  const std::string& text = bytes(self);
  const bool has_sign = text.starts_with('+') || text.starts_with('-');
  const std::int64_t missing = width - n_characters(self.as_text());
  if (missing <= 0) return self;
  return made(self,
              text.substr(0, has_sign ? 1 : 0) +
                  std::string(static_cast<std::size_t>(missing), '0') +
                  text.substr(has_sign ? 1 : 0),
              heap);
}

Value expand_tabs(const Value& self, const Arguments& arguments, Heap& heap) {
  const Parameters given("expandtabs", arguments, {"tabsize"});
  const std::int64_t size = std::clamp<std::int64_t>(given.integer(0, 8), 0, kWidest);
  std::string out;
  std::int64_t column = 0;
  for (const char32_t c : code_points(bytes(self))) {
    if (c == '\t') {
      const std::int64_t n = size == 0 ? 0 : size - column % size;
      out.append(static_cast<std::size_t>(n), ' ');
      column += n;
      heap.check_text_size(out.size());
      continue;
    }
    append_character(c, out);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return made(self, std::move(out), heap);
}

struct NamedMethod {
  std::string_view name;
  Method method;
};
constexpr NamedMethod kMethods[] = {
    {"strip", strip_side<Side::both>},
    {"lstrip", strip_side<Side::left>},
    {"rstrip", strip_side<Side::right>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", splitlines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"startswith", starts_or_ends<false>},
    {"endswith", starts_or_ends<true>},
    {"find", find_text<false>},
    {"rfind", find_text<true>},
    {"index", index_text<false>},
    {"rindex", index_text<true>},
    {"count", count},
    {"replace", replace},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"join", join},
    {"format", format_text},
    {"format_map", format_text_map},
    {"upper", changed<to_upper>},
    {"lower", changed<to_lower>},
    {"title", changed<to_title>},
    {"capitalize", changed<capitalize>},
    {"swapcase", changed<swap_case>},
    {"casefold", changed<case_folded>},
    {"isdigit", all_are<is_digit>},
    {"isdecimal", all_are<is_decimal>},
    {"isnumeric", all_are<is_numeric>},
    {"isalpha", all_are<is_alphabetic>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isspace", all_are<is_space>},
    {"isascii", is_ascii},
    {"isprintable", is_all_printable},
    {"isidentifier", is_identifier},
    {"istitle", is_title_text},
    {"isupper", is_case<true>},
    {"islower", is_case<false>},
    {"center", justified<'^'>},
    {"ljust", justified<'<'>},
    {"rjust", justified<'>'>},
    {"zfill", zfill},
    {"expandtabs", expand_tabs},
};

}  // namespace

Method find_text_method(std::string_view name) {
  const auto* found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                   [name](const NamedMethod& one) { return one.name == name; });
  return found == std::end(kMethods) ? nullptr : found->method;
}

}  // namespace outrider::jinja
