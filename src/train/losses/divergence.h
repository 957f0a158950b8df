// SPDX-License-Identifier: Apache-2.0
// The divergences for distilling a drafter.
#ifndef OUTRIDER_TRAIN_LOSSES_DIVERGENCE_H_
#define OUTRIDER_TRAIN_LOSSES_DIVERGENCE_H_

namespace outrider::train {

// The divergence of the drafter's distribution d from the target's t. DistillSpec (Zhou et al.
// 2024, section 3 and table 1) compares all of these.
enum class Divergence {
  forward_kl,       // sum t log(t / d)
  reverse_kl,       // sum d log(d / t)
  jensen_shannon,   // half of each to their mean
  total_variation,  // half of sum |t - d|: one minus the expected acceptance
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_DIVERGENCE_H_
