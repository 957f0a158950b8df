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

// Deletes a generator without the GIL: its destructor waits for the model's turn.
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
  py::class_<TokenLogProb>(module, "TokenLogProb",
                           "A token and its log probability under the target.")
      .def_readonly("id", &TokenLogProb::id, "Id of the token.")
      .def_readonly("log_prob", &TokenLogProb::log_prob,
                    "Natural log probability of the token by the target's raw logits.");
  py::class_<Token>(module, "Token", "A generated token as it is committed.")
      .def_readonly(
          "id", &Token::id,
          "Id of the token; -1: text that was held back until the time limit or close() ended the "
          "request.")
      .def_readonly("text", &Token::text,
                    "Text that became certain with this token: whole characters, sometimes none.")
      .def_property_readonly(
          "origin", [](const Token& self) { return name_of(self.origin); },
          "Origin of the token: \"plain\", \"accepted\", \"corrected\" or \"bonus\".")
      .def_readonly("rank", &Token::rank,
                    "Rank of an accepted token among the drafter's proposals for its position, "
                    "from 0; -1 for other tokens.")
      .def_readonly("log_prob", &Token::log_prob,
                    "Log probability of this token with log_probs, otherwise None.")
      .def_readonly(
          "top", &Token::top,
          "List of TokenLogProb with log_probs=n: the n likeliest tokens, the likeliest first.")
      .def_readonly("ends", &Token::ends,
                    "Whether this token ended the text and is therefore no part of it.");
}

void bind_statistics(py::module_& module) {
  py::class_<GenerateStatistics>(module, "Statistics",
                                 "Counts and times of one request. Times are wall-clock seconds, "
                                 "including passes shared with other requests.")
      .def_readonly("target_passes", &GenerateStatistics::target_passes,
                    "Number of target passes, without prefill.")
      .def_readonly("drafter_passes", &GenerateStatistics::drafter_passes,
                    "Number of drafter passes, without prefill.")
      .def_readonly("drafted", &GenerateStatistics::drafted, "Number of drafted tokens.")
      .def_readonly("accepted", &GenerateStatistics::accepted,
                    "Number of drafted tokens that are in the generated text.")
      .def_readonly("rejected", &GenerateStatistics::rejected,
                    "Number of generated tokens that replaced a drafted token.")
      .def_readonly("emitted", &GenerateStatistics::emitted, "Number of generated tokens.")
      .def_readonly("rule_kl", &GenerateStatistics::rule_kl,
                    "Cost of the rule: KL divergence of its distribution from the target's, summed "
                    "over the tokens, in nats.")
      .def_readonly("rule_tv", &GenerateStatistics::rule_tv,
                    "Total variation between the two distributions, summed over the tokens. At "
                    "temperature 0: number of tokens that are not the target's. 0 for \"exact\".")
      .def_readonly(
          "deferral_rate", &GenerateStatistics::deferral_rate,
          "Share of the drafter's probability mass that a cascade rule left to the target.")
      .def_readonly("reused", &GenerateStatistics::reused,
                    "Number of prompt tokens that were not run again (Generator.keep_last_text()).")
      .def_readonly("prefill_seconds", &GenerateStatistics::prefill_seconds,
                    "Time of the prompt and the encoder, before the first round that drafts.")
      .def_readonly("decode_seconds", &GenerateStatistics::decode_seconds,
                    "Time of all that follows prefill.")
      .def_readonly("draft_seconds", &GenerateStatistics::draft_seconds,
                    "Part of decode_seconds: drafting.")
      .def_readonly("target_seconds", &GenerateStatistics::target_seconds,
                    "Part of decode_seconds: the target's passes.")
      .def_readonly(
          "verify_seconds", &GenerateStatistics::verify_seconds,
          "Part of decode_seconds: verification, with the drafter's pass that a rule may need.")
      .def_property_readonly("tau", by_reference<&GenerateStatistics::tau>,
                             "Number of emitted tokens per target pass.")
      .def_property_readonly("acceptance_rate", by_reference<&GenerateStatistics::acceptance_rate>,
                             "Number of accepted tokens per drafted token.")
      .def_property_readonly("tokens_per_second",
                             by_reference<&GenerateStatistics::tokens_per_second>,
                             "Number of emitted tokens per second of decode_seconds.");
}

