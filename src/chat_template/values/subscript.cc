// SPDX-License-Identifier: Apache-2.0
// value[key] and value[start:stop:step].
#include <algorithm>
#include <limits>

#include "chat_template/values/characters.h"
#include "chat_template/values/operations.h"

namespace outrider::jinja {
namespace {

// The positions that a slice selects, by Python's rules.
struct Places {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::int64_t count;
};

// Ranges are short, but their steps may be any integers.
std::int64_t times(std::int64_t left, std::int64_t right) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(left, right, &product)) {
    fail("expected integers of 64 bits, got a larger one");
  }
  return product;
}

std::int64_t place_in(const Range& range, std::int64_t index) {
  std::int64_t place = 0;
  if (__builtin_add_overflow(range.start, times(range.step, index), &place)) {
    fail("expected integers of 64 bits, got a larger one");
  }
  return place;
}

Places places_of(const Slice& slice, std::int64_t length) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto given = [](const Value& value) { return !value.is_none(); };
  std::int64_t step = given(slice.step) ? integer_of(slice.step, "slice step") : 1;
  if (step == 0) fail("slice step: expected another number than 0, got 0");
  step = std::max(step, -kLargest);
  // The position of a bound beyond the text.
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? length - 1 : length;
  const auto bound = [&](const Value& value, std::int64_t otherwise) {
    if (!given(value)) return otherwise;
    std::int64_t place = integer_of(value, "slice bound");
    if (place < 0) place += length;  // never overflows: one is negative, the other is not
    return std::clamp(place, lowest, highest);
  };
  const std::int64_t start = bound(slice.start, step < 0 ? highest : lowest);
  const std::int64_t stop = bound(slice.stop, step < 0 ? lowest : highest);
  std::int64_t count = 0;
  if (step > 0 && start < stop) count = (stop - start - 1) / step + 1;
  if (step < 0 && start > stop) count = (start - stop - 1) / -step + 1;
  return {.start = start, .stop = stop, .step = step, .count = count};
}

Value slice_of_text(const Text& text, const Slice& slice, Heap& heap) {
  const Places places = places_of(slice, n_characters(text));
  heap.count_bytes_read(text.bytes.size());
  std::string taken;
  if (text.is_ascii) {
    if (places.step == 1) {
      taken = text.bytes.substr(static_cast<std::size_t>(places.start),
                                static_cast<std::size_t>(places.count));
    } else {
      for (std::int64_t i = 0; i < places.count; ++i) {
        taken += text.bytes[static_cast<std::size_t>(places.start + i * places.step)];
      }
    }
  } else {
    const std::u32string characters = code_points(text.bytes);
    for (std::int64_t i = 0; i < places.count; ++i) {
      append_character(characters[static_cast<std::size_t>(places.start + i * places.step)], taken);
    }
  }
  return heap.text(std::move(taken), text.is_markup);
}

Value slice_of(const Value& value, const Slice& slice, Heap& heap) {
  switch (value.kind()) {
    case Kind::text:
      return slice_of_text(value.as_text(), slice, heap);
    case Kind::list:
    case Kind::tuple: {
      const auto& items = value.as_sequence().items;
      const Places places = places_of(slice, static_cast<std::int64_t>(items.size()));
      heap.count_steps(places.count);
      std::vector<Value> taken;
      for (std::int64_t i = 0; i < places.count; ++i) {
        taken.push_back(items[static_cast<std::size_t>(places.start + i * places.step)]);
      }
      return value.is(Kind::list) ? heap.list(std::move(taken)) : heap.tuple(std::move(taken));
    }
    case Kind::range: {
      const Range& range = value.as_range();
      const Places places = places_of(slice, range.length);
      return heap.range({.start = place_in(range, places.start),
                         .stop = place_in(range, places.stop),
                         .step = times(range.step, places.step),
                         .length = places.count});
    }
    default:
      return {};
  }
}

// The position of an item counted from either end; -1 if there is none.
std::int64_t place_of(std::int64_t index, std::int64_t length) {
  if (index < 0) index += length;
  return index >= 0 && index < length ? index : -1;
}

Value character_of(const Text& text, std::int64_t index, Heap& heap) {
  const std::int64_t place = place_of(index, n_characters(text));
  if (place < 0) return {};
  if (text.is_ascii) {
    return heap.text(std::string(1, text.bytes[static_cast<std::size_t>(place)]), text.is_markup);
  }
  heap.count_bytes_read(text.bytes.size());
  std::size_t at = 0;
  for (std::int64_t i = 0; i < place; ++i) at += character_at(text.bytes, at).n_bytes;
  return heap.text(text.bytes.substr(at, character_at(text.bytes, at).n_bytes), text.is_markup);
}

}  // namespace

Value item_of(const Value& value, const Value& key, Heap& heap) {
  if (key.is(Kind::slice)) return slice_of(value, key.as_slice(), heap);
  if (value.is_dict()) {
    if (key.is(Kind::list) || key.is_dict()) return {};
    const Value* found = find(value.as_dict(), key);
    return found == nullptr ? Value() : *found;
  }
  if (!key.is_integral()) return {};
  switch (value.kind()) {
    case Kind::text:
      return character_of(value.as_text(), key.as_integer(), heap);
    case Kind::list:
    case Kind::tuple: {
      const auto& items = value.as_sequence().items;
      const auto place = place_of(key.as_integer(), static_cast<std::int64_t>(items.size()));
      return place < 0 ? Value() : items[static_cast<std::size_t>(place)];
    }
    case Kind::range: {
      const Range& range = value.as_range();
      const auto place = place_of(key.as_integer(), range.length);
      return place < 0 ? Value() : Value::integer(range.at(place));
    }
    default:
      return {};
  }
}

}  // namespace outrider::jinja
