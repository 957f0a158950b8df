// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the Python extension. Each file binds one part of the public
// headers by a function that is declared here and called in module.cc.
//
// The GIL: calls from Python hold it. Operations that may take long (loading, a pass, waiting for a
// turn) run without it and touch no Python object. gil.h describes how it is released and taken.
#ifndef OUTRIDER_PYTHON_BINDINGS_H_
#define OUTRIDER_PYTHON_BINDINGS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gil.h"
#include "outrider/types.h"

namespace outrider::python {

void bind_errors(py::module_& module);  // first: the others may throw during the binding
void bind_tokenizer(py::module_& module);
void bind_model(py::module_& module);
void bind_sampling(py::module_& module);
void bind_grammar(py::module_& module);
void bind_generate(py::module_& module);
void bind_own_drafter(py::module_& module);
void bind_mask(py::module_& module);
void bind_weights(py::module_& module);

// A Python object that may be copied and destroyed without the GIL.
using HeldObject = std::shared_ptr<PyObject>;
inline HeldObject hold(py::object object) {
  return {object.release().ptr(), [](PyObject* held) {
            if (Py_IsInitialized() == 0)
              return;  // the interpreter has ended, and its objects are gone
            const TakenGil taken;
            Py_DECREF(held);
          }};
}

// The ids of a list of ints, a tuple, or a one-dimensional array of integers. Throws UsageError for
// any other object, and for an id that is no 32-bit integer. The model checks the rest.
std::vector<TokenId> read_ids(const py::handle& ids);
// A dict or a list as JSON; None as an empty text. A text is taken to be JSON already.
std::string to_json(const py::handle& object);
// bytes, bytearray or memoryview: sequences of integers which are not ids.
bool is_bytes(const py::handle& object);
// A text in UTF-8. Throws TypeError for another type and UsageError for a lone surrogate, which
// cannot be encoded in UTF-8; `operation` and `object` are for the message.
std::string read_text(const py::handle& text, const char* operation, const std::string& object);
// A path in any form of Python: text, bytes or an object with __fspath__. Throws UsageError for a
// lone surrogate that represents no byte.
std::filesystem::path read_path(const py::handle& path, const char* operation);
// Throws TypeError for an object that is no number, and UsageError for one beyond double's range.
double read_number(const py::handle& value, const char* operation, const std::string& object);
// An integer in lowest..highest. Throws TypeError for another type and UsageError for an integer
// out of range.
std::int64_t read_integer(const py::handle& value, const char* operation, const std::string& object,
                          std::int64_t lowest, std::int64_t highest);
std::uint64_t read_unsigned(const py::handle& value, const char* operation,
                            const std::string& object);
// Whether the object can be the ids of one text: a one-dimensional array, or a list whose first
// element is an integer.
bool is_ids(const py::handle& object);

// A function that calls a member function, for pybind11. Given the member function itself, pybind11
// would pass None as a null pointer.
template <auto Method>
struct ByReference;
template <typename Class, typename Value, typename... Arguments,
          Value (Class::*Method)(Arguments...) const>
struct ByReference<Method> {
  static Value call(const Class& self, Arguments... arguments) {
    return (self.*Method)(std::forward<Arguments>(arguments)...);
  }
};
template <typename Class, typename Value, typename... Arguments,
          Value (Class::*Method)(Arguments...)>
struct ByReference<Method> {
  static Value call(Class& self, Arguments... arguments) {
    return (self.*Method)(std::forward<Arguments>(arguments)...);
  }
};
template <auto Method>
constexpr auto* by_reference = &ByReference<Method>::call;

// An array that takes over the vector's memory: nothing is copied.
template <typename T>
py::array_t<T> to_array(std::vector<T> values, std::vector<py::ssize_t> shape) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = kept->data();
  const py::capsule owner(kept.get(),
                          [](void* held) { delete static_cast<std::vector<T>*>(held); });
  kept.release();
  return py::array_t<T>(std::move(shape), data, owner);
}
// The same for one dimension, and for data that must be copied.
template <typename T>
py::array_t<T> to_array(std::vector<T> values) {
  const auto n = static_cast<py::ssize_t>(values.size());
  return to_array(std::move(values), {n});
}
template <typename T>
py::array_t<std::remove_const_t<T>> to_array(std::span<T> values) {
  return to_array(std::vector<std::remove_const_t<T>>(values.begin(), values.end()));
}

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_BINDINGS_H_