// An array that is a view of a result's memory and keeps the result alive. Read-only, because all
// views share the memory.
template <typename T>
py::array_t<T> view(const py::object& self, const std::vector<T>& values,
                    std::vector<py::ssize_t> shape) {
  py::array_t<T> array(std::move(shape), values.data(), self);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

void bind_result(py::module_& module) {
  py::class_<Result>(module, "Result", "The result of one prompt.")
      .def_property_readonly(
          "ids",
          [](const py::object& self) {
            const auto& ids = self.cast<const Result&>().of.ids;
            return view(self, ids, {static_cast<py::ssize_t>(ids.size())});
          },
          "Ids of the generated tokens, including a final end token: int32 array (n).")
      .def_property_readonly(
          "logits",
          [](const py::object& self) {
            const auto& result = self.cast<const Result&>();
            const auto n_values = static_cast<py::ssize_t>(result.of.logits.size());
            return view(self, result.of.logits, {n_values / result.vocabulary, result.vocabulary});
          },
          "Raw logits of the target from which each id was chosen: float32 array (n, vocabulary), "
          "with keep_logits. The array shows the result's memory; nothing is copied.")
      .def_property_readonly(
          "accepted_per_round",
          [](const py::object& self) {
            const auto& counts = self.cast<const Result&>().of.accepted_per_round;
            return view(self, counts, {static_cast<py::ssize_t>(counts.size())});
          },
          "Number of accepted draft tokens of each target pass: int32 array (passes).")
      .def_property_readonly(
          "text", [](const Result& self) { return self.of.text; },
          "Text that the ids add to the prompt's text.")
      .def_property_readonly(
          "finish_reason", [](const Result& self) { return name_of(self.of.finish_reason); },
          "Reason for the end: \"stop\", \"length\", \"time\" or \"cancelled\".")
      .def_property_readonly(
          "stop_string", [](const Result& self) { return self.of.stop_string; },
          "Stop string that ended the text, or an empty one.")
      .def_property_readonly(
          "statistics", [](const Result& self) { return self.of.statistics; },
          "Counts and times of the request.");
}

void bind_stream(py::module_& module) {
  py::class_<TextStream>(module, "Stream",
                         "Iterator over the tokens of one request as they are committed. Leaving "
                         "the loop, close() and the end of a with block cancel the request.")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &next_token)
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](TextStream& self, const py::args& /*error*/) { self.close(); })
      .def("close", by_reference<&TextStream::close>, "Cancels the request if it has not ended.")
      .def_property_readonly(
          "result", by_reference<&TextStream::result>,
          "Result of the request once it has ended. None before, and if it ended in an error.");
}

void bind_generator(py::module_& module) {
  GeneratorClass generator(module, "Generator",
                           "Generates text with one target and one drafter. One thread at a time "
                           "may use it: a second one gets UsageError. Two generators can run on "
                           "two threads; passes of the same model take turns.");
  generator
      .def(py::init(&make_generator), py::arg("model").none(false), py::kw_only(),
           py::arg("drafter") = "none", py::arg("rule") = "exact", py::arg("tree") = "",
           py::arg("verify") = "", py::arg("adaptive") = false,
           py::arg("drafter_options") = py::none(),
           "drafter, rule, tree, verify: the specs of the command line (--drafter, --rule, --tree, "
           "--verify). tree may be \"auto\" or \"own\", as there. drafter may also be an object "
           "with a method propose(), such as one of a class derived from OwnDrafter.\n"
           "adaptive: plans draft lengths as tree=\"auto\" does, but verifies by \"exact\" unless "
           "verify is given.\n"
           "drafter_options: a dict of Model's keywords for the drafter's own model; None: those "
           "of the target.")
      .def("generate", &generate, py::arg("prompt"), py::arg("sampling") = py::none(),
           "Continues a prompt (a text or token ids) and returns a Result. A list of prompts runs "
           "in shared passes and gives a list of Results. Each of these has the same bits as "
           "alone.\n\n"
           "Keywords: max_tokens=256, seed=0 (or one for each prompt), stop=(), stop_tokens=(), "
           "ignore_eos=False, add_special=True, keep_logits=False, log_probs=-1, grammar=None, "
           "mask=None (a function that gets a MaskedText and returns which tokens may follow), "
           "max_seconds=0, encoder_prompt=None, on_token=None (called with each Token; for a list "
           "of prompts, also with the prompt's index).\n\n"
           "Ctrl-C raises KeyboardInterrupt after the pass in progress.")
      .def("stream", &stream, py::arg("prompt"), py::arg("sampling") = py::none(),
           "Returns a Stream, an iterator over the Tokens of one prompt. Keywords: those of "
           "generate() except on_token.")
      .def(
          "keep_last_text",
          [](TextGenerator& self, bool keep) {
            const TextGenerator::Use use(self);
            const ReleasedGil released;
            self.keep_last_text(keep);
          },
          py::arg("keep"),
          "Sets whether the text that ended last is kept with its KV cache. A later prompt that "
          "begins with the same tokens does not run them again. Initially False.")
      .def_property_readonly("model", by_reference<&TextGenerator::model>,
                             "Model that the generator was made with.")
      .def_property_readonly(
          "rule_scope",
          [](const TextGenerator& self) {
            const ReleasedGil released;
            return self.rule_scope() == RuleScope::prefix ? "prefix" : "round";
          },
          "Scope of the rule: \"prefix\" if its distribution depends on the text before a token "
          "alone, \"round\" if also on where the draft round began.");
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
      "Returns a text, such as a path, as the value of a spec: with a backslash before the "
      "punctuation of specs.");
}

}  // namespace outrider::python
