// SPDX-License-Identifier: Apache-2.0
// A model from arrays in Python.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "outrider/model_in_memory.h"
#include "shared_model.h"

namespace outrider::python {
namespace {

constexpr const char* kOperation = "load model";

// The engine's name for an array's element type, or NumPy's own name, for messages, if there is
// none. NumPy has no bfloat16. Arrays of uint16 are taken as its bits, and so are arrays of a type
// of that name, which some packages define.
std::string type_of(const py::array& array) {
  const py::dtype type = array.dtype();
  const std::string name = py::str(static_cast<const py::handle&>(type));
  const char order = type.byteorder();
  if (order == '>') return name;  // not this machine's byte order
  if (name == "float32") return "f32";
  if (name == "float16") return "f16";
  if (name == "uint16" || name == "bfloat16") return "bf16";
  if (name == "float64") return "f64";
  if (name == "int8") return "i8";
  if (name == "int16") return "i16";
  if (name == "int32") return "i32";
  if (name == "int64") return "i64";
  if (name == "uint8") return "u8";
  if (name == "bool") return "boolean";
  return name;
}

std::shared_ptr<SharedModel> model_from_memory(const py::str& config_json, const py::dict& tensors,
                                               const py::dict& tokenizer_files,
                                               const py::object& progress,
                                               const py::kwargs& keywords) {
  ModelInMemory model;
  model.config = read_text(config_json, kOperation, "config_json");
  const py::object as_array = py::module_::import("numpy").attr("asarray");
  std::vector<py::array> held;  // keeps the memory that the spans refer to
  for (const auto& [key, tensor] : tensors) {
    std::string name = read_text(key, kOperation, "name of a tensor");
    py::array array = as_array(tensor, py::arg("order") = "C");
    const auto n_bytes = static_cast<std::size_t>(array.nbytes());
    model.tensors.push_back(
        {.name = std::move(name),
         .type = type_of(array),
         .shape = std::vector<std::int64_t>(array.shape(), array.shape() + array.ndim()),
         .data = {static_cast<const std::byte*>(array.data()), n_bytes}});
    held.push_back(std::move(array));
  }
  for (const auto& [name, bytes] : tokenizer_files) {
    if (!py::isinstance<py::bytes>(bytes)) {
      throw py::type_error("tokenizer_files: bytes by name, not " +
                           std::string(py::str(py::type::of(bytes))));
    }
    model.files[read_text(name, kOperation, "name of a file")] = py::cast<std::string>(bytes);
  }
  return load_shared(read_model_options(keywords), progress, [&model](const ModelOptions& options) {
    return Model::from_memory(model, options);
  });
}

}  // namespace

void bind_weights(py::module_& module) {
  module.def("model_from_memory", &model_from_memory, py::arg("config_json"), py::arg("tensors"),
             py::arg("tokenizer_files"), py::kw_only(), py::arg("progress") = py::none(),
             "Makes a Model from the contents of a Hugging Face folder, given in memory.\n\n"
             "config_json: the text of config.json.\n"
             "tensors: a dict of arrays by the names that they have in a safetensors file. Types: "
             "float32, float16, and uint16 with the bits of bfloat16. The arrays are needed during "
             "this call only.\n"
             "tokenizer_files: a dict of the tokenizer's files: contents as bytes by file names.\n"
             "Keywords: those of Model, except experts=\"mapped\".\n\n"
             "Raises the errors of Model, with \"memory\" instead of a path. The path of the Model "
             "is empty.");
}

}  // namespace outrider::python
