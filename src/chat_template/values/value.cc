// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat_template/loop.h"

namespace outrider::jinja {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

int deepest(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  return depth;
}

int one_deeper(int depth) {
  if (depth >= kDeepestValue) {
    fail(fmt::format("expected values nested at most {} deep, got more", kDeepestValue));
  }
  return depth + 1;
}

}  // namespace

void fail(std::string text) { throw Problem{std::move(text)}; }

void Heap::too_many_steps() const {
  fail(fmt::format("expected at most {} steps of evaluation, got more", limits_.n_steps));
}

void Heap::check_text_size(std::size_t n_bytes) const {
  if (n_bytes > limits_.text_bytes) {
    fail(fmt::format("expected texts of at most {} bytes, got more", limits_.text_bytes));
  }
}

void Heap::count_memory(std::size_t n_bytes) {
  n_bytes_ += n_bytes;
  if (n_bytes_ > limits_.memory_bytes) {
    fail(fmt::format("expected at most {} bytes of values, got more", limits_.memory_bytes));
  }
}

template <typename Object>
Object* Heap::keep(std::unique_ptr<Object> object, std::size_t more_bytes) {
  count_memory(sizeof(Object) + sizeof(Owned) + more_bytes);
  objects_.emplace_back(object.get(), [](void* made) { delete static_cast<Object*>(made); });
  return object.release();
}

Value Heap::text(std::string bytes, bool is_markup) {
  check_text_size(bytes.size());
  count_bytes_read(bytes.size());
  const std::size_t size = bytes.size();
  auto made = std::make_unique<Text>();
  made->is_ascii = is_ascii(bytes);
  made->is_markup = is_markup;
  made->bytes = std::move(bytes);
  return Value::of(Kind::text, keep(std::move(made), size));
}

Value Heap::undefined(std::string problem) {
  const std::size_t size = problem.size();
  return Value::of(Kind::undefined,
                   keep(std::make_unique<Undefined>(Undefined{std::move(problem)}), size));
}

Value Heap::sequence(Kind kind, std::vector<Value> items, bool is_group) {
  auto made = std::make_unique<Sequence>();
  made->depth = one_deeper(deepest(items));
  made->is_group = is_group;
  made->items = std::move(items);
  const std::size_t size = made->items.size() * sizeof(Value);
  return Value::of(kind, keep(std::move(made), size));
}

Value Heap::dict(std::vector<std::pair<Value, Value>> items) {
  constexpr std::size_t kBytesOfPlace = 64;  // per entry of the hash table, with its key
  auto made = std::make_unique<Dict>();
  int depth = 0;
  for (const auto& [key, value] : items) {
    depth = std::max({depth, depth_of(key), depth_of(value)});
    const auto [place, is_new] = made->places.try_emplace(hash_key(key), made->items.size());
    if (is_new) {
      made->items.emplace_back(key, value);
    } else {
      made->items[place->second].second = value;
    }
  }
  made->depth = one_deeper(depth);
  const std::size_t size = made->items.size() * (2 * sizeof(Value) + kBytesOfPlace);
  return Value::of(Kind::dict, keep(std::move(made), size));
}

Value Heap::dict_view(DictView::Part part, Value dict) {
  return Value::of(Kind::dict_view,
                   keep(std::make_unique<DictView>(DictView{.part = part, .dict = dict}), 0));
}

Value Heap::range(const Range& range) {
  return Value::of(Kind::range, keep(std::make_unique<Range>(range), 0));
}

Value Heap::iterator(std::string name, const std::vector<Value>& over,
                     std::function<Value()> next) {
  constexpr std::size_t kBytesOfCapture = 128;
  auto made = std::make_unique<Iterator>();
  made->depth = one_deeper(deepest(over));
  made->next = std::move(next);
  made->name = std::move(name);
  return Value::of(Kind::iterator, keep(std::move(made), kBytesOfCapture));
}

