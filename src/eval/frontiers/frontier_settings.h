// SPDX-License-Identifier: Apache-2.0
// The settings that a sampled frontier measures.
#ifndef OUTRIDER_EVAL_FRONTIERS_FRONTIER_SETTINGS_H_
#define OUTRIDER_EVAL_FRONTIERS_FRONTIER_SETTINGS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/frontiers/frontier.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::eval {

// Every rule with drafts of every length, and every sequential cascade, with every transform.
// Cascades are given as "token:chow,oracle:diff" (eval/frontiers/sequential_cascade.h); without
// alpha they take those of `alphas`, or their rule's range. Settings for temperature 0 only are
// left out at other temperatures. Throws UsageError for invalid specs and for those that fit none
// of the transforms.
std::vector<FrontierSetting> frontier_settings(std::span<const RuleSetting> rules,
                                               std::string_view cascades,
                                               std::span<const double> alphas,
                                               std::span<const int> lengths,
                                               std::span<const SamplingParams> samplings);

// "chow-alpha=0.3-K5-T=1": unique for each setting, and usable as a file name.
std::string name_of(const FrontierSetting& setting);

// The drafter of `speculation` counts if it is a model; it is loaded for this.
PairSize size_of_pair(const Model& target, const SpeculationOptions& speculation);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_FRONTIER_SETTINGS_H_
