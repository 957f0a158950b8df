// SPDX-License-Identifier: Apache-2.0
// Filters that produce texts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chat_template/functions/filters.h"
#include "chat_template/functions/markup.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/attribute_path.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/json_text.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"
#include "chat_template/values/printf_format.h"
#include "chat_template/values/text_search.h"

namespace outrider::jinja {
namespace {

bool is_markup(const Value& value) { return value.is_text() && value.as_text().is_markup; }

template <std::string (*kChange)(std::string_view)>
Value changed(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("upper, lower, capitalize", arguments, {});
  const std::string text = printed(subject, heap);
  heap.count_bytes_read(text.size());
  return heap.text(kChange(text), is_markup(subject));
}

// Words begin after blanks, hyphens and opening brackets (str.title splits differently).
std::string titled(std::string_view text) {
  std::string out;
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const Character first = character_at(word, 0);
    append_upper(first.value, out);
    out += to_lower(std::string_view(word).substr(first.n_bytes));
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const bool separates = is_space(c.value) || c.value == '-' || c.value == '(' ||
                           c.value == '{' || c.value == '[' || c.value == '<';
    if (separates) end_word();
    (separates ? out : word).append(text.substr(at, c.n_bytes));
    at += c.n_bytes;
  }
  end_word();
  return out;
}

Value trim(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("trim", arguments, {"chars"});
  const std::string text = printed(subject, heap);
  heap.count_bytes_read(text.size());
  const std::string_view kept =
      given.is_none_or_absent(0) ? strip(text, Side::both) : strip(text, given.text(0), Side::both);
  return heap.text(std::string(kept), is_markup(subject));
}

Value string(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("string", arguments, {});
  return printed_value(subject, heap);
}

Value replace(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("replace", arguments, {"old", "new", "count"});
  const std::int64_t max_replaced = given.is_none_or_absent(2) ? -1 : given.integer(2, -1);
  return heap.text(replaced(printed(subject, heap), printed(given.required(0), heap),
                            printed(given.required(1), heap), max_replaced, heap));
}

Value join(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const AttributePath path(given[1], heap);
  const std::string separator = given.given(0) ? printed(given[0], heap) : "";
  std::string out;
  bool first = true;
  const auto next = items_of(subject, heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    if (!std::exchange(first, false)) out += separator;
    out += printed(path.of(item), heap);
    heap.check_text_size(out.size());
  }
  return heap.text(std::move(out));
}

Value indent(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("indent", arguments, {"width", "first", "blank"});
  const std::string text = text_of(subject, "indent") + "\n";
  std::string margin;
  if (given.given(0) && given[0].is_text()) {
    margin = given.text(0);
  } else {
    const std::int64_t width = std::max<std::int64_t>(given.integer(0, 4), 0);
    heap.check_text_size(static_cast<std::size_t>(width));
    margin.assign(static_cast<std::size_t>(width), ' ');
  }
  const bool with_blank = given.flag(2, false);
  std::string out;
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (is_first ? given.flag(1, false) : with_blank || !line.empty()) {
      if (!is_first) out += '\n';
      out += margin;
    } else if (!is_first) {
      out += '\n';
    }
    is_first = false;
    out += line;
    heap.check_text_size(out.size());
  }
  return heap.text(std::move(out), is_markup(subject));
}

Value truncate(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::string end = given.given(2) ? given.text(2) : "...";
  const std::int64_t longest = given.integer(0, 255);
  const std::int64_t leeway = given.is_none_or_absent(3) ? 5 : given.integer(3, 5);
  const auto n_end = static_cast<std::int64_t>(count_characters(end));
  if (longest < n_end || leeway < 0)
    fail("truncate: expected more room than the end takes, got less");
  if (!subject.is_text()) {
    if (length(subject, heap) <= longest + leeway) return subject;
    text_of(subject, "truncate");
  }
  const std::string& text = subject.as_text().bytes;
  if (n_characters(subject.as_text()) <= longest + leeway) return subject;
  std::string kept = text.substr(0, byte_offset(text, longest - n_end));
  if (!given.flag(1, false)) {
    const std::size_t blank = kept.rfind(' ');
    if (blank != std::string::npos) kept.resize(blank);
  }
  return heap.text(kept + end, is_markup(subject));
}

