// SPDX-License-Identifier: Apache-2.0
// Running requests: to their ends for generate() and chat(), pass by pass for streams.
#ifndef OUTRIDER_PYTHON_GENERATION_H_
#define OUTRIDER_PYTHON_GENERATION_H_

#include <memory>
#include <span>
#include <vector>

#include "bindings.h"
#include "text_generator.h"

namespace outrider::python {

// The result of a text for Python (outrider.Result), and the width of its rows of logits.
struct Result {
  GenerateResult of;
  py::ssize_t vocabulary = 0;
};

// The parts of a run are called with the GIL, which they release meanwhile, and within a
// TextGenerator::Use; end_left() creates its own.
std::vector<std::shared_ptr<Text>> start(TextGenerator& generator,
                                         std::vector<GenerateRequest> requests, bool keeps_tokens);
// One pass, then a check whether Python has a pending signal (Ctrl-C) or is ending.
void step(TextGenerator& generator);
void finish(TextGenerator& generator, std::span<const std::shared_ptr<Text>> texts);
void end_left(TextGenerator& generator);
// Called once, for a text that has ended without an error.
Result take_result(TextGenerator& generator, Text& text);

// Steps until all have ended. on_token: None, or called with each Token and, unless is_one, with
// the index of its request. Its exceptions, Ctrl-C and the first error end all of them.
std::vector<Result> run(TextGenerator& generator, std::vector<GenerateRequest> requests,
                        const py::object& on_token, bool is_one);

using GeneratorClass = py::class_<TextGenerator, std::shared_ptr<TextGenerator>>;
// Adds chat() and stream_chat().
void bind_chat(py::module_& module, GeneratorClass& generator);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_GENERATION_H_
