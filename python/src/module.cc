// SPDX-License-Identifier: Apache-2.0
// outrider._outrider: the engine's public headers for Python. The package outrider/ adds the parts
// that are better written in Python.
#include "bindings.h"

namespace outrider::python {
namespace {

// Class.__new__(Class) makes an object without a value. At the object's first use pybind11 would
// allocate memory by this function, and nothing would initialise it.
void* refuse_unmade(std::size_t /*n_bytes*/) {
  throw py::type_error("an object of outrider whose __init__ was not called");
}

void refuse_unmade_objects(const py::module_& module) {
  for (const auto& [name, object] : module.attr("__dict__").cast<py::dict>()) {
    if (PyType_Check(object.ptr()) == 0) continue;
    auto* const type = reinterpret_cast<PyTypeObject*>(object.ptr());
    if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_Exception)) != 0) continue;
    if (auto* const known = py::detail::get_type_info(type)) known->operator_new = &refuse_unmade;
  }
}

}  // namespace
}  // namespace outrider::python

PYBIND11_MODULE(_outrider, module) {
  using namespace outrider::python;
  module.doc() = "The extension module with the engine of the package outrider.";
  // Loads NumPy's functions once. Otherwise the first array of the process looks them up under a
  // lock, and waits for the GIL while it holds the lock. Two threads that both make an array would
  // then wait forever.
  py::detail::npy_api::get();
  bind_errors(module);
  bind_tokenizer(module);
  bind_model(module);
  bind_sampling(module);
  bind_grammar(module);
  bind_own_drafter(module);
  bind_mask(module);
  bind_weights(module);
  bind_generate(module);
  refuse_unmade_objects(module);
  leave_at_exit();
}
