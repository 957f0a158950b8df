// SPDX-License-Identifier: Apache-2.0
// The expected number of target passes if speculation had produced a given text.
#ifndef OUTRIDER_EVAL_FRONTIERS_EXPECTED_PASSES_H_
#define OUTRIDER_EVAL_FRONTIERS_EXPECTED_PASSES_H_

#include <span>

namespace outrider::eval {

// acceptance[i] is the probability that a token drafted for position i of a text is accepted, given
// the text before it: the sum over v of min(rule_prob(v), draft_prob(v)). Drafts are chains of
// `length`, or of what the text leaves room for.
//
// A round that begins at position i emits m tokens if m - 1 drafted ones are accepted and the next
// is not (or the draft has ended): with probability
//   acceptance[i] ... acceptance[i + m - 2] (1 - acceptance[i + m - 1]),
// the last factor left out at the draft's end. The next round begins at i + m. The expected number
// of rounds is the sum over positions of the probability that a round begins there. It is exact for
// these numbers: the order of easy and hard positions counts, and rounds begin where rounds end,
// not at random positions.
//
// It is not the number of passes of a generation. There, accepted tokens are chosen by the rule and
// lead to other positions than the given text's. O(n length).
double expected_passes(std::span<const double> acceptance, int length);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_EXPECTED_PASSES_H_
