// Sequential cascades: the baselines that speculation with a rule is measured against. The same two
// models write one text, but nobody drafts: a token is drawn, then the next is thought of.
//
//   token:chow,alpha=A[,loss=log]
//             The drafter writes; where it is not sure enough (Chow's rule, which looks at it
//             alone) the target runs and its token is taken. A pass of the target a deferral, over
//             all tokens that it has not seen yet.
//   oracle:RULE,...
//             Both models run at every position, and the token is drawn from rule_prob: what a rule
//             that looks at both costs without speculation. A pass of the target a token.
//   sequence:chow,alpha=A[,loss=log]
//             The drafter writes the whole text; if it was not sure enough of it on average, the
//             target writes it anew. Its doubt is the mean of -log draft(v) over the tokens v that
//             it wrote, raw: the target's text is taken if
//               exp(-doubt) < 1 - A,   or, with loss=log,   doubt > A.
//
// token and oracle follow the same law as speculation with the same rule: each position's rule_prob
// given the text before it.
//
// Sources: Narasimhan et al. 2024, algorithms 2 (token) and 3 (oracle), and the baselines of their
// experiments; for the mean over a sequence Gupta et al., "Language Model Cascades: Token-level
// uncertainty and beyond" (2024), since the former do not say how theirs is taken.
#ifndef OUTRIDER_EVAL_SEQUENTIAL_CASCADE_H_
#define OUTRIDER_EVAL_SEQUENTIAL_CASCADE_H_

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
  std::int64_t drafter_passes = 0;  // likewise
  RuleCost cost;  // summed over ids; of a token or sequence cascade the deferral alone is known
  bool cancelled = false;
  double second_prompt_seconds = 0;  // reading the prompt again, for a sequence cascade's target
};

// What a text needs besides its prompt.
struct SequentialJob {
  std::span<const TokenId> prompt;  // at least one token, fewer than the target's context
  std::span<const TokenId> encoder_prompt = {};  // of encoder-decoders: what both encoders read
  int max_tokens = 0;
  const Transform* transform = nullptr;
  Chance* chance = nullptr;
  // Called when a text begins (a sequence cascade may write two); what it gives is asked after each
  // token whether that was the last. None: no token ends a text.
  std::function<std::function<bool(TokenId)>()> ending = {};
  std::function<bool()> cancelled = {};  // asked before each token; none: never
};

// Not thread-safe.
class SequentialCascade {
 public:
  // The models outlive this object. Throws UsageError for a spec that cannot be meant.
  SequentialCascade(LanguageModel& target, LanguageModel& drafter, const std::string& spec);
  ~SequentialCascade();

  // Whether it is for temperature 0 alone.
  bool greedy() const;

  // A text ends as a generated one does: by `ending`, at max_tokens or at the end of the target's
  // context. Where the drafter cannot go on (its context is full, or a token is not in its
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

#endif  // OUTRIDER_EVAL_SEQUENTIAL_CASCADE_H_
