// SPDX-License-Identifier: Apache-2.0
// outrider.Generator, its streams and its results.
#include "outrider/generate.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "generate_arguments.h"
#include "generation.h"
#include "outrider/spec_description.h"
#include "own_drafter.h"
#include "text_generator.h"
#include "text_stream.h"

namespace outrider::python {
namespace {

py::object generate(TextGenerator& self, const py::object& prompts, const py::object& sampling,
                    const py::kwargs& keywords) {
  const GenerateArguments arguments =
      read_arguments(*self.shared_model().model, sampling, keywords);
  bool is_one = false;
  std::vector<GenerateRequest> requests =
      make_requests(*self.shared_model().model, prompts, arguments, is_one);
  std::vector<Result> results = run(self, std::move(requests), arguments.on_token, is_one);
  if (is_one) return py::cast(std::move(results.front()));
  py::list list;
  for (Result& result : results) list.append(std::move(result));
  return list;
}

TextStream stream(const std::shared_ptr<TextGenerator>& self, const py::object& prompt,
                  const py::object& sampling, const py::kwargs& keywords) {
  const GenerateArguments arguments =
      read_arguments(*self->shared_model().model, sampling, keywords);
  if (!arguments.on_token.is_none()) {
    throw UsageError("stream", "on_token", "none: the stream gives the tokens", "a function");
  }
  bool is_one = false;
  std::vector<GenerateRequest> requests =
      make_requests(*self->shared_model().model, prompt, arguments, is_one);
  if (!is_one) throw UsageError("stream", "prompt", "one prompt", "a list of prompts");
  return {self, std::move(requests.front())};
}

Token next_token(TextStream& self) {
  std::optional<Token> token = self.next();
  if (!token) throw py::stop_iteration();
  return *std::move(token);
}

// Its destructor waits for a turn, and must not hold the GIL meanwhile.
struct WithoutGil {
  void operator()(TextGenerator* generator) const {
    if (PyGILState_Check() == 0) {
      delete generator;
      return;
    }
    const ReleasedGil released;
    delete generator;
  }
};

// Like the command line's --tree and --verify. "auto" plans drafts and verifies them by "coupled",
// so that a seed gives the same text whatever the depth of drafts.
SpeculationOptions read_speculation(const py::object& drafter, const py::str& rule_spec,
                                    const py::str& tree_spec, const py::str& verify_spec,
                                    bool adaptive) {
  constexpr const char* kOperation = "read spec";
  const std::string rule = read_text(rule_spec, kOperation, "rule");
  const std::string tree = read_text(tree_spec, kOperation, "tree");
  const std::string verify = read_text(verify_spec, kOperation, "verify");
  SpeculationOptions options{.rule = rule, .tree = tree, .adaptive = adaptive};
  if (py::isinstance<py::str>(drafter)) {
    options.drafter = read_text(drafter, kOperation, "drafter");
  } else {
    options.drafter = "own";
    options.own_drafter = to_own_drafter(drafter);
  }
  if (tree == "auto" || tree == "own") options.tree.clear();
  if (tree == "auto") options.adaptive = true;
  if (!verify.empty()) {
    options.verify = verify;
  } else if (tree == "auto" && rule == "exact") {
    options.verify = "coupled";
  }
  return options;
}

std::shared_ptr<TextGenerator> make_generator(std::shared_ptr<SharedModel> model,
                                              const py::object& drafter, const py::str& rule,
                                              const py::str& tree, const py::str& verify,
                                              bool adaptive, const py::object& drafter_options) {
  SpeculationOptions options = read_speculation(drafter, rule, tree, verify, adaptive);
  options.drafter_options = drafter_options.is_none()
                                ? model->options
                                : read_model_options(py::cast<py::dict>(drafter_options));
  const ReleasedGil released;
  return {new TextGenerator(std::move(model), options), WithoutGil()};
}

void bind_token(py::module_& module) {
  py::class_<TokenLogProb>(module, "TokenLogProb", "What the target says of one token.")
      .def_readonly("id", &TokenLogProb::id)
      .def_readonly("log_prob", &TokenLogProb::log_prob,
                    "Natural logarithm of its probability, by the raw row of logits.");
  py::class_<Token>(module, "Token", "One token as it is committed.")
      .def_readonly("id", &Token::id,
                    "Its id. -1: text that was held back and came out when time was over.")
      .def_readonly("text", &Token::text,
                    "Text that became certain with it: whole characters, sometimes none.")
      .def_property_readonly(
          "origin", [](const Token& self) { return name_of(self.origin); },
          "\"plain\", \"accepted\", \"corrected\" or \"bonus\".")
      .def_readonly("rank", &Token::rank,
                    "Of an accepted token: which of the proposals for its place it was, from 0; "
                    "else -1.")
      .def_readonly("log_prob", &Token::log_prob, "With log_probs: of this token. Else None.")
      .def_readonly("top", &Token::top,
                    "With log_probs=n: TokenLogProb of the n likeliest, the likeliest first.")
      .def_readonly("ends", &Token::ends, "It ended the text and is no part of it.");
}

void bind_statistics(py::module_& module) {
  py::class_<GenerateStatistics>(
      module, "Statistics",
      "Counts of one text. Times are seconds of the wall clock, those of passes that it shared "
      "with others included.")
      .def_readonly("target_passes", &GenerateStatistics::target_passes, "Without prefill.")
      .def_readonly("drafter_passes", &GenerateStatistics::drafter_passes)
      .def_readonly("drafted", &GenerateStatistics::drafted, "Tokens proposed.")
      .def_readonly("accepted", &GenerateStatistics::accepted, "Of these, those that stand.")
      .def_readonly("rejected", &GenerateStatistics::rejected,
                    "Tokens that stand in the place of drafted ones.")
      .def_readonly("emitted", &GenerateStatistics::emitted, "Tokens generated.")
      .def_readonly("rule_kl", &GenerateStatistics::rule_kl, "What the rule cost, in nats.")
      .def_readonly("rule_tv", &GenerateStatistics::rule_tv)
      .def_readonly("deferral_rate", &GenerateStatistics::deferral_rate)
      .def_readonly("reused", &GenerateStatistics::reused,
                    "Tokens of the prompt that did not have to be run.")
      .def_readonly("prefill_seconds", &GenerateStatistics::prefill_seconds)
      .def_readonly("decode_seconds", &GenerateStatistics::decode_seconds)
      .def_readonly("draft_seconds", &GenerateStatistics::draft_seconds)
      .def_readonly("target_seconds", &GenerateStatistics::target_seconds)
      .def_readonly("verify_seconds", &GenerateStatistics::verify_seconds)
      .def_property_readonly("tau", by_reference<&GenerateStatistics::tau>,
                             "Tokens emitted per pass of the target.")
      .def_property_readonly("acceptance_rate", by_reference<&GenerateStatistics::acceptance_rate>)
      .def_property_readonly("tokens_per_second",
                             by_reference<&GenerateStatistics::tokens_per_second>);
}

// Arrays that are views of a result's own memory and keep it alive. Read-only, because all of them
// share it.
template <typename T>
py::array_t<T> view(const py::object& self, const std::vector<T>& values,
                    std::vector<py::ssize_t> shape) {
  py::array_t<T> array(std::move(shape), values.data(), self);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

void bind_result(py::module_& module) {
  py::class_<Result>(module, "Result", "What became of one prompt.")
      .def_property_readonly(
          "ids",
          [](const py::object& self) {
            const auto& ids = self.cast<const Result&>().of.ids;
            return view(self, ids, {static_cast<py::ssize_t>(ids.size())});
          },
          "int32 array (n): the generated tokens, a final end token included.")
      .def_property_readonly(
          "logits",
          [](const py::object& self) {
            const auto& result = self.cast<const Result&>();
            const auto n_values = static_cast<py::ssize_t>(result.of.logits.size());
            return view(self, result.of.logits, {n_values / result.vocabulary, result.vocabulary});
          },
          "float32 array (n, vocabulary) with keep_logits: the target's raw row behind each id. "
          "It shows the result's memory: nothing is copied.")
      .def_property_readonly(
          "accepted_per_round",
          [](const py::object& self) {
            const auto& counts = self.cast<const Result&>().of.accepted_per_round;
            return view(self, counts, {static_cast<py::ssize_t>(counts.size())});
          },
          "int32 array (passes): accepted draft tokens of each pass of the target.")
      .def_property_readonly(
          "text", [](const Result& self) { return self.of.text; },
          "What the ids add to the prompt's text.")
      .def_property_readonly(
          "finish_reason", [](const Result& self) { return name_of(self.of.finish_reason); },
          "\"stop\", \"length\", \"time\" or \"cancelled\".")
      .def_property_readonly(
          "stop_string", [](const Result& self) { return self.of.stop_string; },
          "The stop string that ended the text, or an empty one.")
      .def_property_readonly("statistics", [](const Result& self) { return self.of.statistics; });
}

void bind_stream(py::module_& module) {
  py::class_<TextStream>(
      module, "Stream",
      "Tokens of one text as they are committed. Leaving the loop cancels the text; "
      "so do close() and the end of a with block.")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &next_token)
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](TextStream& self, const py::args& /*error*/) { self.close(); })
      .def("close", by_reference<&TextStream::close>, "Cancels the text, if it has not ended.")
      .def_property_readonly(
          "result", by_reference<&TextStream::result>,
          "The Result once the text ended; None before, and where it ended in an error.");
}

