// Which settings a sampled frontier measures.
#ifndef OUTRIDER_EVAL_FRONTIER_SETTINGS_H_
#define OUTRIDER_EVAL_FRONTIER_SETTINGS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/frontier.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::eval {

// Every rule with drafts of every length, and every sequential cascade ("token:chow,oracle:diff",
// as in eval/sequential_cascade.h; without alpha they take those of `alphas`, or their rule's own
// range), behind every transform. What is for temperature 0 alone is left out elsewhere. Throws
// UsageError for what cannot be meant and for what fits none of the transforms.
std::vector<FrontierSetting> frontier_settings(std::span<const RuleSetting> rules,
                                               std::string_view cascades,
                                               std::span<const double> alphas,
                                               std::span<const int> lengths,
                                               std::span<const SamplingParams> samplings);

// "chow-alpha=0.3-K5-T=1": tells settings apart, and is fit for a file's name.
std::string name_of(const FrontierSetting& setting);

// The drafter of `speculation` counts if it is a model. It is loaded for it.
PairSize size_of_pair(const Model& target, const SpeculationOptions& speculation);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIER_SETTINGS_H_
