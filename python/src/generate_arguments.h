// SPDX-License-Identifier: Apache-2.0
// The keyword arguments of generate(), stream() and chat().
#ifndef OUTRIDER_PYTHON_GENERATE_ARGUMENTS_H_
#define OUTRIDER_PYTHON_GENERATE_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bindings.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::python {

struct GenerateArguments {
  GenerateOptions options;                 // of all texts, except the seed
  std::vector<std::uint64_t> seeds = {0};  // one for all texts, or one for each
  const Model* model = nullptr;            // the model for which they were read
  py::object encoder_prompt = py::none();
  py::object on_token = py::none();
};

// Throws UsageError for an unknown keyword and TypeError for a value of another type.
GenerateArguments read_arguments(const Model& model, const py::object& sampling,
                                 const py::kwargs& keywords);

// The keywords, for tests of the stubs.
std::vector<std::string> argument_names();

// Makes one request for each prompt. `prompts` is a text, the ids of one, or a list or
// two-dimensional array of these. Sets is_one to whether it is a single prompt.
std::vector<GenerateRequest> make_requests(const Model& model, const py::object& prompts,
                                           const GenerateArguments& arguments, bool& is_one);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_GENERATE_ARGUMENTS_H_
