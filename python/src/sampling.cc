// SPDX-License-Identifier: Apache-2.0
// outrider.SamplingParams.
#include "outrider/sampling.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"

namespace outrider::python {
namespace {

constexpr const char* kOperation = "sampling";

using Bias = std::vector<std::pair<TokenId, float>>;

Bias read_bias(const py::handle& value) {
  if (!py::isinstance<py::sequence>(value) || py::isinstance<py::str>(value)) {
    throw py::type_error("logit_bias: expected a list of (id, bias), got " +
                         std::string(py::str(py::type::of(value))));
  }
  Bias bias;
  for (const py::object pair : py::reinterpret_borrow<py::sequence>(value)) {
    if (!py::isinstance<py::sequence>(pair) || py::len(pair) != 2) {
      throw py::type_error("logit_bias: expected a list of (id, bias), got one with " +
                           std::string(py::str(pair)));
    }
    const auto parts = py::reinterpret_borrow<py::sequence>(pair);
    const std::int64_t id = read_integer(py::object(parts[0]), kOperation, "logit_bias", 0,
                                         std::numeric_limits<TokenId>::max());
    bias.emplace_back(
        static_cast<TokenId>(id),
        static_cast<float>(read_number(py::object(parts[1]), kOperation, "logit_bias")));
  }
  return bias;
}

// Each field under its Python name, which messages use. The range of the type is checked here;
// narrower ranges are checked by the engine when the parameters are used.
template <double SamplingParams::*Member>
void set_number(SamplingParams& self, const py::object& value, const char* name) {
  self.*Member = read_number(value, kOperation, name);
}
void set_top_k(SamplingParams& self, const py::object& value) {
  self.top_k = static_cast<int>(
      read_integer(value, kOperation, "top_k", 0, std::numeric_limits<int>::max()));
}
void set_logit_bias(SamplingParams& self, const py::object& value) {
  self.logit_bias = read_bias(value);
}

std::string repr(const SamplingParams& self) {
  const py::str format(
      "SamplingParams(temperature={}, top_k={}, top_p={}, min_p={}, repetition_penalty={}, "
      "presence_penalty={}, frequency_penalty={}, logit_bias={})");
  return py::str(format.format(self.temperature, self.top_k, self.top_p, self.min_p,
                               self.repetition_penalty, self.presence_penalty,
                               self.frequency_penalty, self.logit_bias));
}

}  // namespace

void bind_sampling(py::module_& module) {
  py::class_<SamplingParams>(module, "SamplingParams",
                             "Parameters that turn logits into the distribution from which a token "
                             "is drawn. They apply in this order: logit bias; repetition, presence "
                             "and frequency penalty; temperature; top-k; top-p; min-p.")
      .def(py::init([](const py::object& temperature, const py::object& top_k,
                       const py::object& top_p, const py::object& min_p,
                       const py::object& repetition_penalty, const py::object& presence_penalty,
                       const py::object& frequency_penalty, const py::object& logit_bias) {
             SamplingParams params;
             set_number<&SamplingParams::temperature>(params, temperature, "temperature");
             set_top_k(params, top_k);
             set_number<&SamplingParams::top_p>(params, top_p, "top_p");
             set_number<&SamplingParams::min_p>(params, min_p, "min_p");
             set_number<&SamplingParams::repetition_penalty>(params, repetition_penalty,
                                                             "repetition_penalty");
             set_number<&SamplingParams::presence_penalty>(params, presence_penalty,
                                                           "presence_penalty");
             set_number<&SamplingParams::frequency_penalty>(params, frequency_penalty,
                                                            "frequency_penalty");
             set_logit_bias(params, logit_bias);
             return params;
           }),
           py::arg("temperature") = 0.0, py::arg("top_k") = 0, py::arg("top_p") = 1.0,
           py::arg("min_p") = 0.0, py::arg("repetition_penalty") = 1.0,
           py::arg("presence_penalty") = 0.0, py::arg("frequency_penalty") = 0.0,
           py::arg("logit_bias") = Bias{})
      .def_property(
          "temperature", [](const SamplingParams& self) { return self.temperature; },
          [](SamplingParams& self, const py::object& value) {
            set_number<&SamplingParams::temperature>(self, value, "temperature");
          },
          "Divisor of the logits; 0: greedy decoding.")
      .def_property(
          "top_k", [](const SamplingParams& self) { return self.top_k; }, &set_top_k,
          "Number of likeliest tokens to keep; 0: all.")
      .def_property(
          "top_p", [](const SamplingParams& self) { return self.top_p; },
          [](SamplingParams& self, const py::object& value) {
            set_number<&SamplingParams::top_p>(self, value, "top_p");
          },
          "Probability mass to keep: the fewest likeliest tokens that hold it. In (0, 1].")
      .def_property(
          "min_p", [](const SamplingParams& self) { return self.min_p; },
          [](SamplingParams& self, const py::object& value) {
            set_number<&SamplingParams::min_p>(self, value, "min_p");
          },
          "Minimum probability of a token to keep, as a share of the likeliest token's. In [0, 1].")
      .def_property(
          "repetition_penalty", [](const SamplingParams& self) { return self.repetition_penalty; },
          [](SamplingParams& self, const py::object& value) {
            set_number<&SamplingParams::repetition_penalty>(self, value, "repetition_penalty");
          },
          "Divisor of positive logits and factor of negative logits, for tokens in the prompt or "
          "the generated text. > 0.")
      .def_property(
          "presence_penalty", [](const SamplingParams& self) { return self.presence_penalty; },
          [](SamplingParams& self, const py::object& value) {
            set_number<&SamplingParams::presence_penalty>(self, value, "presence_penalty");
          },
          "Amount subtracted from the logit of every generated token.")
      .def_property(
          "frequency_penalty", [](const SamplingParams& self) { return self.frequency_penalty; },
          [](SamplingParams& self, const py::object& value) {
            set_number<&SamplingParams::frequency_penalty>(self, value, "frequency_penalty");
          },
          "Amount subtracted from a token's logit for each of its occurrences among the generated "
          "tokens.")
      .def_property(
          "logit_bias", [](const SamplingParams& self) { return self.logit_bias; }, &set_logit_bias,
          "List of (id, bias) that is added to the logits of these tokens; -inf bans a token.")
      .def("__repr__", &repr);
}

}  // namespace outrider::python
