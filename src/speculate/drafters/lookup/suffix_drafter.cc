// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/suffix_drafter.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "speculate/tree_shapes/open_shape.h"

namespace outrider {

SuffixDrafter::SuffixDrafter(const Options& options) : options_(options) {}

void SuffixDrafter::begin(const Context& context) {
  texts_.insert_or_assign(context.id, IndexedText());
}

void SuffixDrafter::catch_up(IndexedText& text, const Context& context) const {
  const auto n_seen = static_cast<std::size_t>(text.index.n_tokens());
  for (const TokenId token : context.tokens.subspan(n_seen)) {
    text.index.append(token);
    if (options_.across > 0) text.tokens.push_back(token);
  }
}

void SuffixDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    IndexedText& text = texts_.at(job.context->id);
    catch_up(text, *job.context);
    best_.nodes.clear();
    best_.score = 0;
    best_.refused = {};
    consider(text.index, text.index.suffix(), job);
    if (options_.across > 0) {
      const std::span<const TokenId> tokens = job.context->tokens;
      for (const SuffixAutomaton& index : earlier_) {
        SuffixAutomaton::Match match;
        for (const TokenId token : tokens.last(std::min<std::size_t>(tokens.size(), kOrder))) {
          index.advance(match, token, kOrder);
        }
        consider(index, match, job);
      }
    }
    for (const Node& node : best_.nodes) {
      job.tree->add_child(node.parent, node.token, kPointMass);
      if (job.worth != nullptr) job.worth->drafted(node.certainty);
    }
    const Node& refused = best_.refused;
    if (refused.token != kNoToken) {
      job.worth->refused(refused.parent, refused.token, refused.certainty);
    }
  }
}

// Rates every suffix of the match whose continuations differ from those of the longer ones; ties go
// to the longer.
void SuffixDrafter::consider(const SuffixAutomaton& index, SuffixAutomaton::Match match,
                             const DraftJob& job) {
  while (match.state != SuffixAutomaton::kRoot) {
    grow(index, match, job);
    if (growing_.score > best_.score) {
      std::swap(growing_, best_);
    } else if (best_.nodes.empty() && best_.refused.token == kNoToken) {
      best_.refused = growing_.refused;
    }
    match.state = index.state(match.state).link;
    match.length = index.state(match.state).length;
  }
}

void SuffixDrafter::grow(const SuffixAutomaton& index, const SuffixAutomaton::Match& match,
                         const DraftJob& job) {
  const int n_nodes = std::min(options_.total, job.budget.n_nodes);
  const int depth = static_cast<int>(std::min<double>(std::min(options_.length, job.budget.depth),
                                                      options_.factor * match.length));
  growing_.nodes.clear();
  growing_.score = 0;
  growing_.refused = {};
  candidates_.clear();
  // Orders by probability; ties go to the shallower node, then to the one proposed after the
  // earlier node, then to the lower id. The order must not depend on how a heap is built.
  const auto less = [](const Node& a, const Node& b) {
    if (a.prob != b.prob) return a.prob < b.prob;
    if (a.depth != b.depth) return a.depth > b.depth;
    if (a.parent != b.parent) return a.parent > b.parent;
    return a.token > b.token;
  };
  const auto expand = [&](const Node& node, int place) {
    if (node.depth > depth) return;
    const std::size_t before = candidates_.size();
    push_children(index, node, place, job);
    for (std::size_t end = before + 1; end <= candidates_.size(); ++end) {
      std::push_heap(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(end),
                     less);
    }
  };
  expand({.depth = 1, .prob = 1, .match = match}, 0);
  while (!candidates_.empty() && static_cast<int>(growing_.nodes.size()) < n_nodes) {
    std::pop_heap(candidates_.begin(), candidates_.end(), less);
    const Node node = candidates_.back();
    candidates_.pop_back();
    const auto n = static_cast<int>(growing_.nodes.size()) + 1;
    const double price = job.worth == nullptr ? 0 : std::max(job.worth->price(n), options_.cut);
    if (node.prob < price) {
      growing_.refused = node;
      break;
    }
    growing_.nodes.push_back(node);
    growing_.score += node.prob - price;
    Node next = node;
    ++next.depth;
    expand(next, static_cast<int>(growing_.nodes.size()));
  }
}

