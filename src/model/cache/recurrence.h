// How the state of a recurrent layer goes on by a token: what keeping a pending node does to it.
//
// A pass computes a node from the kept state and the inputs of the node's ancestors; keeping the
// node replays its inputs here. Both take the same steps in the same order, so that what follows
// has the bits of one token a pass. Thread-safe between different states, and between different
// units of one.
#ifndef OUTRIDER_MODEL_CACHE_RECURRENCE_H_
#define OUTRIDER_MODEL_CACHE_RECURRENCE_H_

#include "kernels/table.h"
#include "model/cache/cache_group.h"

namespace outrider {

// Parts of a state that go on by themselves: of a convolution the whole, of a delta rule what
// belongs to one key head, of Mamba-2 to one value head, its group's channels with the first one's.
int n_units(const RecurrentShape& shape);

// inputs (input_width) take the unit's part of state (state_width) on. convolution: the oldest
// inputs make room. delta: likewise in the unit's channels; then its matrices, by
// KernelTable::delta_step, which gives the same bits on every table. mamba: likewise, by
// mamba_step.
void advance(const kernels::KernelTable& table, const RecurrentShape& shape, int unit,
             const float* inputs, float* state);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_RECURRENCE_H_
