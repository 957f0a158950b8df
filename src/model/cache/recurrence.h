// SPDX-License-Identifier: Apache-2.0
// Advances the state of a recurrent layer by one token, when a pending node is kept.
//
// A pass computes a node from the kept state and the inputs of the node's ancestors; keeping the
// node replays its inputs here. Both take the same steps in the same order, so later results have
// the bits of one token a pass. Thread-safe between different states, and between different units
// of one state.
#ifndef OUTRIDER_MODEL_CACHE_RECURRENCE_H_
#define OUTRIDER_MODEL_CACHE_RECURRENCE_H_

#include "kernels/table.h"
#include "model/cache/cache_group.h"

namespace outrider {

// The number of parts of a state that advance independently. convolution: one, the whole. delta:
// one for each key head. mamba: one for each value head; the channels of its group belong to the
// group's first head.
int n_units(const RecurrentShape& shape);

// Advances a unit's part of state (state_width) by inputs (input_width). convolution: replaces the
// oldest inputs. delta: the same in the unit's channels, then its matrices by
// KernelTable::delta_step, which gives the same bits on every table. mamba: the same, by
// mamba_step.
void advance(const kernels::KernelTable& table, const RecurrentShape& shape, int unit,
             const float* inputs, float* state);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_RECURRENCE_H_