// Adds the continuations of a node's string whose paths are likely enough; `node.depth` is theirs.
void SuffixDrafter::push_children(const SuffixAutomaton& index, const Node& node, int place,
                                  const DraftJob& job) {
  double n_followed = 0;
  for (const SuffixAutomaton::Transition& next : index.state(node.match.state).next) {
    if (next.token != kNoToken) n_followed += index.state(next.state).n_occurrences;
  }
  const std::size_t first = candidates_.size();
  for (const SuffixAutomaton::Transition& next : index.state(node.match.state).next) {
    if (next.token == kNoToken) continue;  // the end of an earlier text
    const double n = index.state(next.state).n_occurrences;
    const double certainty = n / n_followed * certainty_of_match(node.match.length);
    const double prob = job.worth == nullptr ? node.prob * n / n_followed
                                             : node.prob * job.worth->stands(certainty);
    if (job.worth == nullptr && prob < options_.cut) continue;
    Node child{.token = next.token,
               .parent = place,
               .depth = node.depth,
               .prob = prob,
               .certainty = certainty};
    if (job.shape->is_chain() && candidates_.size() > first) {
      if (prob <= candidates_.back().prob) continue;
      candidates_.pop_back();
    }
    child.match = node.match;
    index.advance(child.match, next.token, kOrder);
    candidates_.push_back(child);
  }
}

void SuffixDrafter::rewind(const Context& context, std::size_t n_common) {
  if (static_cast<std::size_t>(texts_.at(context.id).index.n_tokens()) > n_common) begin(context);
}

void SuffixDrafter::end(SequenceId id) {
  const auto text = texts_.find(id);
  if (text == texts_.end()) return;
  if (options_.across > 0) remember(text->second.tokens);
  texts_.erase(text);
}

void SuffixDrafter::remember(const std::vector<TokenId>& tokens) {
  const auto half = static_cast<std::size_t>(options_.across / 2);
  // Keeps the end of a text that is too long: that part was generated.
  const std::size_t n_tokens = std::min(tokens.size() + 1, half);
  if (static_cast<std::size_t>(earlier_[0].n_tokens()) + n_tokens > half) {
    earlier_[1] = std::exchange(earlier_[0], SuffixAutomaton(kOrder));
  }
  for (std::size_t index = tokens.size() + 1 - n_tokens; index < tokens.size(); ++index) {
    earlier_[0].append(tokens[index]);
  }
  if (n_tokens > 0) earlier_[0].append(kNoToken);
}

int SuffixDrafter::n_remembered() const { return earlier_[0].n_tokens() + earlier_[1].n_tokens(); }

DrafterPlan read_suffix_drafter(const Spec& spec) {
  spec.require_no_value();
  SuffixDrafter::Options options;
  const auto total = spec.integer("total", 1, kMaxDraftNodes);
  options.length = spec.integer("length", 1, kMaxDraftNodes)
                       .value_or(std::min(options.length, total.value_or(kMaxDraftNodes)));
  options.total = total.value_or(std::max(options.total, options.length));
  options.cut = spec.number("cut", 1e-6, 1).value_or(options.cut);
  options.factor = spec.number("factor", 0.01, 1e6).value_or(options.factor);
  options.across = spec.integer("across", 0, SuffixDrafter::kMaxTokens).value_or(options.across);
  return {
      .traits = {},
      .shape = std::make_shared<OpenShape>(std::min(options.length, options.total), options.total),
      .make = [options](const DrafterMaterials&) {
        return std::make_unique<SuffixDrafter>(options);
      }};
}

}  // namespace outrider
