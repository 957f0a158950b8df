// SPDX-License-Identifier: Apache-2.0
// Model.logits() and Model.features().
#include "outrider/score.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "outrider/error.h"
#include "shared_model.h"

namespace outrider::python {
namespace {

std::vector<ScoreText> read_texts(const py::object& ids, bool& is_one) {
  is_one = is_ids(ids);
  if (is_one) return {{.ids = read_ids(ids)}};
  const bool is_list = py::isinstance<py::array>(ids)
                           ? py::reinterpret_borrow<py::array>(ids).ndim() > 0
                           : py::isinstance<py::sequence>(ids);
  if (!is_list || py::isinstance<py::str>(ids) || is_bytes(ids)) {
    throw UsageError("score texts", "ids", "the ids of a text, or a list of these",
                     std::string(py::str(py::type::of(ids))));
  }
  std::vector<ScoreText> texts;
  for (const py::handle text : ids) texts.push_back({.ids = read_ids(text)});
  return texts;
}

void read_encoder_ids(const py::object& encoder_ids, bool is_one, std::vector<ScoreText>& texts) {
  if (encoder_ids.is_none()) return;
  if (is_one) {
    texts.front().encoder_ids = read_ids(encoder_ids);
    return;
  }
  if (py::len(encoder_ids) != texts.size()) {
    throw UsageError(
        "score texts", "encoder_ids", "one for each text",
        std::to_string(py::len(encoder_ids)) + " for " + std::to_string(texts.size()) + " texts");
  }
  std::size_t i = 0;
  for (const py::handle of_text : encoder_ids) texts[i++].encoder_ids = read_ids(of_text);
}

// `first` applies to all texts, so it is at most the number of tokens of the shortest one.
std::size_t read_first(const py::object& first, const std::vector<ScoreText>& texts) {
  std::size_t most = texts.empty() ? 0 : texts.front().ids.size();
  for (const ScoreText& text : texts) most = std::min(most, text.ids.size());
  return static_cast<std::size_t>(
      read_integer(first, "score texts", "first", 0, static_cast<std::int64_t>(most)));
}

std::vector<ScoreResult> run(SharedModel& shared, std::vector<ScoreText> texts,
                             const ScoreOptions& options) {
  check_signals();
  const ReleasedGil released;
  // Created, stepped and destroyed while this thread has the model's turn, because it owns
  // sequences in the model's KV cache.
  std::unique_lock turn(shared.turn);
  Scoring scoring(shared.model, std::move(texts), options);
  while (scoring.step()) {
    turn.unlock();  // Other threads run in between, and a signal handler may need the model, too.
    std::exception_ptr interrupted;
    {
      const TakenGil taken;
      try {
        check_signals();
      } catch (...) {
        interrupted = std::current_exception();
      }
    }
    turn.lock();
    if (interrupted) std::rethrow_exception(interrupted);
  }
  return std::move(scoring.results());
}

py::object logits(SharedModel& shared, const py::object& ids, const py::object& encoder_ids,
                  const py::object& first) {
  bool is_one = false;
  std::vector<ScoreText> texts = read_texts(ids, is_one);
  read_encoder_ids(encoder_ids, is_one, texts);
  const std::size_t first_row = read_first(first, texts);
  for (ScoreText& text : texts) text.first_logits = first_row;
  std::vector<ScoreResult> results = run(shared, std::move(texts), {});
  const py::ssize_t width = shared.model->summary().vocabulary_size;
  py::list arrays;
  for (ScoreResult& result : results) {
    const py::ssize_t n_rows = static_cast<py::ssize_t>(result.logits.size()) / width;
    arrays.append(to_array(std::move(result.logits), {n_rows, width}));
  }
  return is_one ? py::object(arrays[0]) : py::object(arrays);
}

py::object features(SharedModel& shared, const py::object& ids, const std::vector<int>& layers,
                    const py::object& encoder_ids) {
  bool is_one = false;
  std::vector<ScoreText> texts = read_texts(ids, is_one);
  read_encoder_ids(encoder_ids, is_one, texts);
  std::vector<py::ssize_t> lengths;
  for (const ScoreText& text : texts) {
    lengths.push_back(static_cast<py::ssize_t>(text.ids.size()));
  }
  std::vector<ScoreResult> results =
      run(shared, std::move(texts), {.logits = false, .layers = layers});
  const auto n_layers = static_cast<py::ssize_t>(layers.size());
  const py::ssize_t dim = shared.model->summary().dim;
  py::list arrays;
  for (std::size_t i = 0; i < results.size(); ++i) {
    arrays.append(to_array(std::move(results[i].features), {lengths[i], n_layers, dim}));
  }
  return is_one ? py::object(arrays[0]) : py::object(arrays);
}

}  // namespace

void bind_score(py::class_<SharedModel, std::shared_ptr<SharedModel>>& model) {
  model
      .def("logits", &logits, py::arg("ids"), py::kw_only(), py::arg("encoder_ids") = py::none(),
           py::arg("first") = 0,
           "Returns the raw logits after each token of ids: float32 array (n, vocabulary). They "
           "have the same bits as in generation. Row i predicts the token after ids[:i + 1].\n\n"
           "ids: the token ids of a text, or a list of such. A list shares passes and gives a list "
           "of arrays.\n"
           "encoder_ids: for an encoder-decoder, the encoder's input (one for each text). ids are "
           "then the decoder's input, beginning with summary.start_token.\n"
           "first: index of the first token to give a row; the array is then (n - first, "
           "vocabulary).")
      .def("features", &features, py::arg("ids"), py::arg("layers"), py::kw_only(),
           py::arg("encoder_ids") = py::none(),
           "Returns the hidden states at each token: float32 array (n, len(layers), dim). Layer 0 "
           "is the token's embedding; layer l is the residual stream after l layers. Layer "
           "summary.n_layers is the input of the output matrix, after the final norm. A list of "
           "texts gives a list of arrays.");
}

}  // namespace outrider::python
