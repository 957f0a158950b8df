// SPDX-License-Identifier: Apache-2.0
#include "measure/simulated_drafter.h"

#include <fmt/format.h>

#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "simulate acceptance";

}  // namespace

SimulatedDrafter::SimulatedDrafter(Drafter& inner, std::vector<TokenId> text, int vocabulary_size,
                                   double acceptance, std::uint64_t seed)
    : inner_(&inner),
      text_(std::move(text)),
      vocabulary_size_(vocabulary_size),
      acceptance_(acceptance),
      chance_(seed) {}

TokenId SimulatedDrafter::token_at(std::int64_t position) {
  if (position >= static_cast<std::int64_t>(text_.size())) {
    throw Error(kOperation, "draft", fmt::format("positions below {}", text_.size()),
                fmt::format("{}", position));
  }
  const TokenId token = text_[static_cast<std::size_t>(position)];
  const bool right =
      chance_.bernoulli(acceptance_, {.position = position, .node = 0, .purpose = Purpose::accept});
  return right ? token : (token + 1) % vocabulary_size_;
}

void SimulatedDrafter::begin(const Context& context) {
  drafts_[context.id];
  inner_->begin(context);
}

void SimulatedDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                               const FeatureRows& features) {
  inner_->prefill(context, tokens, features);
}

void SimulatedDrafter::propose(std::span<DraftJob> jobs) {
  jobs_.assign(jobs.begin(), jobs.end());
  for (DraftJob& job : jobs_) {
    DraftTree& draft = drafts_.at(job.context->id);
    draft.reset(job.context->tokens.back(), static_cast<std::int64_t>(job.context->tokens.size()));
    job.tree = &draft;
  }
  inner_->propose(jobs_);
  for (DraftJob& job : jobs) {
    const DraftTree& draft = drafts_.at(job.context->id);
    if (!draft.is_chain() || draft.n_scratch() > 0) {
      throw Error(kOperation, "draft", "a chain",
                  fmt::format("a tree by the drafter {}", inner_->name()));
    }
    std::int64_t position = draft.n_committed();
    for (int node = 0; node < draft.n_drafted(); ++node) {
      job.tree->add_child(node, token_at(position++), kPointMass);
    }
  }
}

void SimulatedDrafter::observe(std::span<const RoundResult> results) {
  results_.assign(results.begin(), results.end());
  for (RoundResult& result : results_) result.tree = &drafts_.at(result.context->id);
  inner_->observe(results_);
}

void SimulatedDrafter::end(SequenceId id) {
  inner_->end(id);
  drafts_.erase(id);
}

}  // namespace outrider
