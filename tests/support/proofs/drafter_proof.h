// SPDX-License-Identifier: Apache-2.0
// Computes the distribution of the tokens emitted with a drafter under test, by enumeration, and
// compares it with the rule's process (rule_process.h). It uses the distributions that the drafter
// reported: the emitted tokens must follow the rule's process over them, whatever they are.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_PROOF_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_PROOF_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "speculate/rules/relaxed.h"
#include "speculate/tree_shapes/tree_shape.h"
#include "tests/support/proofs/checked_drafter.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/proofs/rule_process.h"

namespace outrider::test {

struct Proof {
  World* world = nullptr;
  Drafter* drafter = nullptr;
  const Acceptance* acceptance = nullptr;
  const Rule* rule = nullptr;  // null: no rule, and the distribution is not checked
  std::shared_ptr<const TreeShape> shape;
  const StopRule* stop = nullptr;
  SamplingParams sampling = {};
  int n_tokens = 3;
  bool first_round_only = false;
  ThinkingMarks marks = {};  // for a rule that reads them
};

struct Proven {
  double error = 0;         // the largest difference, of distribution and statistics
  double weight = 0;        // of all enumerated outcomes: 1
  std::string violation;    // CheckedDrafter's
  bool consistent = false;  // DraftLaws'
  std::int64_t n_drafted = 0;
};

inline Proven prove(const Proof& proof) {
  World& world = *proof.world;
  CheckedDrafter checked(*proof.drafter, world.vocabulary_size());
  DraftDistributions dists;
  const RecordingAcceptance recording(*proof.acceptance, checked, dists,
                                      static_cast<std::int64_t>(world.prompt.size()));
  // Without a rule any process may follow the tokens that were run.
  static const ExactRule exact;
  const Transform transform(proof.sampling, world.vocabulary_size());
  const RuleTrial trial{.trial = {.target = world.target.get(),
                                  .drafter = &checked,
                                  .acceptance = &recording,
                                  .shape = proof.shape,
                                  .stop = proof.stop,
                                  .sampling = proof.sampling,
                                  .prompt = world.prompt,
                                  .encoder_tokens = world.encoder_tokens,
                                  .n_tokens = proof.n_tokens},
                        .views =
                            [&](const std::vector<TokenId>& emitted) {
                              std::vector<TokenId> prefix = world.prompt;
                              prefix.insert(prefix.end(), emitted.begin(), emitted.end());
                              TokenHistory history;
                              history.add_prompt(world.prompt);
                              for (const TokenId token : emitted) history.add_generated(token);
                              std::vector<float> logits = world.target->logits(prefix);
                              transform.penalise(logits, history, {});
                              FixedViews views;
                              for (const TokenId token : prefix) {
                                if (token == proof.marks.open || token == proof.marks.close) {
                                  views.open = token == proof.marks.open;
                                }
                              }
                              transform.distribution(logits, views.target_prob);
                              transform.raw_distribution(logits, views.raw_target_prob);
                              const auto dist = dists.dists.find(prefix);
                              views.has_draft = dist != dists.dists.end();
                              if (views.has_draft) {
                                views.draft_prob = dist->second.draft_prob;
                                views.raw_draft_prob = dist->second.raw_draft;
                              }
                              return views;
                            },
                        .rule = proof.rule == nullptr ? &exact : proof.rule,
                        .first_round_only = proof.first_round_only};
  const RuleOutcome emitted = enumerate_rule(trial);
  Proven proven{.weight = emitted.weight,
                .violation = checked.violation(),
                .consistent = dists.consistent,
                .n_drafted = checked.n_drafted()};
  if (proof.rule == nullptr) return proven;
  const RuleOutcome expected = rule_process(trial);
  const auto compare = [&proven](double got, double wanted) {
    if (std::isinf(wanted) && got == wanted) return;
    const double difference = std::abs(got - wanted);
    proven.error = std::isnan(difference) ? 1.0 : std::max(proven.error, difference);
  };
  proven.error = distance(emitted.dist, expected.dist);
  compare(emitted.cost.kl, expected.cost.kl);
  compare(emitted.cost.total_variation, expected.cost.total_variation);
  compare(emitted.cost.deferral, expected.cost.deferral);
  return proven;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_PROOF_H_
