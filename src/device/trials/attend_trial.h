// SPDX-License-Identifier: Apache-2.0
// Trials of attention (trials.h).
#ifndef OUTRIDER_DEVICE_TRIALS_ATTEND_TRIAL_H_
#define OUTRIDER_DEVICE_TRIALS_ATTEND_TRIAL_H_

#include <cstdint>

#include "device/trials/trial.h"
#include "device/trials/trial_numbers.h"
#include "kernels/table.h"

namespace outrider::device {

struct AttendTrialShape {
  int n_heads = 1;
  int n_kv_heads = 1;
  int head_dim = 1;
  int n_keys = 1;     // of the longest row; others read a few less
  int window = 0;     // the most that a row reads; 0: all
  int n_of_tree = 0;  // the row's last positions, which are in other slots
  // A key has an infinity and a value a NaN: these make a head NaN.
  bool has_infinities = false;
  float softcap = 0;  // of scores
  int n_parts = 1;    // of the cache, each with an equal number of heads in a range of its own
};

// Rows that read one text's cache of scattered pages; unwritten slots are NaN.
Trial attend_trial(kernels::KvKind kv, const TrialRows& rows, const AttendTrialShape& shape,
                   std::uint32_t seed);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_ATTEND_TRIAL_H_
