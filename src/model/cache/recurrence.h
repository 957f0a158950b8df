// How the state of a recurrent layer goes on by a token: what keeping a pending node does to it.
//
// A pass computes a node from the kept state and the inputs of the node's ancestors; keeping the
// node replays its inputs here. Both take the same steps in the same order, so that what follows
// has the bits of one token a pass. Thread-safe between different states.
#ifndef OUTRIDER_MODEL_CACHE_RECURRENCE_H_
#define OUTRIDER_MODEL_CACHE_RECURRENCE_H_

#include "model/cache/cache_group.h"

namespace outrider {

// inputs (input_width) take state (state_width) on. convolution: the oldest inputs make room.
void advance(const RecurrentShape& shape, const float* inputs, float* state);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_RECURRENCE_H_
