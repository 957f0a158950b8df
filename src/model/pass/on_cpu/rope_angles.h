// SPDX-License-Identifier: Apache-2.0
// The angles by which RoPE rotates the rows of a pass.
#ifndef OUTRIDER_MODEL_PASS_ON_CPU_ROPE_ANGLES_H_
#define OUTRIDER_MODEL_PASS_ON_CPU_ROPE_ANGLES_H_

#include "model/config.h"
#include "model/pass/pass_plan.h"

namespace outrider {

// For a row at its position: the cosine and sine of each pair, as many as the table has
// frequencies.
void rope_angles(const RopeTable& rope, const PassRow& row, float* cosines, float* sines);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_CPU_ROPE_ANGLES_H_
