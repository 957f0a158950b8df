// SPDX-License-Identifier: Apache-2.0
// Trials of the steps of row_steps.h.
#ifndef OUTRIDER_DEVICE_TRIALS_ROW_TRIALS_H_
#define OUTRIDER_DEVICE_TRIALS_ROW_TRIALS_H_

#include <cstdint>

#include "device/row_steps.h"
#include "device/trials/trial.h"
#include "device/trials/trial_numbers.h"

namespace outrider::device {

Trial gate_trial(const TrialRows& rows, int n, std::uint32_t seed,
                 GateActivation activation = GateActivation::silu);
Trial activate_trial(const TrialRows& rows, int n, GateActivation activation, std::uint32_t seed);
Trial cap_trial(const TrialRows& rows, int n, float cap, std::uint32_t seed);
// n_pieces of n floats among the columns of wider rows; has_own: each piece has weights of its own.
Trial pieces_trial(const TrialRows& rows, int n_pieces, int n, bool has_own, std::uint32_t seed);
Trial add_trial(const TrialRows& rows, int n, std::uint32_t seed);
// Columns of wider rows: a bias is added, then they are scaled.
Trial columns_trial(const TrialRows& rows, int n, std::uint32_t seed);
// Copies rows to other columns, in order or picked, some of them twice.
Trial copy_trial(const TrialRows& rows, int n, bool picks, std::uint32_t seed);
// Rows of n numbers, including equal ones, zeros of both signs, infinities and NaN. In some rows
// the largest is -infinity or -0; some rows are all NaN.
Trial best_trial(const TrialRows& rows, int n, std::uint32_t seed);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_ROW_TRIALS_H_
