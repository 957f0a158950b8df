// SPDX-License-Identifier: Apache-2.0
// A rule's process by the chain rule alone, and the tokens that speculation emits with the rule, by
// enumeration of every random decision.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_RULE_PROCESS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_RULE_PROCESS_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "speculate/rule.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider::test {

struct RuleTrial {
  Trial trial;                        // first_round_only is ignored
  TableModel* draft_table = nullptr;  // the drafter's model
  // If the drafter is not a table: both models' distributions after the prompt and these tokens.
  std::function<FixedViews(const std::vector<TokenId>&)> views = {};
  const Rule* rule = nullptr;
  // Tokens after the first round come from the rule's process.
  bool first_round_only = false;
};

struct RuleOutcome {
  TextDistribution dist;
  double weight = 0;
  double accepted_in_first_round = 0;
  // Expectations of the statistics over texts.
  RuleCost cost;
  double largest_kl = 0;  // of one text's first tokens, over all that were run
};

// Both models' distributions after a prefix of the trial's prompt and emitted tokens.
inline FixedViews views_behind(const RuleTrial& rule_trial, const std::vector<TokenId>& emitted) {
  if (rule_trial.views) return rule_trial.views(emitted);
  const Trial& trial = rule_trial.trial;
  const Transform transform(trial.sampling, trial.target->config().vocabulary_size);
  std::vector<TokenId> prefix = trial.prompt;
  prefix.insert(prefix.end(), emitted.begin(), emitted.end());
  TokenHistory history;
  history.add_prompt(trial.prompt);
  for (const TokenId token : emitted) history.add_generated(token);
  std::vector<float> target_logits = trial.target->logits(prefix);
  std::vector<float> draft_logits = rule_trial.draft_table->logits(prefix);
  transform.penalise(target_logits, history, {});
  transform.penalise(draft_logits, history, {});
  return views_of(draft_logits, target_logits, transform);
}

// Adds the process after the tokens emitted so far, which have probability `prob` and have cost
// `spent` (for a rule with a budget for the text).
inline void add_rule_process(const RuleTrial& rule_trial, const std::vector<TokenId>& emitted,
                             double prob, double spent, RuleOutcome& outcome) {
  if (static_cast<int>(emitted.size()) == rule_trial.trial.n_tokens) {
    outcome.dist[emitted] += prob;
    outcome.weight += prob;
    return;
  }
  FixedViews views = views_behind(rule_trial, emitted);
  views.spent = spent;
  Distribution dist;
  rule_trial.rule->rule_prob(views, 0, dist);
  const RuleCost cost = cost_of(*rule_trial.rule, views, 0, dist);
  outcome.cost.kl += prob * cost.kl;
  outcome.cost.total_variation += prob * cost.total_variation;
  outcome.cost.deferral += prob * cost.deferral;
  for (std::size_t index = 0; index < dist.ids.size(); ++index) {
    std::vector<TokenId> longer = emitted;
    longer.push_back(dist.ids[index]);
    add_rule_process(rule_trial, longer, prob * dist.probs[index], spent + cost.kl, outcome);
  }
}

inline RuleOutcome rule_process(const RuleTrial& rule_trial) {
  RuleOutcome outcome;
  add_rule_process(rule_trial, {}, 1.0, 0.0, outcome);
  return outcome;
}

// Runs the production loop with the drafter and the acceptance under test. The rule's process after
// the emitted tokens is added at the end, so `views` may use what the runs have recorded.
inline RuleOutcome enumerate_rule(const RuleTrial& rule_trial) {
  struct Run {
    double weight = 0;
    double kl = 0;
  };
  const Trial& trial = rule_trial.trial;
  RuleOutcome outcome;
  std::map<std::vector<TokenId>, std::vector<Run>> runs;
  EnumeratingChance chance;
  Decoder decoder(*trial.target, trial.drafter, *trial.acceptance,
                  trial.shape ? trial.shape : chain_shape(trial.draft_length), trial.stop);
  chance.for_each_path([&] {
    Stream stream(0, trial.prompt,
                  Transform(trial.sampling, trial.target->config().vocabulary_size), chance);
    stream.encoder_tokens = trial.encoder_tokens;
    stream.max_total = stream.n_prompt + trial.n_tokens;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    const CommitFunction go_on = [](Stream&, const Committed&) { return false; };
    decoder.round(streams, go_on);
    const auto accepted = static_cast<double>(stream.verdict.path.size());
    while (!stream.finished && !rule_trial.first_round_only) decoder.round(streams, go_on);
    decoder.end(stream);
    outcome.accepted_in_first_round += chance.weight() * accepted;
    const RuleCost& cost = stream.counts.rule_cost;
    outcome.largest_kl = std::max(outcome.largest_kl, cost.kl);
    outcome.cost.kl += chance.weight() * cost.kl;
    outcome.cost.total_variation += chance.weight() * cost.total_variation;
    outcome.cost.deferral += chance.weight() * cost.deferral;
    const std::vector<TokenId> emitted(stream.tokens.begin() + stream.n_prompt,
                                       stream.tokens.end());
    runs[emitted].push_back({.weight = chance.weight(), .kl = cost.kl});
  });
  for (const auto& [emitted, same] : runs) {
    for (const Run& run : same) {
      add_rule_process(rule_trial, emitted, run.weight, run.kl, outcome);
    }
  }
  return outcome;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_RULE_PROCESS_H_
