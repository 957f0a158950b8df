// SPDX-License-Identifier: Apache-2.0
// outrider.Error and outrider.UsageError, for the exceptions of the same names.
#include <cstring>

#include "bindings.h"
#include "outrider/error.h"

namespace outrider::python {
namespace {

// Never freed: the translators below use them until the interpreter ends.
PyObject* error_type = nullptr;
PyObject* usage_error_type = nullptr;

PyObject* make_type(py::module_& module, const char* name, const char* doc,
                    const py::object& bases) {
  const std::string full_name = std::string("outrider.") + name;
  PyObject* const type = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases.ptr(), nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.attr(name) = py::handle(type);
  return type;
}

// A file name may be invalid UTF-8.
void raise(PyObject* type, const char* message) {
  const auto text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
      message, static_cast<Py_ssize_t>(std::strlen(message)), "backslashreplace"));
  if (text) PyErr_SetObject(type, text.ptr());
}

}  // namespace

void bind_errors(py::module_& module) {
  error_type = make_type(module, "Error",
                         "Invalid input, such as a file or a prompt. The message is one line: "
                         "\"[operation] object: expected X, got Y\".",
                         py::reinterpret_borrow<py::object>(PyExc_RuntimeError));
  usage_error_type = make_type(
      module, "UsageError", "An invalid request: an unknown spec, or a parameter out of its range.",
      py::make_tuple(py::handle(error_type), py::handle(PyExc_ValueError)));
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const UsageError& error) {
      raise(usage_error_type, error.what());
    } catch (const Error& error) {
      raise(error_type, error.what());
    }
  });
  // pybind11 itself translates this exception to RuntimeError. A local translator changes that for
  // this extension only.
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const py::cast_error&) {
      PyErr_SetString(PyExc_TypeError, "a value of another type than expected");
    }
  });
}

}  // namespace outrider::python
