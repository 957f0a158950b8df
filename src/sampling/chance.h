// SPDX-License-Identifier: Apache-2.0
// The interface of all random decisions of drafters and verifier.
//
// Code that decides at random calls a Chance and says what the draw is for (Draw). The product uses
// counter-based noise (counter_chance.h), so that a draw depends on its key alone and never on the
// order of calls. The proof of exactness uses an enumerator that visits every outcome with its
// weight.
#ifndef OUTRIDER_SAMPLING_CHANCE_H_
#define OUTRIDER_SAMPLING_CHANCE_H_

#include <cstdint>

#include "outrider/types.h"
#include "sampling/distribution.h"

namespace outrider {

// What a draw decides. Two draws of one round never share a key, because (node, purpose) differ.
enum class Purpose : std::uint32_t {
  token = 0,     // a token of plain sampling or `coupled`: Gumbel noise keyed by (position, token)
  draft = 1,     // the drafter draws node `node`
  accept = 2,    // whether node `node` is accepted
  residual = 3,  // the token after node `node`, its children rejected
  bonus = 4,     // the token after the accepted leaf `node`
  block = 5,     // block and traversal verification: whether node `node` is accepted
};

struct Draw {
  // For Purpose::token the position of the drawn token, counted from the start of the prompt. For
  // all others the committed length at the start of the round, so that every round has fresh noise.
  std::int64_t position = 0;
  int node = 0;  // the node's ordinal in its tree; 0 for Purpose::token
  Purpose purpose = Purpose::token;
};

class Chance {
 public:
  virtual ~Chance() = default;

  // True with probability prob (clamped to [0, 1]; exactly never at 0, always at 1).
  virtual bool bernoulli(double prob, const Draw& draw) = 0;

  // A token drawn from the distribution. For Purpose::token by the Gumbel-max trick, so that draws
  // from two distributions with one key tend to agree; otherwise by inversion.
  virtual TokenId categorical(const Distribution& distribution, const Draw& draw) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_CHANCE_H_
