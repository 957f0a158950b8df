// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/own_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "own drafter";

// A sum of probabilities may exceed 1 by this much through rounding. bfloat16, the coarsest type in
// use, has 8 significant bits. Rounding to nearest enlarges a number by at most the factor 1 +
// 2^-8, so the sum stays below 1.00391, plus parts in 10^7 from a float32 softmax.
constexpr double kMaxOverOne = 0.004;

// Converts to a Distribution: ids ascending, tokens without probability dropped, sum 1.
void read_distribution(const TokenDistribution& dist, int vocabulary_size, Distribution& out) {
  if (dist.ids.size() != dist.probs.size()) {
    throw Error(kOperation, "distribution",
                fmt::format("as many probabilities as ids, {}", dist.ids.size()),
                fmt::format("{}", dist.probs.size()));
  }
  std::vector<std::pair<TokenId, double>> entries;
  entries.reserve(dist.ids.size());
  double sum = 0;
  for (std::size_t i = 0; i < dist.ids.size(); ++i) {
    const TokenId id = dist.ids[i];
    const double prob = dist.probs[i];
    if (id < 0 || id >= vocabulary_size) {
      throw Error(kOperation, "distribution", fmt::format("token ids below {}", vocabulary_size),
                  fmt::format("{}", id));
    }
    if (!std::isfinite(prob) || prob < 0) {
      throw Error(kOperation, "distribution", "probabilities that are finite and not negative",
                  fmt::format("{} for token {}", prob, id));
    }
    entries.emplace_back(id, prob);
    sum += prob;
  }
  if (!(sum > 0) || sum > 1 + kMaxOverOne) {
    throw Error(kOperation, "distribution", "probabilities with a sum above 0 and at most 1",
                fmt::format("{}", sum));
  }
  std::sort(entries.begin(), entries.end());
  out.clear();
  TokenId last = kNoToken;
  for (const auto& [id, prob] : entries) {
    if (id == last) {
      throw Error(kOperation, "distribution", "each token once", fmt::format("token {} twice", id));
    }
    last = id;
    if (!(prob / sum > 0)) continue;  // so small that the quotient is 0
    out.ids.push_back(id);
    out.probs.push_back(prob / sum);
  }
}

class Draft final : public OwnDraft {
 public:
  Draft(const DraftJob& job, int vocabulary_size)
      : job_(&job),
        max_depth_(std::min(job.budget.depth, job.shape->depth())),
        max_nodes_(std::min(job.budget.n_nodes, job.shape->n_nodes())),
        vocabulary_size_(vocabulary_size) {}

  int max_depth() const override { return max_depth_; }
  int max_nodes() const override { return max_nodes_; }
  bool is_chain() const override { return job_->shape->is_chain(); }
  int vocabulary_size() const override { return vocabulary_size_; }
  int n_nodes() const override { return job_->tree->n_drafted(); }

  int add(int parent, TokenId token) override {
    require_place(parent);
    require_token(token);
    return add_checked(parent, token, kPointMass);
  }

  int add(int parent, TokenId token, const TokenDistribution& dist) override {
    require_place(parent);
    require_token(token);
    read_distribution(dist, vocabulary_size_, dist_);
    if (!(dist_.prob(token) > 0)) {
      throw Error(kOperation, "distribution",
                  fmt::format("a probability above 0 for the token {} that was drawn", token), "0");
    }
    return add_checked(parent, token, record_distribution());
  }

  Drawn draw(int parent, const TokenDistribution& dist) override {
    require_place(parent);
    read_distribution(dist, vocabulary_size_, dist_);
    DraftTree& tree = *job_->tree;
    const int root = parent + 1;
    // As in tree_growth.h: with shared noise all siblings would be the same token.
    const bool is_coupled = job_->noise == DraftNoise::coupled && tree.next_child(root, root) < 0;
    const Draw key = is_coupled
                         ? Draw{tree.n_committed() + tree.node(root).depth, 0, Purpose::token}
                         : Draw{tree.n_committed(), tree.n_nodes(), Purpose::draft};
    const TokenId token = job_->chance->categorical(dist_, key);
    return {.node = add_checked(parent, token, record_distribution()), .token = token};
  }

