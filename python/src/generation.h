// Running requests to their ends, for generate() and chat().
#ifndef OUTRIDER_PYTHON_GENERATION_H_
#define OUTRIDER_PYTHON_GENERATION_H_

#include <memory>
#include <vector>

#include "bindings.h"
#include "text_generator.h"

namespace outrider::python {

// A finished text for Python: the Result, and the width of its rows of logits.
struct Result {
  GenerateResult of;
  py::ssize_t vocabulary = 0;
};

// Steps until all have ended. on_token: None, or called with each Token and, unless is_one, with
// the index of its request. Its exceptions, Ctrl-C and the first error end all of them.
std::vector<Result> run(TextGenerator& generator, std::vector<GenerateRequest> requests,
                        const py::object& on_token, bool is_one);

using GeneratorClass = py::class_<TextGenerator, std::shared_ptr<TextGenerator>>;
// Adds chat().
void bind_chat(py::module_& module, GeneratorClass& generator);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_GENERATION_H_
