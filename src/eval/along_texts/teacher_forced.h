// SPDX-License-Identifier: Apache-2.0
// Measures rules along given texts. One pass of both models over a text gives, for every rule,
// parameter and transform, the emitted distribution at each position and the rejection rate of a
// draft there. Nothing is sampled.
//
// For a position with the given text's token v and the distributions rule_prob, target_prob and
// draft_prob of the production rules (speculate/rule.h):
//   rejection   1 - sum of min(rule_prob, draft_prob): the probability that a draft is rejected
//   nll         -log rule_prob(v), nats: how well the emitted distribution predicts the text;
//               infinite if it cannot emit v
//   hits        rule_prob(v): the share of tokens that would be the text's own; always finite
//   kl, tv      of rule_prob to target_prob, and deferral: the cost of the rule (RuleCost)
//   passes      of the target, for drafts of a given length (expected_passes.h)
// Prefixes are the given text's. The effect of generated prefixes cannot be measured here.
#ifndef OUTRIDER_EVAL_ALONG_TEXTS_TEACHER_FORCED_H_
#define OUTRIDER_EVAL_ALONG_TEXTS_TEACHER_FORCED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/along_texts/texts.h"
#include "eval/frontiers/rule_grid.h"
#include "model/language_model.h"
#include "outrider/sampling.h"
#include "sampling/transform.h"
#include "speculate/rule.h"

namespace outrider::eval {

// Sums over the positions of one text.
struct ForcedSums {
  std::int64_t n_tokens = 0;
  double rejection = 0;
  double nll = 0;
  double hits = 0;
  double kl = 0;
  double tv = 0;
  double deferral = 0;
  std::vector<double> passes = {};  // of each length
};

// A rule with a transform, over every text so far.
struct ForcedSetting {
  RuleSetting rule;
  SamplingParams sampling;
  std::vector<ForcedSums> texts = {};
};

struct ForcedOptions {
  std::vector<RuleSetting> rules;
  std::vector<SamplingParams> samplings;  // temperature and truncation; penalties are refused
  std::vector<int> lengths = {};          // of drafts, each from 1 to kMaxDraftNodes
  int n_threads = 1;                      // of the rules; the models have their own
};

// Checks options without a model. Throws UsageError for lengths out of range and for a transform
// out of its range or with penalties. It also throws for typical and bild, which follow no rule,
// and for a rule that fits none of the transforms.
void check_forced(const ForcedOptions& options);

class TeacherForced {
 public:
  // Makes the rules. Rules for temperature 0 only are left out at other temperatures. The models
  // must outlive this object. Throws as check_forced does.
  TeacherForced(LanguageModel& target, LanguageModel& drafter, const ForcedOptions& options);
  ~TeacherForced();

  // Runs both models over the windows of one text, in order, and every rule over its positions. The
  // drafter may have no distribution (an unknown token in the window, a context shorter than the
  // window). The rule handles that as usual, and a draft counts as rejected. Throws Error if a
  // window is longer than the target's context, and on NaN logits. `progress`, if given, is called
  // between passes, and after some positions, with the number of the text's positions done; an
  // exception from it ends the measurement, which is unusable then.
  using Progress = std::function<void(std::int64_t n_positions)>;
  void add_text(std::span<const Window> windows, const Progress& progress = {});

  std::span<const ForcedSetting> settings() const { return settings_; }
  std::span<const int> lengths() const { return lengths_; }

 private:
  struct Distributions;
  void run_window(const Window& window, const std::function<void(int)>& add_done);
  void add_positions(const Window& window, int first, int n);

  LanguageModel* target_;
  LanguageModel* drafter_;
  std::vector<Transform> transforms_;
  std::vector<int> lengths_;
  int n_threads_;
  std::vector<ForcedSetting> settings_;
  std::vector<std::shared_ptr<const Rule>> rules_;  // of each setting
  std::vector<std::size_t> transform_of_;           // of each setting
  std::vector<std::vector<double>> acceptance_;     // of each setting, along the text
  std::unique_ptr<Distributions> dists_;            // of some positions at a time
  int n_drafted_ = 0;  // positions of the window with distributions of the drafter
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ALONG_TEXTS_TEACHER_FORCED_H_
