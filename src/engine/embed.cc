// SPDX-License-Identifier: Apache-2.0
#include "outrider/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "model/language_model.h"
#include "model/prefill.h"
#include "model/require_decoder.h"
#include "outrider/error.h"

namespace outrider {

struct Embedding::State {
  Sequence& open();

  std::shared_ptr<const Model> model;
  std::vector<TokenId> ids;
  std::unique_ptr<Sequence> sequence;
  std::size_t n_run = 0;
  std::vector<double> sums;
  ForwardOutput output;
};

Embedding::Embedding(std::shared_ptr<const Model> model, std::vector<TokenId> ids)
    : state_(std::make_unique<State>()) {
  const ModelConfig& config = model->language_model().config();
  constexpr const char* kOperation = "embed text";
  require_decoder(config, kOperation);
  if (ids.empty()) throw Error(kOperation, "text", "at least one token", "none");
  if (ids.size() > static_cast<std::size_t>(config.context_length)) {
    throw Error(kOperation, "text", fmt::format("at most {} tokens", config.context_length),
                fmt::format("{}", ids.size()));
  }
  for (const TokenId id : ids) {
    if (id >= 0 && id < config.vocabulary_size) continue;
    throw Error(kOperation, "token", fmt::format("0 to {}", config.vocabulary_size - 1),
                fmt::format("{}", id));
  }
  state_->model = std::move(model);
  state_->ids = std::move(ids);
}

Embedding::~Embedding() = default;
Embedding::Embedding(Embedding&&) noexcept = default;
Embedding& Embedding::operator=(Embedding&&) noexcept = default;

// The text's sequence; opened on first use.
Sequence& Embedding::State::open() {
  if (sequence == nullptr) {
    sequence = model->language_model().open({.n_tokens = static_cast<int>(ids.size())});
  }
  return *sequence;
}

bool Embedding::fits() {
  State& state = *state_;
  if (state.n_run == state.ids.size()) return true;
  const SequenceGrowth growth{.sequence = &state.open(),
                              .n_tokens = static_cast<int>(state.ids.size() - state.n_run)};
  return state.model->language_model().fits({&growth, 1});
}

bool Embedding::step() {
  State& state = *state_;
  LanguageModel& model = state.model->language_model();
  if (state.n_run == state.ids.size()) return false;
  Sequence& sequence = state.open();
  const auto rows = std::span<const TokenId>(state.ids)
                        .subspan(state.n_run)
                        .first(std::min<std::size_t>(state.ids.size() - state.n_run, kPrefillRows));
  const int last_layer = model.config().n_layers;
  prefill(model, sequence, rows, state.output, {&last_layer, 1});
  state.sums.resize(static_cast<std::size_t>(state.output.feature_width), 0);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::span<const float> hidden = state.output.feature_row(static_cast<int>(row));
    for (std::size_t i = 0; i < hidden.size(); ++i) state.sums[i] += hidden[i];
  }
  state.n_run += rows.size();
  const bool more = state.n_run < state.ids.size();
  if (!more) state.sequence.reset();
  return more;
}

std::vector<float> Embedding::vector() const {
  const std::vector<double>& sums = state_->sums;
  const double length = std::sqrt(std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0));
  std::vector<float> vector(sums.size(), 0);
  if (!(length > 0)) return vector;
  for (std::size_t i = 0; i < sums.size(); ++i) vector[i] = static_cast<float>(sums[i] / length);
  return vector;
}

}  // namespace outrider
