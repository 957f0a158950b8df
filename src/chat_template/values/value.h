// SPDX-License-Identifier: Apache-2.0
// The values of a template: those of Python that JSON and templates can make.
//
// A Value is a small handle; its object belongs to a Heap and lives as long as the heap. Objects
// are not freed one by one, so values may refer to each other in any way, and no destructor
// recurses. Objects other than namespaces, loops, cyclers and iterators never change once a
// template has seen them. Not thread-safe, except for reading values that no longer change.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_VALUE_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat_template/limits.h"

namespace outrider::jinja {

enum class Kind : std::uint8_t {
  absent,  // no value: an argument not given, a variable not set
  undefined,
  none,
  boolean,
  integer,
  real,
  text,
  list,
  tuple,
  dict,
  dict_view,  // the result of keys(), values() and items()
  range,
  iterator,  // the result of map, select and the like: iterated once
  name_space,
  loop,
  function,  // macros, bound methods, globals
  slice,     // only within [ ]
};

struct Undefined;
struct Text;
struct Sequence;
struct Dict;
struct DictView;
struct Range;
struct Iterator;
struct Namespace;
struct Loop;
struct Function;
struct Slice;

class Value {
 public:
  Value() = default;
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool value) {
    Value made(Kind::boolean);
    made.content_.integer = value ? 1 : 0;
    return made;
  }
  static Value integer(std::int64_t value) {
    Value made(Kind::integer);
    made.content_.integer = value;
    return made;
  }
  static Value real(double value) {
    Value made(Kind::real);
    made.content_.real = value;
    return made;
  }
  template <typename Object>
  static Value of(Kind kind, const Object* object) {
    Value made(kind);
    made.content_.object = object;
    return made;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_absent() const { return kind_ == Kind::absent; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_text() const { return kind_ == Kind::text; }
  bool is_dict() const { return kind_ == Kind::dict; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
  // bool is a kind of int, as in Python.
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_integral() || kind_ == Kind::real; }

  // Each for values of its kind only.
  bool as_boolean() const { return content_.integer != 0; }
  std::int64_t as_integer() const { return content_.integer; }
  double as_real() const {
    return is_integral() ? static_cast<double>(content_.integer) : content_.real;
  }
  const Undefined& as_undefined() const { return *static_cast<const Undefined*>(content_.object); }
  const Text& as_text() const { return *static_cast<const Text*>(content_.object); }
  const Sequence& as_sequence() const { return *static_cast<const Sequence*>(content_.object); }
  const Dict& as_dict() const { return *static_cast<const Dict*>(content_.object); }
  const DictView& as_dict_view() const { return *static_cast<const DictView*>(content_.object); }
  const Range& as_range() const { return *static_cast<const Range*>(content_.object); }
  Iterator& as_iterator() const { return *mutable_object<Iterator>(); }
  Namespace& as_namespace() const { return *mutable_object<Namespace>(); }
  Loop& as_loop() const { return *mutable_object<Loop>(); }
  const Function& as_function() const { return *static_cast<const Function*>(content_.object); }
  const Slice& as_slice() const { return *static_cast<const Slice*>(content_.object); }
  const void* object() const { return content_.object; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  // Heap objects are created non-const; handles hide that, except for objects that may change.
  template <typename Object>
  Object* mutable_object() const {
    return const_cast<Object*>(static_cast<const Object*>(content_.object));
  }

  Kind kind_ = Kind::absent;
  union Content {
    std::int64_t integer;
    double real;
    const void* object;
  };
  Content content_{.integer = 0};
};

// The arguments of a call, positional and by name.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Undefined {
  std::string problem;  // the problem if it is used after all
};

struct Text {
  std::string bytes;  // UTF-8
  bool is_ascii = true;
  bool is_markup = false;  // already escaped (the filters safe and escape)
};

// A list or a tuple.
struct Sequence {
  std::vector<Value> items;
  int depth = 1;
  // For results of groupby: the items also have names.
  bool is_group = false;
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;           // in the order of insertion
  std::unordered_map<std::string, std::size_t> places;  // by hash_key of the key
  int depth = 1;
};

struct DictView {
  enum class Part : std::uint8_t { keys, values, items };
  Part part;
  Value dict;
};

struct Range {
  std::int64_t start;
  std::int64_t stop;  // as given; length is used for iteration
  std::int64_t step;
  std::int64_t length;

  // The number at an index below the length. It is between start and stop, even if step * place
  // overflows.
  std::int64_t at(std::int64_t place) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     static_cast<std::uint64_t>(step) *
                                         static_cast<std::uint64_t>(place));
  }
};

