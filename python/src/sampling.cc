// outrider.SamplingParams.
#include "outrider/sampling.h"

#include "bindings.h"

namespace outrider::python {
namespace {

using Bias = std::vector<std::pair<TokenId, float>>;

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
  py::class_<SamplingParams>(
      module, "SamplingParams",
      "How logits become the distribution that a token is drawn from. In this order: logit bias; "
      "repetition, presence and frequency penalty; temperature; top-k; top-p; min-p.")
      .def(py::init([](double temperature, int top_k, double top_p, double min_p,
                       double repetition_penalty, double presence_penalty, double frequency_penalty,
                       Bias logit_bias) {
             return SamplingParams{.temperature = temperature,
                                   .top_k = top_k,
                                   .top_p = top_p,
                                   .min_p = min_p,
                                   .repetition_penalty = repetition_penalty,
                                   .presence_penalty = presence_penalty,
                                   .frequency_penalty = frequency_penalty,
                                   .logit_bias = std::move(logit_bias)};
           }),
           py::arg("temperature") = 0.0, py::arg("top_k") = 0, py::arg("top_p") = 1.0,
           py::arg("min_p") = 0.0, py::arg("repetition_penalty") = 1.0,
           py::arg("presence_penalty") = 0.0, py::arg("frequency_penalty") = 0.0,
           py::arg("logit_bias") = Bias{})
      .def_readwrite("temperature", &SamplingParams::temperature,
                     "0 is greedy; else logits are divided by it.")
      .def_readwrite("top_k", &SamplingParams::top_k, "Keep so many likeliest tokens; 0: all.")
      .def_readwrite("top_p", &SamplingParams::top_p,
                     "Keep the fewest likeliest tokens that hold this mass. (0, 1]")
      .def_readwrite("min_p", &SamplingParams::min_p,
                     "Drop tokens below this share of the likeliest one's. [0, 1]")
      .def_readwrite("repetition_penalty", &SamplingParams::repetition_penalty,
                     "Divides positive and multiplies negative logits of seen tokens. > 0")
      .def_readwrite("presence_penalty", &SamplingParams::presence_penalty,
                     "Taken off the logit of every generated token.")
      .def_readwrite("frequency_penalty", &SamplingParams::frequency_penalty,
                     "Taken off once per occurrence among the generated tokens.")
      .def_readwrite("logit_bias", &SamplingParams::logit_bias,
                     "List of (id, bias), added to these tokens' logits; -inf bans a token.")
      .def("__repr__", &repr);
}

}  // namespace outrider::python