Value Heap::name_space(std::vector<std::pair<std::string, Value>> attributes) {
  const std::size_t size = attributes.size() * (sizeof(Value) + sizeof(std::string));
  auto made = std::make_unique<Namespace>(Namespace{std::move(attributes)});
  return Value::of(Kind::name_space, keep(std::move(made), size));
}

Value Heap::function(Function function) {
  constexpr std::size_t kBytesOfCapture = 64;
  return Value::of(Kind::function,
                   keep(std::make_unique<Function>(std::move(function)), kBytesOfCapture));
}

Value Heap::slice(Value start, Value stop, Value step) {
  return Value::of(
      Kind::slice,
      keep(std::make_unique<Slice>(Slice{.start = start, .stop = stop, .step = step}), 0));
}

Value Heap::loop(std::unique_ptr<Loop> loop) {
  return Value::of(Kind::loop, keep(std::move(loop), 0));
}

int depth_of(const Value& value) {
  switch (value.kind()) {
    case Kind::list:
    case Kind::tuple:
      return value.as_sequence().depth;
    case Kind::dict:
      return value.as_dict().depth;
    case Kind::dict_view:
      return value.as_dict_view().dict.as_dict().depth;
    case Kind::iterator:
      return value.as_iterator().depth;
    case Kind::function:
      return value.as_function().depth;
    default:
      return 0;
  }
}

std::string hash_key(const Value& key) {
  switch (key.kind()) {
    case Kind::none:
      return "n";
    case Kind::boolean:
    case Kind::integer:
      return fmt::format("i{}", key.as_integer());
    case Kind::real: {
      const double value = key.as_real();
      constexpr double kBeyond = 9223372036854775808.0;  // 2^63
      if (value == std::floor(value) && value >= -kBeyond && value < kBeyond) {
        return fmt::format("i{}", static_cast<std::int64_t>(value));
      }
      return fmt::format("r{}", value);
    }
    case Kind::text:
      return std::string("t").append(key.as_text().bytes);
    case Kind::tuple: {
      // Tuples that hold one tuple twice, and so on, would have keys of any length.
      constexpr std::size_t kLongestKey_bytes = std::size_t{1} << 20;
      std::string made = "(";
      for (const Value& item : key.as_sequence().items) {
        const std::string part = hash_key(item);
        made += fmt::format("{}:{}", part.size(), part);
        if (made.size() > kLongestKey_bytes) {
          fail(fmt::format("expected keys of at most {} bytes, got a longer one",
                           kLongestKey_bytes));
        }
      }
      return made;
    }
    case Kind::list:
    case Kind::dict:
    case Kind::dict_view:
    case Kind::slice:
      fail(fmt::format("expected a key of a fixed value, got one of type {}", type_name(key)));
    default:
      // Objects are equal as keys only if identical.
      return fmt::format("o{}", key.object());
  }
}

const Value* find(const Dict& dict, const Value& key) {
  const auto place = dict.places.find(hash_key(key));
  return place == dict.places.end() ? nullptr : &dict.items[place->second].second;
}

const Value* find(const Dict& dict, std::string_view key) {
  const auto place = dict.places.find(std::string("t").append(key));
  return place == dict.places.end() ? nullptr : &dict.items[place->second].second;
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::absent:
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::text:
      return "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::dict:
      return "dict";
    case Kind::dict_view:
      switch (value.as_dict_view().part) {
        case DictView::Part::keys:
          return "dict_keys";
        case DictView::Part::values:
          return "dict_values";
        case DictView::Part::items:
          break;
      }
      return "dict_items";
    case Kind::range:
      return "range";
    case Kind::iterator:
      return "generator";
    case Kind::name_space:
      return "namespace";
    case Kind::loop:
      return "loop";
    case Kind::function:
      return "function";
    case Kind::slice:
      break;
  }
  return "slice";
}

}  // namespace outrider::jinja
