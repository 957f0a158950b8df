// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chat_template/values/characters.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"
#include "outrider/error.h"

namespace outrider::jinja {
namespace {

// Builds values from the events of a JSON text. nlohmann_json's parser does not recurse, so depth
// costs only memory until it is refused.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(Heap& heap, std::string_view operation, std::string_view object)
      : heap_(&heap), operation_(operation), object_(object) {}

  Value take() { return result_; }

  bool null() override { return add(Value::none()); }
  bool boolean(bool value) override { return add(Value::boolean(value)); }
  bool number_integer(std::int64_t value) override { return add(Value::integer(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) {
      refuse("integers of 64 bits", fmt::to_string(value));
    }
    return add(Value::integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(double value, const std::string& text) override {
    // Integers beyond 64 bits arrive as floats.
    if (text.find_first_of(".eE") == std::string::npos) refuse("integers of 64 bits", text);
    return add(Value::real(value));
  }
  bool string(std::string& value) override { return add(heap_->text(value)); }
  bool binary(nlohmann::json::binary_t&) override { refuse("text", "binary data"); }
  bool start_object(std::size_t) override { return open(true); }
  bool key(std::string& key) override {
    open_.back().key = heap_->text(key);
    return true;
  }
  bool end_object() override {
    std::vector<std::pair<Value, Value>> members = std::move(open_.back().members);
    open_.pop_back();
    return add(heap_->dict(std::move(members)));
  }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return add(heap_->list(std::move(items)));
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    refuse("JSON text", fmt::format("a syntax error at byte {}", position));
  }

 private:
  struct Open {
    bool is_object;
    Value key;
    std::vector<std::pair<Value, Value>> members;
    std::vector<Value> items;
  };

  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    throw Error(operation_, object_, expected, got);
  }

  bool open(bool is_object) {
    if (open_.size() >= kDeepestValue) {
      refuse(fmt::format("values nested at most {} deep", kDeepestValue), "more");
    }
    open_.push_back({.is_object = is_object, .key = {}, .members = {}, .items = {}});
    return true;
  }

  bool add(Value value) {
    heap_->count_memory(sizeof(Value));
    if (open_.empty()) {
      result_ = value;
    } else if (open_.back().is_object) {
      open_.back().members.emplace_back(open_.back().key, value);
    } else {
      open_.back().items.push_back(value);
    }
    return true;
  }

  Heap* heap_;
  std::string_view operation_;
  std::string_view object_;
  std::vector<Open> open_;
  Value result_;
};

class Writer {
 public:
  Writer(const JsonStyle& style, Heap& heap) : style_(&style), heap_(&heap) {}

  void write(const Value& value) {
    heap_->count_steps(1);
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.as_boolean() ? "true" : "false";
        break;
      case Kind::integer:
        out_ += fmt::to_string(value.as_integer());
        break;
      case Kind::real:
        out_ += real(value.as_real());
        break;
      case Kind::text:
        string(value.as_text().bytes);
        break;
      case Kind::list:
      case Kind::tuple:
        array(value.as_sequence().items);
        break;
      case Kind::dict:
        object(value.as_dict());
        break;
      default:
        fail(fmt::format("tojson: expected a value that JSON has, got {}", type_name(value)));
    }
    heap_->check_text_size(out_.size());
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return printed_real(value);
  }

  void line() {
    if (!style_->indent) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_->indent;
    heap_->check_text_size(out_.size());
  }

  void array(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_->item_separator;
      line();
      write(items[i]);
    }
    --level_;
    line();
    out_ += ']';
  }

  std::vector<std::pair<Value, Value>> members(const Dict& dict) const {
    std::vector<std::pair<Value, Value>> sorted = dict.items;
    if (style_->sort_keys) {
      std::stable_sort(sorted.begin(), sorted.end(), [this](const auto& a, const auto& b) {
        return less(a.first, b.first, *heap_);
      });
    }
    return sorted;
  }

  void object(const Dict& dict) {
    if (dict.items.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    ++level_;
    bool first = true;
    for (const auto& [key, value] : members(dict)) {
      if (!std::exchange(first, false)) out_ += style_->item_separator;
      line();
      string(key_of(key));
      out_ += style_->key_separator;
      write(value);
    }
    --level_;
    line();
    out_ += '}';
  }

  static std::string key_of(const Value& key) {
    switch (key.kind()) {
      case Kind::text:
        return key.as_text().bytes;
      case Kind::none:
        return "null";
      case Kind::boolean:
        return key.as_boolean() ? "true" : "false";
      case Kind::integer:
        return fmt::to_string(key.as_integer());
      case Kind::real:
        return real(key.as_real());
      default:
        fail(fmt::format("tojson: expected keys that JSON has, got {}", type_name(key)));
    }
  }

  void string(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const Character c = character_at(text, at);
      character(c.value, text.substr(at, c.n_bytes));
      at += c.n_bytes;
    }
    out_ += '"';
  }

  void character(char32_t value, std::string_view spelled) {
    switch (value) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\f':
        out_ += "\\f";
        return;
      case '\b':
        out_ += "\\b";
        return;
      default:
        break;
    }
    if (value >= 0x20 && (value < 0x7F || !style_->ascii_only)) {
      out_ += spelled;
    } else if (value < 0x10000) {
      out_ += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(value));
    } else {
      const std::uint32_t offset = value - 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
    }
  }

  const JsonStyle* style_;
  Heap* heap_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Value read_json(std::string_view text, Heap& heap, std::string_view operation,
                std::string_view object) {
  // The lexer treats a zero byte as the end of its input and would ignore what follows.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    throw Error(operation, object, "JSON text", fmt::format("a zero byte at {}", zero));
  }
  Builder builder(heap, operation, object);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder);
  return builder.take();
}

std::string write_json(const Value& value, const JsonStyle& style, Heap& heap) {
  Writer writer(style, heap);
  writer.write(value);
  return writer.take();
}

}  // namespace outrider::jinja
