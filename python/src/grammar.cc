// SPDX-License-Identifier: Apache-2.0
// outrider.Grammar.
#include "outrider/grammar.h"

#include "bindings.h"

namespace outrider::python {
namespace {

// No bound function changes a grammar; pybind11 has no holders of const pointers.
using Held = std::shared_ptr<Grammar>;
Held held(const std::shared_ptr<const Grammar>& grammar) {
  return std::const_pointer_cast<Grammar>(grammar);
}

}  // namespace

void bind_grammar(py::module_& module) {
  py::class_<Grammar, Held>(module, "Grammar",
                            "A constraint on generated text. Immutable. Make it once and use it "
                            "for many requests: token masks are cached per Grammar object.")
      .def_static(
          "from_gbnf",
          [](const py::str& text) {
            return held(Grammar::from_gbnf(read_text(text, "read grammar", "text")));
          },
          py::arg("text"),
          "Returns the Grammar of a text in llama.cpp's notation (GBNF). Its start rule is root.")
      .def_static(
          "from_json_schema",
          [](const py::object& schema) { return held(Grammar::from_json_schema(to_json(schema))); },
          py::arg("schema"),
          "Returns the Grammar of JSON that is valid by a JSON Schema. schema: its text, or a "
          "value that json.dumps accepts.")
      .def_static(
          "from_regex",
          [](const py::str& text) {
            return held(Grammar::from_regex(read_text(text, "read regular expression", "text")));
          },
          py::arg("text"),
          "Returns the Grammar of texts that a regular expression of ECMA-262 matches as a whole.")
      .def_static("any_json_object", [] { return held(Grammar::any_json_object()); })
      .def_static(
          "choice",
          [](const Grammar& one, const Grammar& other) {
            return held(Grammar::choice(one, other));
          },
          py::arg("one"), py::arg("other"), "Returns the Grammar of texts of either form.")
      .def_static(
          "sequence",
          [](const Grammar& first, const Grammar& second) {
            return held(Grammar::sequence(first, second));
          },
          py::arg("first"), py::arg("second"),
          "Returns the Grammar of a text of the first form followed by one of the second.");
}

}  // namespace outrider::python
