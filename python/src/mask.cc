// SPDX-License-Identifier: Apache-2.0
// Masks written in Python: callables that get a MaskedText and return which tokens may follow.
#include "mask.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider::python {
namespace {

// A position as Python sees it: a copy, which Python may keep.
struct Place {
  py::array_t<TokenId> tokens;
  std::size_t n_prompt = 0;
  std::size_t n_committed = 0;
};

constexpr const char* kExpected =
    "None, an array of bits ((vocabulary + 31) // 32 of 32-bit integers), an array of booleans "
    "(vocabulary), or a list of ids";

[[noreturn]] void refuse(const std::string& got) {
  throw UsageError("follow mask", "mask", kExpected, got);
}

// Copies the words of a mask in which each token is a bit.
void read_bits(const py::array& array, std::span<std::uint32_t> allowed) {
  const auto words = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>(array);
  if (static_cast<std::size_t>(words.size()) != allowed.size()) {
    refuse("an array of " + std::to_string(words.size()) + " words for " +
           std::to_string(allowed.size()));
  }
  std::memcpy(allowed.data(), words.data(), allowed.size_bytes());
}

void set(std::span<std::uint32_t> allowed, std::size_t id) {
  allowed[id / 32] |= std::uint32_t{1} << (id % 32);
}

// The number of logits in a row, and of tokens. A model may have fewer tokens than logits.
struct Widths {
  std::size_t n_rows = 0;
  std::size_t n_tokens = 0;
};

void read_flags(const py::array& array, const Widths& widths, std::span<std::uint32_t> allowed) {
  const auto flags = py::array_t<bool, py::array::c_style | py::array::forcecast>(array);
  const auto n = static_cast<std::size_t>(flags.size());
  if (array.ndim() != 1 || (n != widths.n_rows && n != widths.n_tokens)) {
    refuse("an array of " + std::to_string(n) + " booleans of " + std::to_string(array.ndim()) +
           " dimensions");
  }
  for (std::size_t id = 0; id < n; ++id) {
    if (flags.data()[id]) set(allowed, id);
  }
}

// Booleans, or bits packed in 32-bit integers, in an array of any shape (xgrammar's is (1, words)).
void read_array(const py::object& object, const Widths& widths, std::span<std::uint32_t> allowed) {
  const py::array array(object);  // exceptions of the conversion propagate
  const char kind = array.dtype().kind();
  if (kind == 'b') return read_flags(array, widths, allowed);
  if (!array.dtype().attr("isnative").cast<bool>()) {
    refuse("an array of " + std::string(py::str(array.dtype())) + ", of another byte order");
  }
  if ((kind == 'i' || kind == 'u') && array.itemsize() == 4) {
    return read_bits(array.attr("view")("uint32"), allowed);
  }
  refuse("an array of " + std::string(py::str(array.dtype())));
}

// False if all tokens are allowed.
bool read_mask(const py::object& object, const Widths& widths, std::span<std::uint32_t> allowed) {
  if (object.is_none()) return false;
  const bool is_list = py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object) ||
                       py::isinstance<py::set>(object) || py::isinstance<py::frozenset>(object);
  if (!is_list) {
    read_array(object, widths, allowed);
    return true;
  }
  for (const TokenId id : read_ids(py::list(object))) {
    if (id < 0 || static_cast<std::size_t>(id) >= 32 * allowed.size()) {
      refuse("the id " + std::to_string(id));
    }
    set(allowed, static_cast<std::size_t>(id));
  }
  return true;
}

}  // namespace

TokenMask to_mask(const py::handle& object, const Model& model) {
  if (object.is_none()) return {};
  if (PyCallable_Check(object.ptr()) == 0) {
    throw py::type_error("mask: a function of a MaskedText, not " +
                         std::string(py::str(py::type::of(object))));
  }
  const Widths widths = {static_cast<std::size_t>(model.summary().vocabulary_size),
                         static_cast<std::size_t>(model.tokenizer().vocabulary_size())};
  return [widths, held = hold(py::reinterpret_borrow<py::object>(object))](
             const MaskedText& text, std::span<std::uint32_t> allowed) {
    const TakenGil taken;
    const Place place = {to_array(text.tokens), text.n_prompt, text.n_committed};
    return read_mask(call(held.get(), place), widths, allowed);
  };
}

void bind_mask(py::module_& module) {
  py::class_<Place>(
      module, "MaskedText",
      "A position in a text, or in a draft of its continuation: the argument of a mask.")
      .def_readonly("tokens", &Place::tokens,
                    "Token ids of the prompt, the generated text, and the draft up to this "
                    "position: int32 array (n).")
      .def_readonly("n_prompt", &Place::n_prompt, "Number of these tokens that are the prompt.")
      .def_readonly(
          "n_committed", &Place::n_committed,
          "Number of these tokens that are committed: later calls have the same tokens there.");
}

}  // namespace outrider::python