Value center(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("center", arguments, {"width"});
  const std::int64_t width = given.integer(0, 80);
  heap.check_text_size(width < 0 ? 0 : static_cast<std::size_t>(width));
  return heap.text(centered(printed(subject, heap), width, " "), is_markup(subject));
}

Value wordcount(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("wordcount", arguments, {});
  std::int64_t n = 0;
  bool in_word = false;
  for (const char32_t c : code_points(printed(subject, heap))) {
    const bool is_part = c == '_' || is_alphabetic(c) || is_numeric(c) || is_digit(c);
    if (is_part && !in_word) ++n;
    in_word = is_part;
  }
  return Value::integer(n);
}

Value format(const Value& subject, const Arguments& arguments, Heap& heap) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("format: expected values by place or by name, got both");
  }
  if (arguments.named.empty()) {
    return printf_format(printed_value(subject, heap), heap.tuple(arguments.positional), heap);
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [name, value] : arguments.named) items.emplace_back(heap.text(name), value);
  return printf_format(printed_value(subject, heap), heap.dict(std::move(items)), heap);
}

Value safe(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("safe", arguments, {});
  return heap.text(printed(subject, heap), true);
}

Value escape(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("escape", arguments, {});
  if (is_markup(subject)) return subject;
  return heap.text(escape_markup(printed(subject, heap)), true);
}

Value force_escape(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("forceescape", arguments, {});
  return heap.text(escape_markup(printed(subject, heap)), true);
}

std::optional<std::string> indent_of(const Value& value) {
  if (value.is_absent() || value.is_none()) return std::nullopt;
  if (value.is_text()) return value.as_text().bytes;
  const std::int64_t width = integer_of(value, "tojson");
  constexpr std::int64_t kWidestIndent = 1000;
  if (width > kWidestIndent) fail("tojson: expected an indentation up to 1000, got more");
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
}

// As transformers defines it: json.dumps with these arguments.
Value tojson(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("tojson", arguments,
                         {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii_only = given.flag(0, false);
  style.indent = indent_of(given[1]);
  if (style.indent) style.item_separator.assign(1, ',');
  if (!given.is_none_or_absent(2)) {
    const std::vector<Value> pair = list_of(given[2], heap);
    if (pair.size() != 2) fail("tojson: expected two separators, got another number");
    style.item_separator = text_of(pair[0], "tojson");
    style.key_separator = text_of(pair[1], "tojson");
  }
  style.sort_keys = given.flag(3, false);
  return heap.text(write_json(subject, style, heap));
}

Value urlencode(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("urlencode", arguments, {});
  const auto encoded = [&heap](const Value& value, bool keeps_slash) {
    std::string out;
    for (const char c : printed(value, heap)) {
      const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == '~' ||
                         (c == '/' && keeps_slash);
      if (stays) {
        out += c;
      } else if (c == ' ' && !keeps_slash) {
        out += '+';
      } else {
        out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
      }
    }
    return out;
  };
  if (subject.is_text() || !is_iterable(subject)) return heap.text(encoded(subject, true));
  const Value pairs = subject.is_dict() ? heap.dict_view(DictView::Part::items, subject) : subject;
  std::string out;
  const auto next = items_of(pairs, heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    const std::vector<Value> pair = list_of(item, heap);
    if (pair.size() != 2) fail("urlencode: expected pairs, got something else");
    if (!out.empty()) out += '&';
    out += encoded(pair[0], false) + "=" + encoded(pair[1], false);
    heap.check_text_size(out.size());
  }
  return heap.text(std::move(out));
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {
    {"trim", trim},
    {"upper", changed<to_upper>},
    {"lower", changed<to_lower>},
    {"capitalize", changed<capitalize>},
    {"title", changed<titled>},
    {"string", string},
    {"replace", replace},
    {"join", join},
    {"tojson", tojson},
    {"indent", indent},
    {"truncate", truncate},
    {"center", center},
    {"wordcount", wordcount},
    {"format", format},
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"urlencode", urlencode},
};

}  // namespace

Filter find_text_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [name](const NamedFilter& one) { return one.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace outrider::jinja
