// SPDX-License-Identifier: Apache-2.0
// outrider.Model and outrider.ModelSummary.
#include "outrider/model.h"

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "bindings.h"
#include "outrider/error.h"
#include "shared_model.h"

namespace outrider::python {
namespace {

std::shared_ptr<SharedModel> load(const py::object& path, const py::object& progress,
                                  const py::kwargs& keywords) {
  const std::filesystem::path place = read_path(path, "load model");
  return load_shared(read_model_options(keywords), progress,
                     [&place](const ModelOptions& options) { return Model::load(place, options); });
}

void bind_summary(py::module_& module) {
  py::class_<ModelSummary>(
      module, "ModelSummary",
      "Properties of a model and its memory use. Sizes are in bytes, context_length is in tokens.")
      .def_readonly("architecture", &ModelSummary::architecture,
                    "Name of the architecture, such as \"llama\".")
      .def_readonly("kernels", &ModelSummary::kernels, "Name of the kernel table in use.")
      .def_readonly("device", &ModelSummary::device,
                    "The driver's name of the device that runs passes; empty: the processor.")
      .def_readonly("threads", &ModelSummary::threads, "Maximum number of threads of a pass.")
      .def_readonly("n_parameters", &ModelSummary::n_parameters, "Number of parameters.")
      .def_readonly("vocabulary_size", &ModelSummary::vocabulary_size, "Width of a row of logits.")
      .def_readonly("context_length", &ModelSummary::context_length,
                    "Maximum number of tokens of a text.")
      .def_readonly("n_layers", &ModelSummary::n_layers,
                    "Number of layers; of an encoder-decoder, of the decoder.")
      .def_readonly("dim", &ModelSummary::dim, "Width of a hidden state.")
      .def_readonly("n_heads", &ModelSummary::n_heads, "Number of query heads.")
      .def_readonly("n_kv_heads", &ModelSummary::n_kv_heads, "Number of key and value heads.")
      .def_readonly("head_dim", &ModelSummary::head_dim, "Width of a head.")
      .def_readonly("hidden_dim", &ModelSummary::hidden_dim, "Width inside the MLP.")
      .def_readonly("n_encoder_layers", &ModelSummary::n_encoder_layers,
                    "Number of encoder layers; 0: the model is a decoder.")
      .def_readonly("start_token", &ModelSummary::start_token,
                    "First token of the texts of an encoder-decoder; -1: a decoder.")
      .def_readonly("weights", &ModelSummary::weights,
                    "Types of the packed matrices, for example \"int4 int8\".")
      .def_readonly("kv", &ModelSummary::kv, "Type of the KV cache.")
      .def_readonly("weight_bytes", &ModelSummary::weight_bytes, "Bytes of the packed matrices.")
      .def_readonly("kv_bytes_per_token", &ModelSummary::kv_bytes_per_token,
                    "Bytes that a token takes in the KV cache.")
      .def_readonly("n_experts", &ModelSummary::n_experts,
                    "Number of experts of a layer; 0: no experts.")
      .def_readonly("n_experts_used", &ModelSummary::n_experts_used,
                    "Number of experts that a token uses.")
      .def_readonly("idle_bytes", &ModelSummary::idle_bytes,
                    "Packed bytes that a pass of one token does not read.")
      .def_readonly("mapped_bytes", &ModelSummary::mapped_bytes,
                    "Bytes of mapped experts if all were packed.")
      .def_readonly("expert_memory_bytes", &ModelSummary::expert_memory_bytes,
                    "Memory for the mapped experts in use.")
      .def_readonly("state_bytes", &ModelSummary::state_bytes,
                    "Bytes of the state of recurrent layers for a text; 0: all layers attend.")
      .def_readonly(
          "state_bytes_per_node", &ModelSummary::state_bytes_per_node,
          "Bytes that a pass keeps of recurrent layers for each token until it is verified.");
}

}  // namespace

std::shared_ptr<SharedModel> load_shared(
    ModelOptions options, const py::object& progress,
    const std::function<std::shared_ptr<const Model>(const ModelOptions&)>& load) {
  // Exceptions thrown here leave load().
  options.progress = [&progress](double share) {
    const TakenGil taken;
    check_signals();
    if (!progress.is_none()) call(progress, share);
  };
  const ReleasedGil released;
  auto shared = std::make_shared<SharedModel>();
  shared->model = load(options);
  shared->options = std::move(options);
  shared->options.progress = {};
  return shared;
}

ModelOptions read_model_options(const py::dict& keywords) {
  ModelOptions options;
  for (const auto& [key, value] : keywords) {
    const std::string name = read_text(key, "load model", "keyword");
    if (name == "weights") {
      options.weights = read_text(value, "load model", name);
    } else if (name == "kv") {
      options.kv = read_text(value, "load model", name);
    } else if (name == "kv_memory") {
      options.kv_memory_bytes = read_unsigned(value, "load model", name);
    } else if (name == "experts") {
      options.experts = read_text(value, "load model", name);
    } else if (name == "experts_memory") {
      options.expert_memory_bytes = read_unsigned(value, "load model", name);
    } else if (name == "threads") {
      options.threads = static_cast<int>(
          read_integer(value, "load model", name, 0, std::numeric_limits<int>::max()));
    } else if (name == "kernels") {
      options.kernels = read_text(value, "load model", name);
    } else if (name == "device") {
      options.device = read_text(value, "load model", name);
    } else {
      throw UsageError("load model", "keyword",
                       "one of weights kv kv_memory experts experts_memory threads kernels device",
                       name);
    }
  }
  return options;
}

void bind_model(py::module_& module) {
  bind_summary(module);
  py::class_<SharedModel, std::shared_ptr<SharedModel>> model(
      module, "Model",
      "A loaded model: weights and tokenizer. Any number of generators, on any threads, may share "
      "it; their passes take turns.");
  model
      .def(py::init(&load), py::arg("path"), py::kw_only(), py::arg("progress") = py::none(),
           "path: a Hugging Face folder, a model's folder in the hub's cache, or a GGUF file.\n\n"
           "weights: weight type, \"f32\", \"bf16\", \"int8\" or \"int4\"; empty: as stored in the "
           "file.\n"
           "kv: type of the KV cache, \"f32\", \"bf16\" or \"int8\"; empty: f32 for f32 weights, "
           "otherwise bf16.\n"
           "threads: number of threads of a pass; 0: all processors that the process may use.\n"
           "kernels: name of a kernel table; empty: the fastest.\n"
           "device: device that runs the passes. Either a name that `outrider devices` lists "
           "(\"vulkan:0\"), or \"vulkan\" or \"cuda\" for the first that is not software; empty: "
           "the processor. The results have the same bits. Only dense models with int8 or int4 "
           "weights run on a device. A drafter's model runs on the same device unless "
           "drafter_options say otherwise.\n"
           "kv_memory: limit of the KV cache in bytes; 0: no limit.\n"
           "experts: where experts are kept, \"memory\" or \"mapped\" (in the file). "
           "experts_memory: bytes of memory for mapped experts.\n"
           "progress: function called during loading with the loaded share, 0 to 1.\n\n"
           "Raises Error for invalid files and UsageError for invalid options.")
      .def_property_readonly(
          "path",
          [](const SharedModel& self) {
            return py::reinterpret_steal<py::object>(
                PyUnicode_DecodeFSDefault(self.model->path().c_str()));
          },
          "Path that the model was loaded from; empty for a model from memory.")
      .def_property_readonly(
          "tokenizer",
          [](const SharedModel& self) {
            // A shared pointer to a member of the model, which keeps the model
            // alive.
            return std::shared_ptr<Tokenizer>(self.model,
                                              const_cast<Tokenizer*>(&self.model->tokenizer()));
          },
          "Tokenizer of the model.")
      .def_property_readonly(
          "summary", [](const SharedModel& self) { return self.model->summary(); },
          "Properties of the model and its memory use.")
      .def_property_readonly(
          "end_tokens", [](const SharedModel& self) { return self.model->end_tokens(); },
          "Ids of the tokens that end a text.")
      .def_property_readonly(
          "warnings", [](const SharedModel& self) { return self.model->warnings(); },
          "Doubtful points of the model's files that did not stop loading.");
  bind_score(model);
  module.def("kernel_tables", &kernel_tables,
             "Returns the kernel tables of this build: a list of (name, whether this machine can "
             "run it).");
}

}  // namespace outrider::python