 private:
  void require_place(int parent) const {
    const DraftTree& tree = *job_->tree;
    if (n_nodes() >= max_nodes_) {
      throw Error(kOperation, "draft", fmt::format("at most {} tokens (max_nodes)", max_nodes_),
                  "one more");
    }
    if (parent < -1 || parent >= n_nodes()) {
      throw Error(kOperation, fmt::format("node {}", n_nodes()),
                  fmt::format("a parent before it, from -1 to {}", n_nodes() - 1),
                  fmt::format("{}", parent));
    }
    if (is_chain() && parent != n_nodes() - 1) {
      throw Error(kOperation, fmt::format("node {}", n_nodes()),
                  fmt::format("the parent {}, since the draft is a chain", n_nodes() - 1),
                  fmt::format("{}", parent));
    }
    if (tree.node(parent + 1).depth >= max_depth_) {
      throw Error(kOperation, fmt::format("node {}", n_nodes()),
                  fmt::format("a depth of at most {} (max_depth)", max_depth_),
                  fmt::format("{}", tree.node(parent + 1).depth + 1));
    }
  }

  void require_token(TokenId token) const {
    if (token >= 0 && token < vocabulary_size_) return;
    throw Error(kOperation, fmt::format("node {}", n_nodes()),
                fmt::format("token ids below {}", vocabulary_size_), fmt::format("{}", token));
  }

  int add_checked(int parent, TokenId token, int proposal) {
    return job_->tree->add_child(parent + 1, token, proposal) - 1;
  }

  int record_distribution() {
    if (job_->context->transform->greedy()) return kPointMass;
    const int dist = job_->tree->add_distribution();
    job_->tree->distribution(dist).assign(dist_);
    return dist;
  }

  const DraftJob* job_;
  int max_depth_;
  int max_nodes_;
  int vocabulary_size_;
  Distribution dist_;  // the distribution being added
};

// Also distinguishes texts of several generators that share a drafter.
std::int64_t new_id() {
  static std::atomic<std::int64_t> next{0};
  return next++;
}

}  // namespace

OwnDrafterAdapter::OwnDrafterAdapter(std::shared_ptr<OwnDrafter> own, int vocabulary_size)
    : own_(std::move(own)), vocabulary_size_(vocabulary_size) {}

void OwnDrafterAdapter::begin(const Context& context) {
  const std::int64_t id = new_id();
  own_->begin({.id = id, .tokens = context.tokens});
  states_.insert_or_assign(context.id, State{.id = id, .failure = nullptr});
}

void OwnDrafterAdapter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    State& state = states_.at(job.context->id);
    Draft draft(job, vocabulary_size_);
    if (state.failure || draft.max_depth() < 1 || draft.max_nodes() < 1) continue;
    try {
      own_->propose({.id = state.id, .tokens = job.context->tokens}, draft);
    } catch (...) {
      state.failure = std::current_exception();
    }
  }
}

void OwnDrafterAdapter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    if (state.failure) continue;
    accepted_.clear();
    for (const int node : result.verdict->path) accepted_.push_back(node - 1);
    try {
      own_->observe({.id = state.id, .tokens = result.context->tokens}, accepted_);
    } catch (...) {
      state.failure = std::current_exception();
    }
  }
}

void OwnDrafterAdapter::end(SequenceId id) {
  const auto state = states_.find(id);
  if (state == states_.end()) return;  // begin() threw, so it never began
  own_->end(state->second.id);
  states_.erase(state);
}

std::exception_ptr OwnDrafterAdapter::failure(SequenceId id) const {
  const auto state = states_.find(id);
  return state == states_.end() ? nullptr : state->second.failure;
}

DrafterPlan read_own_drafter(const Spec& spec, const std::shared_ptr<OwnDrafter>& own) {
  (void)spec.value();  // a name, or nothing
  spec.require_keys({"length", "total"});
  const auto total = spec.integer("total", 1, kMaxDraftNodes);
  const int length =
      spec.integer("length", 1, kMaxDraftNodes)
          .value_or(std::min(OwnDrafterAdapter::kLength, total.value_or(kMaxDraftNodes)));
  const int n_nodes = total.value_or(std::max(OwnDrafterAdapter::kTotal, length));
  return {.traits = {},
          .shape = std::make_shared<OpenShape>(std::min(length, n_nodes), n_nodes),
          .make = [own](const DrafterMaterials& materials) {
            return std::make_unique<OwnDrafterAdapter>(own, materials.vocabulary_size);
          }};
}

}  // namespace outrider