void bind_generator(py::module_& module) {
  GeneratorClass generator(
      module, "Generator",
      "Generates with one target and one drafter. One thread at a time may use it: a second one "
      "gets UsageError. Two generators work on two threads; passes of the same model take turns.");
  generator
      .def(py::init(&make_generator), py::arg("model").none(false), py::kw_only(),
           py::arg("drafter") = "none", py::arg("rule") = "exact", py::arg("tree") = "",
           py::arg("verify") = "", py::arg("adaptive") = false,
           py::arg("drafter_options") = py::none(),
           "drafter, rule, tree, verify: the specs of the command line (--drafter, --rule, --tree, "
           "--verify), \"auto\" and \"own\" of --tree among them; drafter may be an object with a "
           "method propose(), as of a class derived from OwnDrafter. adaptive: as tree=\"auto\", "
           "judged by exact. drafter_options: a dict of Model's keywords, for the drafter's own "
           "model; None: those of the target.")
      .def("generate", &generate, py::arg("prompt"), py::arg("sampling") = py::none(),
           "Continues a prompt (a text, or ids) to a Result, or a list of prompts, in shared "
           "passes, to a list of Results with the bits that each has alone.\n\n"
           "Keywords: max_tokens=256, seed=0 (or one for each prompt), stop=(), stop_tokens=(), "
           "ignore_eos=False, add_special=True, keep_logits=False, log_probs=-1, grammar=None, "
           "mask=None (a function of a MaskedText that says which tokens may follow), "
           "max_seconds=0, encoder_prompt=None, on_token=None (called with each Token; of a list "
           "of prompts with its index, too).\n\n"
           "Ctrl-C ends it behind the pass in progress with KeyboardInterrupt.")
      .def("stream", &stream, py::arg("prompt"), py::arg("sampling") = py::none(),
           "An iterator of Tokens of one prompt. Keywords as of generate().")
      .def(
          "keep_last_text",
          [](TextGenerator& self, bool keep) {
            const TextGenerator::Use use(self);
            const ReleasedGil released;
            self.keep_last_text(keep);
          },
          py::arg("keep"),
          "Whether the text that ended last is kept with its KV cache: a later prompt that "
          "begins like it does not run these tokens again. At first False.")
      .def_property_readonly("model", by_reference<&TextGenerator::model>, "What it was made with.")
      .def_property_readonly(
          "rule_scope",
          [](const TextGenerator& self) {
            const ReleasedGil released;
            return self.rule_scope() == RuleScope::prefix ? "prefix" : "round";
          },
          "\"prefix\" or \"round\": what the rule's distribution depends on.");
  bind_chat(module, generator);
}

}  // namespace

void bind_generate(py::module_& module) {
  bind_token(module);
  bind_statistics(module);
  bind_result(module);
  bind_stream(module);
  bind_generator(module);
  module.def("_generate_keywords", &argument_names);
  module.def(
      "escape_spec_value",
      [](const py::str& value) { return escape_spec_value(read_text(value, "escape", "value")); },
      py::arg("value"),
      "A text, a path say, as the value of a spec: what specs read as punctuation gets a "
      "backslash.");
}

}  // namespace outrider::python
