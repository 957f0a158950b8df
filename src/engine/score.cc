// SPDX-License-Identifier: Apache-2.0
#include "outrider/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "model/language_model.h"
#include "model/prefill.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "score texts";

void check_ids(const ModelSummary& model, const char* what, std::span<const TokenId> ids) {
  if (ids.empty() || ids.size() > static_cast<std::size_t>(model.context_length)) {
    throw Error(kOperation, what, fmt::format("1 to {} tokens", model.context_length),
                fmt::format("{}", ids.size()));
  }
  for (const TokenId id : ids) {
    if (id >= 0 && id < model.vocabulary_size) continue;
    throw Error(kOperation, what, fmt::format("ids from 0 to {}", model.vocabulary_size - 1),
                fmt::format("{}", id));
  }
}

void check_text(const ModelSummary& model, const ScoreText& text) {
  check_ids(model, "text", text.ids);
  if (model.n_encoder_layers > 0) {
    check_ids(model, "encoder's text", text.encoder_ids);
  } else if (!text.encoder_ids.empty()) {
    throw UsageError(kOperation, "encoder's text", "none (the model is a decoder)",
                     fmt::format("{} tokens", text.encoder_ids.size()));
  }
  if (text.first_logits > text.ids.size()) {
    throw UsageError(kOperation, "first row of logits", fmt::format("0 to {}", text.ids.size()),
                     fmt::format("{}", text.first_logits));
  }
}

}  // namespace

struct Scoring::State {
  // The rows of one text in a pass.
  struct Share {
    std::size_t text = 0;
    std::size_t n_rows = 0;
  };

  void plan_pass();
  void take_rows();

  std::shared_ptr<const Model> model;
  std::vector<ScoreText> texts;
  ScoreOptions options;
  std::vector<ScoreResult> results;

  std::size_t next = 0;                  // the first text with tokens to run
  std::size_t n_run = 0;                 // its tokens that have been run
  std::unique_ptr<Sequence> unfinished;  // its sequence, if some have been run

  std::vector<Share> shares;
  std::vector<std::unique_ptr<Sequence>> sequences;  // one for each share
  std::vector<TokenBlock> blocks;
  std::vector<int> logit_rows;
  ForwardOutput output;
};

Scoring::Scoring(std::shared_ptr<const Model> model, std::vector<ScoreText> texts,
                 const ScoreOptions& options)
    : state_(std::make_unique<State>()) {
  const ModelSummary& summary = model->summary();
  for (const ScoreText& text : texts) check_text(summary, text);
  const int n_layers = model->language_model().config().n_layers;
  for (const int layer : options.layers) {
    if (layer >= 0 && layer <= n_layers) continue;
    throw UsageError(kOperation, "layer", fmt::format("0 to {}", n_layers),
                     fmt::format("{}", layer));
  }
  State& state = *state_;
  state.results.resize(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t n_tokens = texts[i].ids.size();
    if (options.logits) {
      state.results[i].logits.reserve((n_tokens - texts[i].first_logits) *
                                      static_cast<std::size_t>(summary.vocabulary_size));
    }
    state.results[i].features.reserve(n_tokens * options.layers.size() *
                                      static_cast<std::size_t>(summary.dim));
  }
  state.model = std::move(model);
  state.texts = std::move(texts);
  state.options = options;
}

Scoring::~Scoring() = default;
Scoring::Scoring(Scoring&&) noexcept = default;
Scoring& Scoring::operator=(Scoring&&) noexcept = default;

// Plans the next rows, from as many texts as fit into a pass.
void Scoring::State::plan_pass() {
  shares.clear();
  blocks.clear();
  sequences.clear();
  logit_rows.clear();
  LanguageModel& language_model = model->language_model();
  std::size_t n_rows = 0;
  std::size_t n_done = n_run;
  for (std::size_t index = next; index < texts.size() && n_rows < kPrefillRows; ++index) {
    const ScoreText& text = texts[index];
    const std::size_t n_own = std::min(text.ids.size() - n_done, kPrefillRows - n_rows);
    if (n_done > 0) {
      sequences.push_back(std::move(unfinished));
    } else {
      sequences.push_back(language_model.open(
          {.encoder_tokens = text.encoder_ids, .n_tokens = static_cast<int>(text.ids.size())}));
    }
    blocks.push_back({.sequence = sequences.back().get(),
                      .tokens = std::span(text.ids).subspan(n_done, n_own),
                      .parents = {}});
    for (std::size_t row = 0; options.logits && row < n_own; ++row) {
      if (n_done + row >= text.first_logits) logit_rows.push_back(static_cast<int>(n_rows + row));
    }
    shares.push_back({.text = index, .n_rows = n_own});
    n_rows += n_own;
    n_done = 0;
  }
}

void Scoring::State::take_rows() {
  int row = 0;
  std::size_t logit_row = 0;
  std::vector<int> path;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Share& share = shares[i];
    ScoreResult& result = results[share.text];
    for (std::size_t of_text = 0; of_text < share.n_rows; ++of_text, ++row) {
      if (logit_row < logit_rows.size() && logit_rows[logit_row] == row) {
        const std::span<const float> values = output.logits_row(static_cast<int>(logit_row++));
        result.logits.insert(result.logits.end(), values.begin(), values.end());
      }
      if (options.layers.empty()) continue;
      const std::span<const float> features = output.feature_row(row);
      result.features.insert(result.features.end(), features.begin(), features.end());
    }
    if (share.text != next) n_run = 0;
    next = share.text;
    n_run += share.n_rows;
    // Only the last share can be incomplete: the pass was full.
    if (n_run < texts[next].ids.size()) {
      path.resize(share.n_rows);
      std::iota(path.begin(), path.end(), 0);
      sequences[i]->keep(path);
      unfinished = std::move(sequences[i]);
    } else {
      ++next;
      n_run = 0;
    }
  }
  sequences.clear();
}

bool Scoring::step() {
  State& state = *state_;
  if (state.next == state.texts.size()) return false;
  state.plan_pass();
  const RowSet rows = {.kind = state.logit_rows.empty() ? RowSet::Kind::none : RowSet::Kind::listed,
                       .rows = state.logit_rows};
  try {
    state.model->language_model().forward(
        state.blocks, {.logits = rows, .feature_layers = state.options.layers}, state.output);
  } catch (...) {  // nothing was run: another step may find memory
    if (state.n_run > 0) state.unfinished = std::move(state.sequences.front());
    state.sequences.clear();
    throw;
  }
  state.take_rows();
  return state.next < state.texts.size();
}

std::vector<ScoreResult>& Scoring::results() { return state_->results; }

}  // namespace outrider