// Returns its next value, or an absent one at the end.
struct Iterator {
  std::function<Value()> next;
  std::string name;  // for messages
  int depth = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

struct Slice {
  Value start;
  Value stop;
  Value step;
};

struct Function {
  std::string name;
  // The function itself checks its arguments.
  std::function<Value(const Arguments&)> call;
  // Attributes that a template may read (a cycler's current and next).
  std::function<Value(std::string_view)> attribute = nullptr;
  int depth = 1;
};

// An error from a limit or an operation; the interpreter adds the line.
struct Problem {
  std::string text;
};
[[noreturn]] void fail(std::string text);

// Owns the objects of one template, or of one rendering, and counts their cost.
class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Value text(std::string bytes, bool is_markup = false);
  Value undefined(std::string problem);
  Value list(std::vector<Value> items) { return sequence(Kind::list, std::move(items), false); }
  Value tuple(std::vector<Value> items) { return sequence(Kind::tuple, std::move(items), false); }
  Value group(Value key, Value items) { return sequence(Kind::tuple, {key, items}, true); }
  // A later value of an existing key replaces the earlier one.
  Value dict(std::vector<std::pair<Value, Value>> items);
  Value dict_view(DictView::Part part, Value dict);
  Value range(const Range& range);
  // `over`: the values that it refers to.
  Value iterator(std::string name, const std::vector<Value>& over, std::function<Value()> next);
  Value name_space(std::vector<std::pair<std::string, Value>> attributes);
  Value function(Function function);
  Value slice(Value start, Value stop, Value step);
  Value loop(std::unique_ptr<Loop> loop);

  // Throw Problem if a limit is exceeded.
  void count_steps(std::int64_t n) {
    n_steps_ += n;
    if (n_steps_ > limits_.n_steps) too_many_steps();
  }
  void count_bytes_read(std::size_t n) { count_steps(1 + static_cast<std::int64_t>(n / 256)); }
  void check_text_size(std::size_t n_bytes) const;
  void count_memory(std::size_t n_bytes);
  std::int64_t n_steps() const { return n_steps_; }
  const Limits& limits() const { return limits_; }

 private:
  Value sequence(Kind kind, std::vector<Value> items, bool is_group);
  template <typename Object>
  Object* keep(std::unique_ptr<Object> object, std::size_t more_bytes);
  [[noreturn]] void too_many_steps() const;

  struct Owned {
    void* object;
    void (*destroy)(void*);
    Owned(void* made, void (*with)(void*)) : object(made), destroy(with) {}
    Owned(Owned&& other) noexcept
        : object(std::exchange(other.object, nullptr)), destroy(other.destroy) {}
    Owned& operator=(Owned&&) = delete;
    ~Owned() {
      if (object != nullptr) destroy(object);
    }
  };
  Limits limits_;
  std::vector<Owned> objects_;
  std::size_t n_bytes_ = 0;
  std::int64_t n_steps_ = 0;
};

// The depth of nested values within a value; 0 if it has none.
int depth_of(const Value& value);

// The identity of a dict's key: 1, 1.0 and true are the same key, as in Python. Throws Problem for
// values that cannot be keys.
std::string hash_key(const Value& key);
// nullptr if there is none.
const Value* find(const Dict& dict, const Value& key);
const Value* find(const Dict& dict, std::string_view key);

// Python's name of the type.
std::string_view type_name(const Value& value);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_VALUE_H_
