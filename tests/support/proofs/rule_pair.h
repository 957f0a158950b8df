// SPDX-License-Identifier: Apache-2.0
// Two tables of logits and a rule between them, for proofs by enumeration.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_RULE_PAIR_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_RULE_PAIR_H_

#include <cstdint>
#include <memory>

#include "outrider/sampling.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/rule.h"
#include "tests/support/models/table_model.h"
#include "tests/support/proofs/rule_process.h"

namespace outrider::test {

struct RulePair {
  explicit RulePair(std::uint32_t seed, int vocabulary = 3)
      : target(vocabulary, 2 * seed),
        draft_table(vocabulary, 2 * seed + 1),
        drafter(std::make_unique<TableModel>(vocabulary, 2 * seed + 1), vocabulary) {}
  TableModel target;
  TableModel draft_table;
  ModelDrafter drafter;
};

inline RuleTrial trial_of(RulePair& pair, const Rule& rule, const Acceptance& acceptance,
                          int length, const SamplingParams& sampling) {
  return {.trial = {.target = &pair.target,
                    .drafter = &pair.drafter,
                    .acceptance = &acceptance,
                    .draft_length = length,
                    .sampling = sampling,
                    .prompt = {0, 2},
                    .n_tokens = 3},
          .draft_table = &pair.draft_table,
          .rule = &rule};
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_RULE_PAIR_H_
