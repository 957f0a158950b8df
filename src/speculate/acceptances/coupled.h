// SPDX-License-Identifier: Apache-2.0
// Gumbel coupling: the verifier draws each token exactly as plain sampling would, with noise keyed
// by (seed, position, token). It follows the draft tree as long as the tree contains the token
// drawn. The output is therefore bit-identical to plain sampling with the same seed, whatever was
// drafted. Drafters that draw with the same noise (DraftNoise::coupled) agree with it often. With a
// tree of the root alone this is plain sampling.
//
// Source: Gumbel-max coupling as in Daliri, Musco, Suresh, "Coupling without Communication and
// Drafter-Invariant Speculative Decoding" (2024).
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_COUPLED_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_COUPLED_H_

#include <memory>
#include <utility>

#include "speculate/acceptances/acceptance.h"

namespace outrider {

class Coupled final : public Acceptance {
 public:
  explicit Coupled(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  std::string_view name() const override { return "coupled"; }
  RuleNeeds needs() const override { return rule_->needs(); }
  DraftNoise draft_noise() const override { return DraftNoise::coupled; }
  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override;

 private:
  std::shared_ptr<const Rule> rule_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_COUPLED_H_
