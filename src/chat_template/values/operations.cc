// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat_template/loop.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/text_search.h"

namespace outrider::jinja {
namespace {

bool equal_items(const std::vector<Value>& left, const std::vector<Value>& right, Heap& heap) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!equal(left[i], right[i], heap)) return false;
  }
  return true;
}

bool equal_dicts(const Dict& left, const Dict& right, Heap& heap) {
  if (left.items.size() != right.items.size()) return false;
  for (const auto& [key, value] : left.items) {
    const Value* other = find(right, key);
    if (other == nullptr || !equal(value, *other, heap)) return false;
  }
  return true;
}

bool equal_ranges(const Range& left, const Range& right) {
  if (left.length != right.length) return false;
  if (left.length == 0) return true;
  return left.start == right.start && (left.length == 1 || left.step == right.step);
}

bool equal_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return left.as_integer() == right.as_integer();
  if (left.is(Kind::real) && right.is(Kind::real)) return left.as_real() == right.as_real();
  // Exact if the double is an integer.
  return hash_key(left) == hash_key(right);
}

std::string_view sign_of(Operator operation) {
  switch (operation) {
    case Operator::less:
      return "<";
    case Operator::less_equal:
      return "<=";
    case Operator::greater:
      return ">";
    default:
      return ">=";
  }
}

// -1, 0 or 1; 2 for numbers without an order (NaN).
int order(const Value& left, const Value& right, Operator operation, Heap& heap) {
  heap.count_steps(1);
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  const auto of = [](const auto& a, const auto& b) {
    return a < b ? -1 : a == b ? 0 : b < a ? 1 : 2;
  };
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) return of(left.as_integer(), right.as_integer());
    return of(left.as_real(), right.as_real());
  }
  if (left.is_text() && right.is_text()) {
    // UTF-8 bytes order like code points.
    heap.count_bytes_read(std::min(left.as_text().bytes.size(), right.as_text().bytes.size()));
    return of(left.as_text().bytes.compare(right.as_text().bytes), 0);
  }
  if (left.is_sequence() && left.kind() == right.kind()) {
    const auto& a = left.as_sequence().items;
    const auto& b = right.as_sequence().items;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i], heap)) return order(a[i], b[i], operation, heap);
    }
    return of(a.size(), b.size());
  }
  fail(fmt::format("'{}': expected two numbers, texts or lists, got {} and {}", sign_of(operation),
                   type_name(left), type_name(right)));
}

}  // namespace

void fail_undefined(const Value& value) { fail(value.as_undefined().problem); }

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::absent:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.as_integer() != 0;
    case Kind::real:
      return value.as_real() != 0;
    case Kind::text:
      return !value.as_text().bytes.empty();
    case Kind::list:
    case Kind::tuple:
      return !value.as_sequence().items.empty();
    case Kind::dict:
      return !value.as_dict().items.empty();
    case Kind::dict_view:
      return !value.as_dict_view().dict.as_dict().items.empty();
    case Kind::range:
      return value.as_range().length > 0;
    case Kind::loop:
      return value.as_loop().count() > 0;
    default:
      return true;
  }
}

bool equal(const Value& left, const Value& right, Heap& heap) {
  heap.count_steps(1);
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.kind() != right.kind()) return false;
  if (left.is_none() || left.object() == right.object()) return true;
  switch (left.kind()) {
    case Kind::absent:
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::text:
      heap.count_bytes_read(std::min(left.as_text().bytes.size(), right.as_text().bytes.size()));
      return left.as_text().bytes == right.as_text().bytes;
    case Kind::list:
    case Kind::tuple:
      return equal_items(left.as_sequence().items, right.as_sequence().items, heap);
    case Kind::dict:
      return equal_dicts(left.as_dict(), right.as_dict(), heap);
    case Kind::range:
      return equal_ranges(left.as_range(), right.as_range());
    case Kind::dict_view: {
      const DictView& a = left.as_dict_view();
      const DictView& b = right.as_dict_view();
      // Views of keys and items compare as sets.
      if (a.part == DictView::Part::values || a.part != b.part)
        return left.object() == right.object();
      if (a.part == DictView::Part::items)
        return equal_dicts(a.dict.as_dict(), b.dict.as_dict(), heap);
      const auto& items = a.dict.as_dict().items;
      return items.size() == b.dict.as_dict().items.size() &&
             std::all_of(items.begin(), items.end(), [&](const auto& item) {
               return find(b.dict.as_dict(), item.first) != nullptr;
             });
    }
    default:
      return left.object() == right.object();
  }
}

bool less(const Value& left, const Value& right, Heap& heap) {
  return order(left, right, Operator::less, heap) == -1;
}

bool contains(const Value& container, const Value& item, Heap& heap) {
  switch (container.kind()) {
    case Kind::text:
      if (!item.is_text()) {
        if (item.is_undefined()) fail_undefined(item);
        fail(fmt::format("'in': expected a text left of a text, got {}", type_name(item)));
      }
      heap.count_bytes_read(container.as_text().bytes.size());
      return place_in(container.as_text().bytes, item.as_text().bytes) != std::string::npos;
    case Kind::dict:
      return find(container.as_dict(), item) != nullptr;
    case Kind::dict_view:
      if (container.as_dict_view().part == DictView::Part::keys) {
        return find(container.as_dict_view().dict.as_dict(), item) != nullptr;
      }
      break;
    case Kind::undefined:
      return false;
    default:
      break;
  }
  const auto next = items_of(container, heap);
  for (Value one = next(); !one.is_absent(); one = next()) {
    if (equal(one, item, heap)) return true;
  }
  return false;
}

