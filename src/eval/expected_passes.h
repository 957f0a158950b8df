// How many passes of the target speculation would take along a text.
#ifndef OUTRIDER_EVAL_EXPECTED_PASSES_H_
#define OUTRIDER_EVAL_EXPECTED_PASSES_H_

#include <span>

namespace outrider::eval {

// acceptance[i] is the chance that a token drafted for position i of a text stands, given the text
// before it: the sum over v of min(rule_prob(v), draft_prob(v)). Drafts are chains of `length`, or
// of what the text leaves room for.
//
// A round that begins at position i emits m tokens if m - 1 drafted ones stand and the next does
// not (or the draft has ended): with probability
//   acceptance[i] ... acceptance[i + m - 2] (1 - acceptance[i + m - 1]),
// the last factor left out at the draft's end; the next round begins at i + m. The expected number
// of rounds is the sum over positions of the chance that a round begins there. It is exact for the
// numbers given: positions are taken in their own order, hard ones next to hard ones, and rounds
// begin where rounds begin, not at a place drawn at random.
//
// What it is not: the passes of a generation. There, the tokens that stand are the rule's own
// choice and lead to other positions than the given text's. O(n length).
double expected_passes(std::span<const double> acceptance, int length);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_EXPECTED_PASSES_H_
