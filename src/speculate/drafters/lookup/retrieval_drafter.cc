// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/retrieval_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {
namespace {

// Compares the paths of two candidates of one depth by their ids from the root on.
template <typename Candidate>
bool path_precedes(const DraftTree& tree, const Candidate& left, const Candidate& right) {
  TokenId left_token = left.token;
  TokenId right_token = right.token;
  int left_parent = left.parent;
  int right_parent = right.parent;
  while (left_parent != right_parent) {  // up to the node where the paths diverge
    left_token = tree.node(left_parent).token;
    right_token = tree.node(right_parent).token;
    left_parent = tree.node(left_parent).parent;
    right_parent = tree.node(right_parent).parent;
  }
  return left_token < right_token;
}

}  // namespace

RetrievalDrafter::RetrievalDrafter(Datastore store, int vocabulary_size)
    : store_(std::move(store)), vocabulary_size_(vocabulary_size) {}

void RetrievalDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    const int depth = std::min(job.shape->depth(), job.budget.depth);
    const int n_nodes = std::min(job.shape->n_nodes(), job.budget.n_nodes);
    if (depth <= 0 || n_nodes <= 0) continue;
    find_matches(job.context->tokens);
    grow(*job.tree, depth, n_nodes, job.shape->is_chain());
  }
}

bool RetrievalDrafter::occurs(std::span<const TokenId> pattern) const {
  for (int segment = 0; segment < store_.n_segments(); ++segment) {
    if (store_.contains(segment, pattern)) return true;
  }
  return false;
}

// Finds the longest suffix of `tokens` that occurs, and its occurrences: matches_, empty if there
// is none.
void RetrievalDrafter::find_matches(std::span<const TokenId> tokens) {
  matches_.clear();
  // Binary search: a shorter suffix occurs wherever a longer one does. Suffixes of `longest` tokens
  // (or none) are known to occur; those of `too_long` tokens are known not to.
  std::size_t longest = kShortestPattern - 1;
  std::size_t too_long = std::min<std::size_t>(tokens.size(), Datastore::kLongestPattern) + 1;
  while (longest + 1 < too_long) {
    const std::size_t middle = (longest + too_long) / 2;
    (occurs(tokens.last(middle)) ? longest : too_long) = middle;
  }
  if (longest < kShortestPattern) return;
  const std::span<const TokenId> pattern = tokens.last(longest);
  ranks_.clear();
  std::uint64_t n_occurrences = 0;
  for (int segment = 0; segment < store_.n_segments(); ++segment) {
    ranks_.push_back(store_.find(segment, pattern));
    n_occurrences += ranks_.back().count();
  }
  const std::uint64_t n_sampled = std::min(n_occurrences, kMaxMatches);
  int segment = 0;
  std::uint64_t before = 0;  // occurrences in the segments before
  for (std::uint64_t sampled = 0; sampled < n_sampled; ++sampled) {
    const std::uint64_t number = (2 * sampled + 1) * n_occurrences / (2 * n_sampled);
    while (number - before >= ranks_[static_cast<std::size_t>(segment)].count()) {
      before += ranks_[static_cast<std::size_t>(segment++)].count();
    }
    const std::uint32_t rank = ranks_[static_cast<std::size_t>(segment)].first +
                               static_cast<std::uint32_t>(number - before);
    matches_.push_back({segment, store_.place(segment, rank) + std::uint64_t{longest}});
  }
}

// Adds the candidates after a candidate that has become `node`. Its matches are sorted by their
// next tokens, so that each child's matches are contiguous.
void RetrievalDrafter::add_children(const Candidate& candidate, int node) {
  next_.clear();
  const auto matches = std::span(matches_).subspan(candidate.first, candidate.count);
  for (const Match& match : matches) {
    const TokenId token =
        store_.token(match.segment, match.place + static_cast<std::uint64_t>(candidate.depth));
    if (token >= 0 && token < vocabulary_size_) next_.emplace_back(token, match);
  }
  std::sort(next_.begin(), next_.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  for (std::size_t begin = 0; begin < next_.size();) {
    std::size_t end = begin;
    for (; end < next_.size() && next_[end].first == next_[begin].first; ++end) {
      matches[end] = next_[end].second;
    }
    candidates_.push_back({.first = candidate.first + begin,
                           .count = end - begin,
                           .token = next_[begin].first,
                           .parent = node,
                           .depth = candidate.depth + 1});
    begin = end;
  }
}

void RetrievalDrafter::grow(DraftTree& tree, int depth, int n_nodes, bool is_chain) {
  const auto is_worse = [&tree](const Candidate& left, const Candidate& right) {
    if (left.count != right.count) return left.count < right.count;
    if (left.depth != right.depth) return left.depth > right.depth;
    return path_precedes(tree, right, left);
  };
  candidates_.clear();
  add_children({.first = 0, .count = matches_.size()}, 0);
  std::make_heap(candidates_.begin(), candidates_.end(), is_worse);
  while (!candidates_.empty() && tree.n_drafted() < n_nodes) {
    std::pop_heap(candidates_.begin(), candidates_.end(), is_worse);
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    const int node = tree.add_child(best.parent, best.token, kPointMass);
    if (is_chain) candidates_.clear();
    if (best.depth == depth) continue;
    const auto n_before = static_cast<std::ptrdiff_t>(candidates_.size());
    add_children(best, node);
    for (auto end = candidates_.begin() + n_before; end != candidates_.end();) {
      std::push_heap(candidates_.begin(), ++end, is_worse);
    }
  }
}

DrafterPlan read_retrieval_drafter(const Spec& spec) {
  spec.require_no_value();
  const std::string path = spec.text("path").value_or("");
  if (path.empty()) throw UsageError("read drafter", "retrieval", "path=FILE", "none");
  return {.traits = {},
          .shape = std::make_shared<OpenShape>(RetrievalDrafter::kDepth, RetrievalDrafter::kNodes),
          .confidence = 0,
          .make = [path](const DrafterMaterials& materials) -> std::unique_ptr<Drafter> {
            Datastore store{std::filesystem::path(path)};
            const VocabularyId& of_store = store.vocabulary();
            const VocabularyId of_target = materials.vocabulary_id();
            if (of_store != of_target) {
              const auto show = [](const VocabularyId& vocabulary) {
                return fmt::format("{} tokens, {:016x}", vocabulary.size, vocabulary.fingerprint);
              };
              throw Error(
                  "load drafter", path,
                  fmt::format("a datastore of the target's vocabulary ({})", show(of_target)),
                  fmt::format("one of another ({})", show(of_store)));
            }
            return std::make_unique<RetrievalDrafter>(std::move(store), materials.vocabulary_size);
          }};
}

}  // namespace outrider