bool compare(Operator operation, const Value& left, const Value& right, Heap& heap) {
  switch (operation) {
    case Operator::equal:
      return equal(left, right, heap);
    case Operator::not_equal:
      return !equal(left, right, heap);
    case Operator::in:
      return contains(right, left, heap);
    case Operator::not_in:
      return !contains(right, left, heap);
    default:
      break;
  }
  const int found = order(left, right, operation, heap);
  switch (operation) {
    case Operator::less:
      return found == -1;
    case Operator::less_equal:
      return found == -1 || found == 0;
    case Operator::greater:
      return found == 1;
    default:
      return found == 1 || found == 0;
  }
}

std::int64_t n_characters(const Text& text) {
  if (text.is_ascii) return static_cast<std::int64_t>(text.bytes.size());
  return std::count_if(text.bytes.begin(), text.bytes.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

bool has_length(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::text:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::dict_view:
    case Kind::range:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}

std::int64_t length(const Value& value, Heap& heap) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      heap.count_bytes_read(value.as_text().bytes.size());
      return n_characters(value.as_text());
    case Kind::list:
    case Kind::tuple:
      return static_cast<std::int64_t>(value.as_sequence().items.size());
    case Kind::dict:
      return static_cast<std::int64_t>(value.as_dict().items.size());
    case Kind::dict_view:
      return static_cast<std::int64_t>(value.as_dict_view().dict.as_dict().items.size());
    case Kind::range:
      return value.as_range().length;
    case Kind::loop:
      return value.as_loop().count();
    default:
      fail(fmt::format("expected something with a length, got {}", type_name(value)));
  }
}

bool is_iterable(const Value& value) { return has_length(value) || value.is(Kind::iterator); }

std::function<Value()> items_of(const Value& value, Heap& heap) {
  switch (value.kind()) {
    case Kind::undefined:
      return [] { return Value(); };
    case Kind::list:
    case Kind::tuple:
      return [&items = value.as_sequence().items, &heap, at = std::size_t{0}]() mutable {
        heap.count_steps(1);
        return at < items.size() ? items[at++] : Value();
      };
    case Kind::dict:
      return [&items = value.as_dict().items, &heap, at = std::size_t{0}]() mutable {
        heap.count_steps(1);
        return at < items.size() ? items[at++].first : Value();
      };
    case Kind::dict_view:
      return [&items = value.as_dict_view().dict.as_dict().items, part = value.as_dict_view().part,
              &heap, at = std::size_t{0}]() mutable {
        heap.count_steps(1);
        if (at >= items.size()) return Value();
        const auto& item = items[at++];
        if (part == DictView::Part::keys) return item.first;
        if (part == DictView::Part::values) return item.second;
        return heap.tuple({item.first, item.second});
      };
    case Kind::range:
      return [range = value.as_range(), &heap, at = std::int64_t{0}]() mutable {
        heap.count_steps(1);
        if (at >= range.length) return Value();
        return Value::integer(range.at(at++));
      };
    case Kind::text:
      return [&text = value.as_text().bytes, &heap, at = std::size_t{0}]() mutable {
        if (at >= text.size()) return Value();
        const std::size_t n = character_at(text, at).n_bytes;
        at += n;
        return heap.text(text.substr(at - n, n));
      };
    case Kind::iterator:
      return [&iterator = value.as_iterator()] { return iterator.next(); };
    case Kind::loop:
      return [&loop = value.as_loop(), value, &heap] {
        if (!loop.advance()) return Value();
        return heap.tuple({loop.current, value});
      };
    default:
      fail(fmt::format("expected something with items, got {}", type_name(value)));
  }
}

std::vector<Value> list_of(const Value& value, Heap& heap) {
  std::vector<Value> items;
  const auto next = items_of(value, heap);
  for (Value item = next(); !item.is_absent(); item = next()) {
    heap.count_memory(sizeof(Value));
    items.push_back(item);
  }
  return items;
}

std::vector<Value> reversed(const Value& value, Heap& heap) {
  if (value.is(Kind::iterator) || value.is(Kind::loop)) {
    fail(fmt::format("expected something with an end, got {}", type_name(value)));
  }
  std::vector<Value> items = list_of(value, heap);
  std::reverse(items.begin(), items.end());
  return items;
}

std::int64_t integer_of(const Value& value, std::string_view what) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_integral()) {
    fail(fmt::format("{}: expected an integer, got {}", what, type_name(value)));
  }
  return value.as_integer();
}

const std::string& text_of(const Value& value, std::string_view what) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_text()) fail(fmt::format("{}: expected a text, got {}", what, type_name(value)));
  return value.as_text().bytes;
}

}  // namespace outrider::jinja
