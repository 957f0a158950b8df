// SPDX-License-Identifier: Apache-2.0
#include "speculate/acceptances/acceptance_kinds.h"

#include <fmt/format.h>

#include <memory>

#include "speculate/acceptances/bild.h"
#include "speculate/acceptances/fly.h"
#include "speculate/acceptances/typical.h"
#include "speculate/rules/rule_words.h"

namespace outrider {
namespace {

// Medusa's default values.
constexpr double kTypicalEpsilon = 0.09;
constexpr double kTypicalDelta = 0.3;
// The value of BiLD's published code for translation.
constexpr double kBildFallback = 0.6;
constexpr double kBildRollback = 5.0;
// Ten times the published values (2 to 6); a larger one is probably a typing error.
constexpr int kLargestWindow = 64;

Verification make_typical(const Spec& spec) {
  const double epsilon = spec.number("epsilon", 0, 1).value_or(kTypicalEpsilon);
  const double delta = spec.number("delta", 0, kLargestNats).value_or(kTypicalDelta);
  return {.acceptance = std::make_unique<Typical>(epsilon, delta), .rule = spec.name()};
}

Verification make_bild(const Spec& spec) {
  const double fallback = spec.number("fallback", 0, 1).value_or(kBildFallback);
  const double rollback = spec.number("rollback", 0, kLargestNats).value_or(kBildRollback);
  return {.acceptance = std::make_unique<Bild>(fallback, rollback),
          .rule = spec.name(),
          .draft_until = fallback};
}

Verification make_fly(const Spec& spec) {
  FlyLimits limits;
  limits.entropy = spec.number("entropy", 0, kLargestNats).value_or(limits.entropy);
  limits.top = spec.integer("top", 1, FlyLimits::kMaxTop).value_or(limits.top);
  limits.window = spec.integer("window", 1, kLargestWindow).value_or(limits.window);
  return {.acceptance = std::make_unique<Fly<FlySteps>>(limits), .rule = spec.name()};
}

RuleKind typical_kind() {
  return {
      .description = {.name = "typical",
                      .form = "typical",
                      .summary = "what the target finds plausible",
                      .needs = kAnyDrafter,
                      .about =
                          "A drafted token stands if the target gives it more than the lesser of "
                          "epsilon and delta * exp(-entropy). The longest such path is kept. What "
                          "stands depends on what was drafted. At temperature 0 it is the target.",
                      .keys = {{.name = "epsilon",
                                .value = "E",
                                .default_value = fmt::format("{}", kTypicalEpsilon),
                                .meaning = "From 0 to 1.",
                                .example = "typical:epsilon=0.1,delta=0.2"},
                               {.name = "delta",
                                .value = "D",
                                .default_value = fmt::format("{}", kTypicalDelta),
                                .meaning = "From 0 to 1000.",
                                .example = "typical:delta=0.2"}},
                      .source = "Cai et al., Medusa (arXiv 2401.10774), section 2.3.1.",
                      .pays =
                          "Where tokens are sampled from a drafter without distributions, and the "
                          "text need not follow the target's.",
                      .example = command_with_rule("typical")},
      .make_acceptance = make_typical};
}

RuleKind bild_kind() {
  return {
      .description =
          {.name = "bild",
           .form = "bild",
           .summary = "temperature 0: the target rolls drafts back",
           .needs = kDistributions,
           .about = "For temperature 0 and chains. The drafter goes on while it is sure and the "
                    "draft is not full. Then the target takes over at the first token that "
                    "surprises it, or behind the last.",
           .keys = {{.name = "fallback",
                     .value = "F",
                     .default_value = fmt::format("{}", kBildFallback),
                     .meaning = "From 0 to 1: the drafter's probability below which it stops.",
                     .example = "bild:fallback=0.3,rollback=2"},
                    {.name = "rollback",
                     .value = "R",
                     .default_value = fmt::format("{}", kBildRollback),
                     .meaning = "From 0 to 1000: -log of the target's probability beyond which it "
                                "takes over.",
                     .example = "bild:rollback=2"}},
           .source = "Kim et al., Speculative Decoding with Big Little Decoder (2023).",
           .pays = "To repeat the paper's measurements.",
           .example = command_with_rule("bild:fallback=0.6,rollback=4")},
      .make_acceptance = make_bild};
}

RuleKind fly_kind() {
  const FlyLimits limits;
  return {
      .description =
          {.name = "fly",
           .form = "fly",
           .summary = "a mismatch stands if the target follows it",
           .needs = kAnyDrafter,
           .about =
               "Drafts are judged by the exact rule. A token that it refuses stands all the "
               "same where the target is unsure and the exact rule lets the tokens behind it "
               "stand, a window of them. The text follows no distribution that could be named.",
           .keys = {{.name = "entropy",
                     .value = "E",
                     .default_value = fmt::format("{}", limits.entropy),
                     .meaning = "From 0 to 1000: the entropy in nats, of the target's likeliest "
                                "tokens alone, from which on it is unsure.",
                     .example = "fly:entropy=0.5,window=4"},
                    {.name = "top",
                     .value = "N",
                     .default_value = fmt::format("{}", limits.top),
                     .meaning = fmt::format("From 1 to {}: of how many tokens the entropy is.",
                                            FlyLimits::kMaxTop),
                     .example = "fly:top=10,window=4"},
                    {.name = "window",
                     .value = "W",
                     .default_value = fmt::format("{}", limits.window),
                     .meaning =
                         fmt::format("From 1 to {}: tokens behind it that have to be accepted. "
                                     "Drafts have to be longer.",
                                     kLargestWindow),
                     .example = "fly:window=4"}},
           .source = "Li et al., Training-Free Loosely Speculative Decoding (arXiv 2511.22972).",
           .pays =
               "With long drafts of a good drafter, where other wordings are acceptable. Measure "
               "what it costs on your own texts first.",
           .example = command_with_rule("fly:window=4")},
      .make_acceptance = make_fly};
}

}  // namespace

std::vector<RuleKind> acceptance_kinds() { return {typical_kind(), bild_kind(), fly_kind()}; }

}  // namespace outrider
