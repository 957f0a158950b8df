// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/printed.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "chat_template/loop.h"
#include "chat_template/values/characters.h"

namespace outrider::jinja {
namespace {

class Printer {
 public:
  explicit Printer(Heap& heap) : heap_(&heap) {}

  void represent(const Value& value) {
    heap_->count_steps(1);
    switch (value.kind()) {
      case Kind::absent:
        break;
      case Kind::undefined:
        out_ += "Undefined";
        break;
      case Kind::none:
        out_ += "None";
        break;
      case Kind::boolean:
        out_ += value.as_boolean() ? "True" : "False";
        break;
      case Kind::integer:
        fmt::format_to(std::back_inserter(out_), "{}", value.as_integer());
        break;
      case Kind::real:
        out_ += printed_real(value.as_real());
        break;
      case Kind::text: {
        const std::string text = quoted(value.as_text().bytes);
        out_ += value.as_text().is_markup ? fmt::format("Markup({})", text) : text;
        break;
      }
      case Kind::list:
        out_ += '[';
        items(value.as_sequence());
        out_ += ']';
        break;
      case Kind::tuple:
        out_ += '(';
        items(value.as_sequence());
        out_ += value.as_sequence().items.size() == 1 ? ",)" : ")";
        break;
      case Kind::dict:
        dict(value.as_dict());
        break;
      case Kind::dict_view:
        dict_view(value);
        break;
      case Kind::name_space:
        name_space(value.as_namespace());
        break;
      default:
        out_ += described(value);
    }
    heap_->check_text_size(out_.size());
  }

  std::string take() { return std::move(out_); }

 private:
  void items(const Sequence& sequence) {
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!std::exchange(first, false)) out_ += ", ";
      represent(item);
    }
  }

  void dict(const Dict& dict) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : dict.items) {
      if (!std::exchange(first, false)) out_ += ", ";
      represent(key);
      out_ += ": ";
      represent(value);
    }
    out_ += '}';
  }

  void dict_view(const Value& value) {
    const DictView& view = value.as_dict_view();
    out_ += type_name(value);
    out_ += "([";
    bool first = true;
    for (const auto& [key, item] : view.dict.as_dict().items) {
      if (!std::exchange(first, false)) out_ += ", ";
      const bool pair = view.part == DictView::Part::items;
      if (pair) out_ += '(';
      if (view.part != DictView::Part::values) represent(key);
      if (pair) out_ += ", ";
      if (view.part != DictView::Part::keys) represent(item);
      if (pair) out_ += ')';
    }
    out_ += "])";
  }

  // Namespaces may contain each other in cycles, so their nesting is limited here.
  void name_space(const Namespace& space) {
    constexpr int kMax = 20;
    if (++n_spaces_ > kMax) {
      fail(fmt::format("expected namespaces nested at most {} deep, got more", kMax));
    }
    out_ += "<Namespace {";
    bool first = true;
    for (const auto& [name, value] : space.attributes) {
      if (!std::exchange(first, false)) out_ += ", ";
      out_ += quoted(name);
      out_ += ": ";
      represent(value);
    }
    out_ += "}>";
    --n_spaces_;
  }

  // Python adds addresses, which do not belong in a prompt.
  static std::string described(const Value& value) {
    switch (value.kind()) {
      case Kind::range: {
        const Range& range = value.as_range();
        return range.step == 1
                   ? fmt::format("range({}, {})", range.start, range.stop)
                   : fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
      }
      case Kind::iterator:
        return fmt::format("<generator object {}>", value.as_iterator().name);
      case Kind::loop: {
        Loop& loop = value.as_loop();
        return fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.count());
      }
      case Kind::function:
        return fmt::format("<{}>", value.as_function().name);
      default:
        return fmt::format("<{}>", type_name(value));
    }
  }

  Heap* heap_;
  std::string out_;
  int n_spaces_ = 0;  // currently open
};

}  // namespace

std::string printed_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (c.value == static_cast<char32_t>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += text.substr(at, c.n_bytes);
    } else if (c.value < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c.value));
    } else if (c.value < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.value));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c.value));
    }
    at += c.n_bytes;
  }
  return out + quote;
}

std::string represented(const Value& value, Heap& heap) {
  Printer printer(heap);
  printer.represent(value);
  return printer.take();
}

std::string printed(const Value& value, Heap& heap) {
  if (value.is_text()) return value.as_text().bytes;
  if (value.is_undefined() || value.is_absent()) return {};
  return represented(value, heap);
}

Value printed_value(const Value& value, Heap& heap) {
  if (value.is_text()) return value;
  return heap.text(printed(value, heap));
}

}  // namespace outrider::jinja
