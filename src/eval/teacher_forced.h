// Rules measured along given texts: one pass of both models over a text says what every rule, at
// every parameter and behind every transform, would emit at each of its positions and how often it
// would reject a draft there. Nothing is sampled.
//
// For a position with the given text's token v and the distributions rule_prob, target_prob and
// draft_prob of the production rules (speculate/rule.h):
//   rejection   1 - sum of min(rule_prob, draft_prob): the chance that a draft token is rejected
//   nll         -log rule_prob(v), nats: how well the emitted law predicts the text; infinite where
//               it cannot emit v
//   hits        rule_prob(v): the share of tokens that would be the text's own; always finite
//   kl, tv      of rule_prob to target_prob, and deferral: what the rule cost (RuleCost)
//   passes      of the target, for drafts of a given length (expected_passes.h)
// Prefixes are the given text's. What generated prefixes would do to these figures is the one thing
// that cannot be seen here.
#ifndef OUTRIDER_EVAL_TEACHER_FORCED_H_
#define OUTRIDER_EVAL_TEACHER_FORCED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/rule_grid.h"
#include "eval/texts.h"
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

// A rule behind a transform, on every text so far.
struct ForcedSetting {
  RuleSetting rule;
  SamplingParams sampling;
  std::vector<ForcedSums> texts = {};
};

struct ForcedOptions {
  std::vector<RuleSetting> rules;
  std::vector<SamplingParams> samplings;  // temperature and truncation; penalties are refused
  std::vector<int> lengths = {};          // of drafts, each from 1 to kMostDraftNodes
  int n_threads = 1;                      // of the rules; the models have their own
};

// Throws UsageError for what cannot be meant, without any model: lengths out of range; a transform
// out of its range or with penalties; typical and bild, which follow no rule; a rule that fits none
// of the transforms.
void check_forced(const ForcedOptions& options);

class TeacherForced {
 public:
  // Makes the rules. Those for temperature 0 alone are left out at other temperatures. The models
  // outlive this object. Throws as check_forced does.
  TeacherForced(LanguageModel& target, LanguageModel& drafter, const ForcedOptions& options);
  ~TeacherForced();

  // Runs both models over the windows of one text, in order, and every rule over its positions.
  // Where the drafter has no distribution (a token in the window that it does not know, a context
  // shorter than the window) the rule does what it does without one, and a draft counts as
  // rejected. Throws Error if a window is longer than the target's context, and on logits that are
  // no numbers. `progress`, if given, is called between passes and after some positions at a time
  // with how many of the text's are done; what it throws ends the measurement, which is then not to
  // be used.
  using Progress = std::function<void(std::int64_t n_positions)>;
  void add_text(std::span<const Window> windows, const Progress& progress = {});

  std::span<const ForcedSetting> settings() const { return settings_; }
  std::span<const int> lengths() const { return lengths_; }

 private:
  struct Laws;
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
  std::unique_ptr<Laws> laws_;                      // of some positions at a time
  int n_drafted_ = 0;  // positions of the window that the drafter has distributions for
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TEACHER_FORCED_H_
