// SPDX-License-Identifier: Apache-2.0
// Every exact acceptance with drafts that suit it, small enough to enumerate on four tokens.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_ACCEPTANCE_CASES_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_ACCEPTANCE_CASES_H_

#include <memory>
#include <vector>

#include "outrider/sampling.h"
#include "speculate/acceptances/block.h"
#include "speculate/acceptances/coupled.h"
#include "speculate/acceptances/multi_round.h"
#include "speculate/acceptances/traversal.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

namespace outrider::test {

struct AcceptanceCase {
  const char* name;
  std::shared_ptr<const Acceptance> acceptance;
  std::shared_ptr<const TreeShape> shape;
  bool first_round_only = false;  // all rounds would take too long
};

inline std::vector<AcceptanceCase> acceptance_cases() {
  const auto rule = std::make_shared<ExactRule>();
  const auto tree = [](const std::vector<int>& widths, Siblings siblings) {
    return std::make_shared<FixedShape>(widths_tree(widths), siblings);
  };
  return {
      {"exact chain", make_multi_round(rule), chain_shape(3)},
      {"block chain", make_block(rule), chain_shape(3)},
      {"coupled chain", make_coupled(rule), chain_shape(3)},
      {"traversal chain", make_traversal(rule), chain_shape(2)},
      {"exact tree", make_multi_round(rule), tree({2, 1}, Siblings::without_replacement), true},
      {"exact tree of likeliest", make_multi_round(rule), tree({2, 2}, Siblings::top_ranks)},
      {"traversal tree", make_traversal(rule), tree({2, 1}, Siblings::without_replacement), true},
      {"coupled tree", make_coupled(rule), tree({2, 1}, Siblings::without_replacement), true}};
}

// The case on these models. The caller adds masks. `one` must outlive the trial.
inline Trial trial_of(TableModel& target, Drafter& drafter, const AcceptanceCase& one,
                      const SamplingParams& sampling) {
  return {.target = &target,
          .drafter = &drafter,
          .acceptance = one.acceptance.get(),
          .shape = one.shape,
          .sampling = sampling,
          .prompt = {0, 2},
          .n_tokens = one.first_round_only ? 3 : 4,
          .first_round_only = one.first_round_only};
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_ACCEPTANCE_CASES_H_
