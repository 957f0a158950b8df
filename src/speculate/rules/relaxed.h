// Relaxed acceptance while the model thinks: between two marks of the text (<think> and </think>),
// a token is acceptable if the target has it among its `top` likeliest, within `delta` of the
// first,
//   rule_prob(v) = draft_prob(v) of acceptable v + target_prob(v) eta,   eta the mass of the
//   others, acceptable: target(v) > max target - delta,  target(v) >= the top-th largest,
// with this decided on raw distributions and the transformed ones interleaved. Elsewhere
// rule_prob = target_prob, to the last bit: outside the marks, where no mark ever comes, and at
// delta = 0, which nothing exceeds. Whether a position lies between the marks is said by the tokens
// before it, those of the prompt among them: the marks themselves are one token each. The closing
// one is judged as what it stands in; behind it the target's law holds.
//
// At temperature 0 this is what its source does with a drafted token: it stands if it is
// acceptable, else the target's likeliest token is emitted. Without `top` it is token-v2
// (token_specific.h).
//
// Source: TensorRT-LLM's relaxed acceptance for DeepSeek R1 ("DeepSeek R1 MTP Implementation and
// Optimization", the engine's technical blog, 2025). There, tokens at the bound itself stand, too.
#ifndef OUTRIDER_SPECULATE_RULES_RELAXED_H_
#define OUTRIDER_SPECULATE_RULES_RELAXED_H_

#include "outrider/types.h"
#include "speculate/rules/cascade_rule.h"

namespace outrider {

// kNoToken: a rule that is made to be looked at, for a vocabulary that nobody knows yet.
struct ThinkingMarks {
  TokenId open = kNoToken;
  TokenId close = kNoToken;
};

class RelaxedRule final : public CascadeRule {
 public:
  // Published settings are 10; what lies behind the 64th is never within a delta that is of use.
  static constexpr int kMostTop = 64;

  // 1 <= top <= kMostTop, 0 <= delta <= 1.
  RelaxedRule(int top, double delta, const ThinkingMarks& marks)
      : top_(top), delta_(delta), marks_(marks) {}
  const char* name() const override { return "relaxed"; }

 private:
  // The least that a raw target probability has to be.
  struct Bar {
    const Distribution* target = nullptr;  // null: nothing is acceptable
    double above = 0;
    double least = 0;
    bool refuses(TokenId token) const {
      if (target == nullptr) return true;
      const double prob = target->prob(token);
      return !(prob > above && prob >= least);
    }
  };
  Bar bar(NodeViews& views, int node) const;

  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const override;
  double deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                        const Distribution& rule_prob) const override;

  int top_;
  double delta_;
  ThinkingMarks marks_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_RELAXED_H_
