// SPDX-License-Identifier: Apache-2.0
// Sequential cascades: the baselines for speculation with a rule. The same two models write one
// text without drafts: each token is drawn before the next is computed.
//
//   token:chow,alpha=A[,loss=log]
//             The drafter writes. Where it is not confident enough (Chow's rule, which uses the
//             drafter alone) the target runs and its token is taken. One pass of the target for
//             each deferral, over all tokens that it has not run yet.
//   oracle:RULE,...
//             Both models run at every position, and the token is drawn from rule_prob: the cost of
//             a rule that uses both, without speculation. One pass of the target for each token.
//   sequence:chow,alpha=A[,loss=log]
//             The drafter writes the whole text. If it was not confident enough on average, the
//             target writes the text again. The drafter's doubt is the mean of -log draft(v) over
//             the tokens v that it wrote, raw. The target's text is taken if
//               exp(-doubt) < 1 - A,   or, with loss=log,   doubt > A.
//
// token and oracle have the same distribution as speculation with the same rule: each position's
// rule_prob given the text before it.
//
// Sources: Narasimhan et al. 2024, algorithms 2 (token) and 3 (oracle), and the baselines of their
// experiments. The mean over a sequence is from Gupta et al., "Language Model Cascades: Token-level
// uncertainty and beyond" (2024), since the former do not specify it.
#ifndef OUTRIDER_EVAL_FRONTIERS_SEQUENTIAL_CASCADE_H_
#define OUTRIDER_EVAL_FRONTIERS_SEQUENTIAL_CASCADE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "sampling/chance.h"
#include "sampling/transform.h"
#include "speculate/rule.h"

namespace outrider::eval {

struct SequentialText {
  std::vector<TokenId> ids;         // generated ones
  std::int64_t target_passes = 0;   // without the prompt's
  std::int64_t drafter_passes = 0;  // without the prompt's
  RuleCost cost;  // summed over ids; for a token or sequence cascade only the deferral is known
  bool cancelled = false;
  double second_prompt_seconds = 0;  // running the prompt again, for a sequence cascade's target
};

// The inputs of a text.
struct SequentialJob {
  std::span<const TokenId> prompt;  // at least one token, fewer than the target's context
  std::span<const TokenId> encoder_prompt = {};  // for encoder-decoders: the input of both encoders
  int max_tokens = 0;
  const Transform* transform = nullptr;
  Chance* chance = nullptr;
  // Called when a text begins (a sequence cascade may write two). Returns a function that is called
  // after each token and says whether the text ends. Empty: no token ends a text.
  std::function<std::function<bool(TokenId)>()> ending = {};
  std::function<bool()> cancelled = {};  // called before each token; empty: never cancelled
};

// Not thread-safe.
class SequentialCascade {
 public:
  // The models must outlive this object. Throws UsageError for an invalid spec.
  SequentialCascade(LanguageModel& target, LanguageModel& drafter, const std::string& spec);
  ~SequentialCascade();

  // Whether it requires temperature 0.
  bool greedy() const;

  // A text ends as a generated one does: by `ending`, at max_tokens or at the end of the target's
  // context. Where the drafter cannot continue (its context is full, or a token is not in its
  // vocabulary) the target does.
  SequentialText generate(const SequentialJob& job);

 private:
  class Reader;
  class Views;
  SequentialText write_together(const SequentialJob& job);
  SequentialText write_in_turn(const SequentialJob& job);

  LanguageModel* target_;
  LanguageModel* drafter_;
  std::shared_ptr<const Rule> rule_;
  bool whole_ = false;       // sequence
  bool knows_cost_ = false;  // oracle
  double alpha_ = 0;
  bool log_loss_ = false;
};

// Throws what the constructor would, without any model.
void check_cascade(const std::string& spec);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_SEQUENTIAL_CASCADE_H_
