// SPDX-License-Identifier: Apache-2.0
// Ids, conversations and schemas in Python's notation.
#include <cstdint>
#include <limits>

#include "bindings.h"
#include "outrider/error.h"

namespace outrider::python {
namespace {

[[noreturn]] void refuse(const std::string& got) {
  throw UsageError("read ids", "ids", "a list or an array of integers of one dimension", got);
}

TokenId to_id(std::int64_t value) {
  if (value < std::numeric_limits<TokenId>::min() || value > std::numeric_limits<TokenId>::max()) {
    throw UsageError("read ids", "ids", "ids of 32 bits", std::to_string(value));
  }
  return static_cast<TokenId>(value);
}

std::string type_name(const py::handle& object) { return py::str(py::type::of(object)); }

// (An array of any shape has an __index__, too.)
bool is_integer(const py::handle& object) {
  return PyIndex_Check(object.ptr()) != 0 && !PyBool_Check(object.ptr()) &&
         !py::isinstance<py::array>(object);
}

std::vector<TokenId> read_array(const py::array& array) {
  const char kind = array.dtype().kind();
  if (array.ndim() != 1 || (kind != 'i' && kind != 'u')) {
    refuse(std::string("an array of ") + std::string(py::str(array.dtype())) + " of " +
           std::to_string(array.ndim()) + " dimensions");
  }
  if (kind == 'u') {  // 64-bit values may be too large for signed integers
    const auto values = py::array_t<std::uint64_t, py::array::forcecast>(array);
    std::vector<TokenId> ids;
    ids.reserve(static_cast<std::size_t>(values.size()));
    for (py::ssize_t i = 0; i < values.size(); ++i) {
      constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
      if (values.at(i) > kMax) refuse("the id " + std::to_string(values.at(i)));
      ids.push_back(to_id(static_cast<std::int64_t>(values.at(i))));
    }
    return ids;
  }
  const auto values = py::array_t<std::int64_t, py::array::forcecast>(array);
  std::vector<TokenId> ids;
  ids.reserve(static_cast<std::size_t>(values.size()));
  for (py::ssize_t i = 0; i < values.size(); ++i) ids.push_back(to_id(values.at(i)));
  return ids;
}

}  // namespace

std::vector<TokenId> read_ids(const py::handle& ids) {
  if (py::isinstance<py::array>(ids)) return read_array(py::reinterpret_borrow<py::array>(ids));
  if (!py::isinstance<py::sequence>(ids) || py::isinstance<py::str>(ids) || is_bytes(ids)) {
    refuse(type_name(ids));
  }
  std::vector<TokenId> read;
  // (A handle would not do: a range creates its elements, and the loop would not keep them alive.)
  for (const py::object id : py::reinterpret_borrow<py::sequence>(ids)) {
    if (!is_integer(id)) refuse("a list with " + type_name(id));
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(id.ptr()));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) refuse("an integer beyond 64 bits");
    read.push_back(to_id(value));
  }
  return read;
}

std::string read_text(const py::handle& text, const char* operation, const std::string& object) {
  if (!py::isinstance<py::str>(text)) {
    throw py::type_error(object + ": expected a text, got " + type_name(text));
  }
  py::ssize_t n_bytes = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &n_bytes);
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(n_bytes)};
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw UsageError(operation, object, "a text of Unicode characters", "a lone surrogate");
}

std::filesystem::path read_path(const py::handle& path, const char* operation) {
  PyObject* converted = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &converted) == 0) {
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw py::error_already_set();
    PyErr_Clear();
    throw UsageError(operation, "path", "one that files can have", "a lone surrogate");
  }
  return py::cast<std::string>(py::reinterpret_steal<py::bytes>(converted));
}

double read_number(const py::handle& value, const char* operation, const std::string& object) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number != -1 || PyErr_Occurred() == nullptr) return number;
  if (PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Clear();
    throw py::type_error(object + ": expected a number, got " + type_name(value));
  }
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw UsageError(operation, object, "a number of at most 1.8e308", "a larger one");
}

namespace {

py::object to_integer(const py::handle& value, const std::string& object) {
  if (!is_integer(value)) {
    throw py::type_error(object + ": expected an integer, got " + type_name(value));
  }
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!number) throw py::error_already_set();
  return number;
}

}  // namespace

std::int64_t read_integer(const py::handle& value, const char* operation, const std::string& object,
                          std::int64_t lowest, std::int64_t highest) {
  const py::object number = to_integer(value, object);
  int overflow = 0;
  const long long read = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || read < lowest || read > highest) {
    throw UsageError(operation, object, std::to_string(lowest) + ".." + std::to_string(highest),
                     std::string(py::str(number)));
  }
  return read;
}

std::uint64_t read_unsigned(const py::handle& value, const char* operation,
                            const std::string& object) {
  const py::object number = to_integer(value, object);
  const unsigned long long read = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw UsageError(operation, object,
                     "0.." + std::to_string(std::numeric_limits<std::uint64_t>::max()),
                     std::string(py::str(number)));
  }
  return read;
}

bool is_bytes(const py::handle& object) {
  return py::isinstance<py::bytes>(object) || py::isinstance<py::bytearray>(object) ||
         py::isinstance<py::memoryview>(object);
}

bool is_ids(const py::handle& object) {
  if (py::isinstance<py::array>(object)) {
    return py::reinterpret_borrow<py::array>(object).ndim() == 1;
  }
  if (!py::isinstance<py::sequence>(object) || py::isinstance<py::str>(object) ||
      is_bytes(object)) {
    return false;
  }
  const auto list = py::reinterpret_borrow<py::sequence>(object);
  return list.size() > 0 && is_integer(py::object(list[0]));
}

std::string to_json(const py::handle& object) {
  if (object.is_none()) return "";
  if (py::isinstance<py::str>(object)) return read_text(object, "read JSON", "text");
  const py::module_ json = py::module_::import("json");
  return read_text(json.attr("dumps")(object, py::arg("ensure_ascii") = false), "read JSON",
                   "texts");
}

}  // namespace outrider::python
