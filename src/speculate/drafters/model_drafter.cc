#include "speculate/drafters/model_drafter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/prefill.h"

namespace outrider {

struct ModelDrafter::Growing {
  DraftJob* job = nullptr;
  Sequence* sequence = nullptr;
  std::span<const TokenId> feed;  // tokens to run next: known ones first, then the last one drawn
  TokenId drawn = kNoToken;
  int length = 0;  // tokens this chain may still grow by
  int tip = 0;     // node at the end of the chain
};

ModelDrafter::ModelDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size)
    : model_(std::move(model)),
      shared_vocabulary_(static_cast<std::size_t>(
          std::min(model_->config().vocabulary_size, target_vocabulary_size))) {}
ModelDrafter::~ModelDrafter() = default;

bool ModelDrafter::can_run(std::span<const TokenId> tokens) const {
  return std::all_of(tokens.begin(), tokens.end(), [this](TokenId token) {
    return static_cast<std::size_t>(token) < shared_vocabulary_;
  });
}

void ModelDrafter::begin(const Context& context) { sequences_[context.id] = model_->open({}); }

void ModelDrafter::prefill(const Context& context, std::span<const TokenId> tokens) {
  // A prompt beyond the draft model's context, or with tokens it does not know, is left to plain
  // decoding: propose() finds the same obstacle in what is not cached.
  if (static_cast<int>(context.tokens.size()) > model_->config().context_length) return;
  if (!can_run(context.tokens.first(context.tokens.size() - 1))) return;
  outrider::prefill(*model_, *sequences_.at(context.id), tokens, output_);
}

void ModelDrafter::propose(std::span<DraftJob> jobs) {
  growing_.clear();
  for (DraftJob& job : jobs) {
    Sequence& sequence = *sequences_.at(job.context->id);
    const auto n_tokens = static_cast<int>(job.context->tokens.size());
    // A chain of n tokens runs the context and n - 1 of its own tokens.
    const int room = model_->config().context_length - n_tokens + 1;
    const int length = std::min(job.budget.length, room);
    const auto n_cached = static_cast<std::size_t>(sequence.n_kept());
    const auto feed = job.context->tokens.subspan(n_cached);
    if (length <= 0 || !can_run(feed)) continue;
    growing_.push_back(
        {.job = &job, .sequence = &sequence, .feed = feed, .drawn = kNoToken, .length = length});
  }
  while (!growing_.empty()) {
    blocks_.clear();
    for (const Growing& growing : growing_) {
      blocks_.push_back({.sequence = growing.sequence, .tokens = growing.feed, .parents = {}});
    }
    model_->forward(blocks_, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                    output_);
    ++n_passes_;
    for (std::size_t index = 0; index < growing_.size(); ++index) {
      Growing& growing = growing_[index];
      path_.resize(growing.feed.size());
      std::iota(path_.begin(), path_.end(), 0);
      growing.sequence->keep(path_);
      draw_next(growing, output_.logits_row(static_cast<int>(index)));
    }
    std::erase_if(growing_, [](const Growing& growing) { return growing.length == 0; });
    for (Growing& growing : growing_) growing.feed = {&growing.drawn, 1};
  }
}

void ModelDrafter::draw_next(Growing& growing, std::span<const float> logits) {
  const DraftJob& job = *growing.job;
  DraftTree& tree = *job.tree;
  const Transform& transform = *job.context->transform;
  const int law = tree.add_distribution();
  logits = logits.first(shared_vocabulary_);
  if (transform.has_penalties()) {
    penalised_.assign(logits.begin(), logits.end());
    tree.path_tokens(growing.tip, path_tokens_);
    transform.penalise(penalised_, *job.context->history, path_tokens_);
    logits = penalised_;
  }
  Distribution& draft_prob = tree.distribution(law);
  transform.distribution(logits, draft_prob);
  tree.set_draft_prob(growing.tip, law);

  const Draw draw = job.noise == DraftNoise::coupled
                        ? Draw{tree.n_committed() + tree.node(growing.tip).depth, 0, Purpose::token}
                        : Draw{tree.n_committed(), tree.n_nodes(), Purpose::draft};
  growing.drawn = job.chance->categorical(draft_prob, draw);
  growing.tip = tree.add_child(growing.tip, growing.drawn, law);
  --growing.length;
  if (job.stop != nullptr) {
    transform.raw_distribution(logits, raw_);
    if (job.stop->stop_after(growing.drawn, raw_.prob(growing.drawn))) growing.length = 0;
  }
}

void ModelDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    Sequence& sequence = *sequences_.at(result.context->id);
    // What is cached is the old context and the chain's tokens but the last; of these the accepted
    // path stands. Everything before the verifier's own token, that is.
    const auto n_valid = static_cast<int>(result.tree->n_committed()) +
                         static_cast<int>(result.verdict->path.size());
    if (sequence.n_kept() > n_valid) sequence.truncate(n_valid);
  }
}

void ModelDrafter::end(SequenceId id) { sequences_.erase(id); }

}  // namespace outrider
