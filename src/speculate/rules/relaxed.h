// SPDX-License-Identifier: Apache-2.0
// Relaxed acceptance for reasoning: between two marks of the text (<think> and </think>), a token
// is acceptable if it is among the target's `top` likeliest, within `delta` of the first:
//   rule_prob(v) = draft_prob(v) of acceptable v + target_prob(v) eta,   eta the mass of the
//   others, acceptable: target(v) > max target - delta,  target(v) >= the top-th largest.
// Acceptability is decided on raw distributions; the transformed ones are interleaved. Elsewhere
// rule_prob = target_prob, to the last bit: outside the marks, in texts without marks, and at delta
// = 0, where nothing is acceptable. The tokens before a position, prompt included, decide whether
// it lies between the marks; each mark is one token. The closing mark is judged as part of the
// reasoning; after it the target's distribution holds.
//
// At temperature 0 this matches its source: a drafted token is accepted if it is acceptable, else
// the target's likeliest token is emitted. Without `top` it is token-v2 (token_specific.h).
//
// Source: TensorRT-LLM's relaxed acceptance for DeepSeek R1 ("DeepSeek R1 MTP Implementation and
// Optimization", the engine's technical blog, 2025). There, tokens exactly at the bound are
// accepted, too.
#ifndef OUTRIDER_SPECULATE_RULES_RELAXED_H_
#define OUTRIDER_SPECULATE_RULES_RELAXED_H_

#include "outrider/types.h"
#include "speculate/rules/cascade_rule.h"

namespace outrider {

// kNoToken: for checking a spec without a vocabulary.
struct ThinkingMarks {
  TokenId open = kNoToken;
  TokenId close = kNoToken;
};

class RelaxedRule final : public CascadeRule {
 public:
  // Published settings are 10; a token beyond the 64th is never within a useful delta.
  static constexpr int kMaxTop = 64;

  // 1 <= top <= kMaxTop, 0 <= delta <= 1.
  RelaxedRule(int top, double delta, const ThinkingMarks& marks)
      : top_(top), delta_(delta), marks_(marks) {}
  const char* name() const override { return "relaxed"; }

 private:
  // The bound on a raw target probability.
  struct Bar {
    const Distribution* target = nullptr;  // null: nothing is acceptable
    double above = 0;
    double min_prob = 0;
    bool refuses(TokenId token) const {
      if (target == nullptr) return true;
      const double prob = target->prob(token);
      return !(prob > above && prob >= min_prob);
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
