// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/retokenized_drafter.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "model/prefill.h"
#include "outrider/error.h"

namespace outrider {

struct RetokenizedDrafter::Writing {
  DraftJob* job = nullptr;
  Sequence* sequence = nullptr;
  std::vector<TokenId> next;     // the tokens that the model runs in the next pass
  std::vector<TokenId> written;  // the draft so far
  int n_max = 0;                 // how many tokens it may have
};

RetokenizedDrafter::RetokenizedDrafter(std::unique_ptr<LanguageModel> model,
                                       VocabularyTranslation forth, VocabularyTranslation back)
    : model_(std::move(model)), forth_(std::move(forth)), back_(std::move(back)) {
  const auto fit = [](const VocabularyTranslation& from, const VocabularyTranslation& to) {
    const auto n_rows = static_cast<TokenId>(to.spelled.size());
    return std::all_of(from.spelled.begin(), from.spelled.end(), [&](const auto& tokens) {
      return !tokens.empty() && std::all_of(tokens.begin(), tokens.end(), [&](TokenId token) {
        return token >= 0 && token < n_rows;
      });
    });
  };
  if (static_cast<int>(back_.spelled.size()) != model_->config().vocabulary_size ||
      !fit(forth_, back_) || !fit(back_, forth_)) {
    throw Error("draft in another vocabulary", "translation", "tokens that both models have",
                "others");
  }
}

void RetokenizedDrafter::begin(const Context& context) {
  states_[context.id] = {
      .sequence = model_->open({.encoder_tokens = {}, .n_reserved = context.n_reserved})};
}

std::vector<TokenId> RetokenizedDrafter::tokens_to_run(State& state,
                                                       std::span<const TokenId> tokens) const {
  const std::vector<TokenId>& ids = state.text.update(forth_, tokens);
  const auto [end, differs] =
      std::mismatch(state.ids.begin(), state.ids.end(), ids.begin(), ids.end());
  // The last token is always run, to get the logits after it.
  const auto n_same = std::min(static_cast<std::size_t>(end - state.ids.begin()), ids.size() - 1);
  const int n_left = state.sequence->rewind(static_cast<int>(n_same));
  state.ids = ids;
  return {ids.begin() + n_left, ids.end()};
}

int RetokenizedDrafter::remaining_context(const Context& context, const State& state) const {
  return model_->config().context_length - state.text.max_tokens(forth_, context.tokens);
}

void RetokenizedDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                                 const FeatureRows& /*features*/) {
  State& state = states_.at(context.id);
  // A prompt beyond the model's context gets plain decoding: propose() finds it too long as well.
  if (remaining_context(context, state) < 0) return;
  state.n_seen += tokens.size();
  outrider::prefill(*model_, *state.sequence,
                    tokens_to_run(state, context.tokens.first(state.n_seen)), output_);
}

void RetokenizedDrafter::propose(std::span<DraftJob> jobs) {
  std::vector<Writing> writings;
  for (DraftJob& job : jobs) {
    State& state = states_.at(job.context->id);
    const int n_max = std::min({job.budget.depth, job.budget.n_nodes, job.shape->depth(),
                                remaining_context(*job.context, state) + 1});
    if (n_max <= 0) continue;
    writings.push_back({.job = &job,
                        .sequence = state.sequence.get(),
                        .next = tokens_to_run(state, job.context->tokens),
                        .written = {},
                        .n_max = n_max});
  }
  const std::vector<TokenId>& ends = model_->config().end_tokens;
  std::vector<TokenBlock> blocks;
  std::vector<int> path;
  for (bool is_context = true; !writings.empty(); is_context = false) {
    blocks.clear();
    for (const Writing& writing : writings) {
      blocks.push_back({.sequence = writing.sequence, .tokens = writing.next, .parents = {}});
    }
    model_->forward(blocks, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                    output_);
    ++n_passes_;
    for (std::size_t index = 0; index < writings.size(); ++index) {
      Writing& writing = writings[index];
      if (is_context) {
        path.resize(writing.next.size());
        std::iota(path.begin(), path.end(), 0);
        writing.sequence->keep(path);
      }
      writing.next = {likeliest_token(output_.logits.row(static_cast<int>(index)))};
      writing.written.push_back(writing.next.front());
    }
    std::erase_if(writings, [&](Writing& writing) {
      const bool ends_here =
          std::find(ends.begin(), ends.end(), writing.next.front()) != ends.end();
      if (static_cast<int>(writing.written.size()) < writing.n_max && !ends_here) return false;
      writing.sequence->keep({});
      add_draft(*writing.job, writing.written);
      return true;
    });
  }
}

void RetokenizedDrafter::add_draft(DraftJob& job, std::span<const TokenId> written) const {
  const std::vector<TokenId> draft = back_.read_text(written, false);
  const int length = std::min(
      {static_cast<int>(draft.size()), job.budget.depth, job.budget.n_nodes, job.shape->depth()});
  for (int node = 0; node < length; ++node) {
    job.tree->add_child(node, draft[static_cast<std::size_t>(node)], kPointMass);
  }
}

}  // namespace outrider
