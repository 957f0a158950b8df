// SPDX-License-Identifier: Apache-2.0
// Makes the parts of the decode loop from the user's specs.
#ifndef OUTRIDER_ENGINE_SPECULATION_H_
#define OUTRIDER_ENGINE_SPECULATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/drafting/drafter_updates.h"
#include "model/language_model.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Ends a draft after the first token whose raw probability falls below a threshold.
class ConfidenceStop final : public StopRule {
 public:
  explicit ConfidenceStop(double threshold) : threshold_(threshold) {}
  bool stop_after(TokenId, double raw_prob) const override { return raw_prob < threshold_; }

 private:
  double threshold_;
};

struct Speculation {
  std::shared_ptr<Drafter> drafter;       // null: plain decoding
  std::optional<DrafterUpdates> updates;  // if the spec names a place for updates
  std::unique_ptr<Acceptance> acceptance;
  std::unique_ptr<StopRule> stop;  // may be null
  std::shared_ptr<const TreeShape> shape;
  std::string rule = "exact";  // its name
  RuleScope scope = RuleScope::prefix;
  bool adaptive = false;  // SpeculationOptions::adaptive
};

// Throws UsageError for invalid specs, and Error for drafters that do not load or do not fit the
// target.
Speculation make_speculation(const Model& target, const SpeculationOptions& options);

// The same, but with the drafter of another speculation with the same drafter spec, and own_shape,
// the shape of that drafter without a tree; composite drafters recognise it. The tokenizer is the
// target's.
Speculation make_speculation(const Tokenizer& tokenizer, const SpeculationOptions& options,
                             std::shared_ptr<Drafter> drafter,
                             const std::shared_ptr<const TreeShape>& own_shape);

// The model of a drafter "model:PATH", checked against the target's vocabulary. Throws UsageError
// for other drafters and for one with updates, which is not one model; Error for a model that does
// not load or does not fit.
std::unique_ptr<LanguageModel> load_drafter_model(const Model& target,
                                                  const SpeculationOptions& options);
// The number of parameters of the model of a drafter "model:PATH", with any vocabulary. Throws
// Error if it does not load.
std::int64_t n_drafter_parameters(const SpeculationOptions& options);

// What drafters for this target are made from; the target must outlive it.
DrafterMaterials drafter_materials(const Model& target, const LoadOptions& load);

// Converts ModelOptions to LoadOptions. Throws UsageError with the known values.
struct LoadOptions make_load_options(const ModelOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_SPECULATION_H_
