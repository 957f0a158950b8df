// SPDX-License-Identifier: Apache-2.0
// Block verification of chains: the whole draft is judged jointly. The emitted distribution is that
// of token-by-token rejection; the expected number of accepted tokens is never smaller.
//
// Source: Sun, Mendlovic, Leviathan et al., "Block Verification Accelerates Speculative Decoding"
// (2024), algorithm 2. With r_i the rule's and d_i the drafter's distribution after the i-th
// drafted token X_i:
//   w_0 = 1,  w_i = min(1, w_{i-1} * r_{i-1}(X_i) / d_{i-1}(X_i))
//   m_i = sum over x of max(0, w_i * r_i(x) - d_i(x))
//   h_i = m_i / (m_i + 1 - w_i) before the last drafted token, h_n = w_n at it.
// The accepted length is the largest i whose uniform number falls below h_i. The next token is
// drawn from normalise(max(0, w_i * r_i - d_i)), or after a full draft from r_n. Each round needs
// fresh uniforms: reusing those of a position from an earlier round is biased.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_BLOCK_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_BLOCK_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "speculate/acceptances/acceptance.h"

namespace outrider {

struct BlockSteps {
  static double weight(double before, double rule_prob, double proposal_prob) {
    return std::min(1.0, before * (rule_prob / proposal_prob));
  }
  static double accept_prob(double residual_mass, double weight) {
    const double total = residual_mass + (1.0 - weight);
    return total > 0 ? residual_mass / total : 0.0;
  }
  static Draw accept_draw(const DraftTree& tree, int node) {
    return {tree.n_committed(), node, Purpose::block};
  }
};

template <class Steps>
class Block final : public Acceptance {
 public:
  explicit Block(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  std::string_view name() const override { return "block"; }
  RuleNeeds needs() const override { return rule_->needs(); }
  bool chains_only() const override { return true; }

  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    if (!tree.is_chain())
      throw Error("verify block", "draft tree", "a chain", "a tree with siblings");
    // Distributions and weights up to the last node that can be accepted. No node after a weight of
    // 0 can, so the target's distributions there are not computed.
    std::vector<Verdict::Judged>& judged = verdict.judged;
    const int last = tree.n_drafted();
    if (judged.size() <= static_cast<std::size_t>(last)) {
      judged.resize(static_cast<std::size_t>(last) + 1);
    }
    const auto at = [&judged](int node) -> Verdict::Judged& {
      return judged[static_cast<std::size_t>(node)];
    };
    Distribution& storage = verdict.proposal;
    at(0).weight = 1;
    int accepted = 0;
    for (int node = 1; node <= last; ++node) {
      rule_->rule_prob(views, node - 1, at(node - 1).rule_prob);
      const TokenId token = tree.node(node).token;
      const double proposal_prob = tree.proposal_prob(node, storage).prob(token);
      at(node).weight =
          Steps::weight(at(node - 1).weight, at(node - 1).rule_prob.prob(token), proposal_prob);
      if (at(node).weight <= 0) break;
      accepted = node;
    }
    // From the last node back: each node has its own uniform number, and the first accepted one is
    // the largest i.
    const auto stands = [&](int node) {
      const double accept =
          node == last ? at(node).weight
                       : Steps::accept_prob(
                             remainder_mass(at(node).rule_prob,
                                            tree.proposal_prob(node + 1, storage), at(node).weight),
                             at(node).weight);
      return chance.bernoulli(accept, Steps::accept_draw(tree, node));
    };
    while (accepted > 0 && !stands(accepted)) --accepted;

    verdict.path.clear();
    verdict.costs.clear();
    const auto record = [&](int node, const Distribution& dist) {
      if (node > 0) verdict.path.push_back(node);
      verdict.costs.push_back(cost_of(*rule_, views, node, dist));
    };
    for (int node = 0; node < accepted; ++node) record(node, at(node).rule_prob);
    if (accepted < last) {
      std::swap(verdict.next_prob, at(accepted).rule_prob);
    } else {
      rule_->rule_prob(views, accepted, verdict.next_prob);
    }
    record(accepted, verdict.next_prob);
    verdict.corrected = accepted < last;
    if (verdict.corrected) {
      // If no mass is left, the two distributions are equal and only rounding ended the path here:
      // the distribution stays unchanged.
      subtract_and_normalise(verdict.next_prob, tree.proposal_prob(accepted + 1, storage),
                             at(accepted).weight);
    }
    verdict.next = chance.categorical(
        verdict.next_prob,
        {tree.n_committed(), accepted, verdict.corrected ? Purpose::residual : Purpose::bonus});
  }

 private:
  std::shared_ptr<const Rule> rule_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_BLOCK_H_
