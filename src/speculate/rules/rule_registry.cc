// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/rule_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "speculate/acceptances/acceptance_kinds.h"
#include "speculate/rules/bild_sampled.h"
#include "speculate/rules/budget.h"
#include "speculate/rules/chow.h"
#include "speculate/rules/diff.h"
#include "speculate/rules/lenience.h"
#include "speculate/rules/lossy.h"
#include "speculate/rules/lossy_greedy.h"
#include "speculate/rules/opt.h"
#include "speculate/rules/relaxed.h"
#include "speculate/rules/router.h"
#include "speculate/rules/rule_words.h"
#include "speculate/rules/token_specific.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read rule";

// The value with which TensorRT-LLM's authors run DeepSeek R1.
constexpr int kRelaxedTop = 10;
constexpr double kRelaxedDelta = 0.6;
constexpr const char* kThinkOpen = "<think>";
constexpr const char* kThinkClose = "</think>";

constexpr const char* kNarasimhan =
    "Narasimhan et al., Faster Cascades via Speculative Decoding (2024)";
constexpr const char* kLeviathan =
    "Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023)";

[[noreturn]] void refuse_missing(const Spec& spec, std::string_view expected) {
  throw UsageError(kOperation, spec.name(), expected, "none");
}

double required_number(const Spec& spec, std::string_view key, double min, double max) {
  const std::optional<double> value = spec.number(key, min, max);
  if (!value) refuse_missing(spec, fmt::format("{}=, a number from {} to {}", key, min, max));
  return *value;
}

using RulePointer = std::unique_ptr<const Rule>;

RulePointer make_exact(const Spec&) { return std::make_unique<ExactRule>(); }

RulePointer make_lossy(const Spec& spec) {
  if (const auto kl = spec.number("kl", 0, kLargestNats)) {
    for (const char* key : {"alpha", "beta"}) {
      if (!spec.text(key)) continue;
      throw UsageError(kOperation, spec.name(), "kl= alone, which finds alpha and beta itself",
                       fmt::format("{}= beside it", key));
    }
    return std::make_unique<BudgetRule>(KlBudget{.per_token = *kl}, "lossy");
  }
  const double alpha = required_number(spec, "alpha", 0, 1);
  if (alpha == 1)
    throw UsageError(kOperation, "lossy:alpha=1 alpha", "a number from 0 to below 1", "1");
  if (spec.text("beta") == "auto") return std::make_unique<LossyRule>(alpha, std::nullopt);
  // 1 - 0.7 exceeds 0.3 in binary: rounding to a dozen digits restores the intended value.
  const double least = std::min(1.0, std::round((1 - alpha) * 1e12) / 1e12);
  const double beta = spec.number("beta", least, 1).value_or(1.0);
  return std::make_unique<LossyRule>(alpha, std::max(beta, 1 - alpha));
}

RulePointer make_lossy_greedy(const Spec& spec) {
  return std::make_unique<LossyGreedyRule>(required_number(spec, "alpha", -1, 1));
}

// The 0-1 loss is at most 1, so alphas beyond [-1, 1] change nothing; except for opt, whose alpha
// is the price of a rejection.
template <class DeferralByLoss>
RulePointer make_by_loss(const Spec& spec, double largest_for_zero_one) {
  const bool log = spec.choice("loss", {"zero-one", "log"}) == "log";
  const double largest = log ? kLargestNats : largest_for_zero_one;
  return std::make_unique<DeferralByLoss>(required_number(spec, "alpha", -largest, largest),
                                          log ? Loss::log : Loss::zero_one);
}
RulePointer make_chow(const Spec& spec) { return make_by_loss<ChowRule>(spec, 1); }
RulePointer make_diff(const Spec& spec) { return make_by_loss<DiffRule>(spec, 1); }
RulePointer make_opt(const Spec& spec) { return make_by_loss<OptRule>(spec, kLargestNats); }

template <TokenSpecificRule::Variant variant>
RulePointer make_token(const Spec& spec) {
  return std::make_unique<TokenSpecificRule>(variant, required_number(spec, "alpha", -1, 1));
}

RulePointer make_bild_sampled(const Spec& spec) {
  using Distance = BildSampledRule::Distance;
  const double alpha = required_number(spec, "alpha", 0, kLargestNats);
  const auto name = spec.choice("distance", {"surprise", "tv", "kl", "js"});
  Distance distance = Distance::surprise;
  if (name == "tv") distance = Distance::total_variation;
  if (name == "kl") distance = Distance::kl;
  if (name == "js") distance = Distance::jensen_shannon;
  return std::make_unique<BildSampledRule>(alpha, distance);
}

RulePointer make_lenience(const Spec& spec) {
  using Function = LenienceRule::Function;
  // At 1e-6 every token that a float32 softmax can tell from 0 is accepted.
  const double eps = required_number(spec, "eps", 1e-6, 1);
  const auto name = spec.choice("f", {"linear", "square", "exp"});
  Function function = Function::linear;
  if (name == "square") function = Function::square;
  if (name == "exp") function = Function::exp;
  return std::make_unique<LenienceRule>(function, eps);
}

RulePointer make_budget(const Spec& spec) {
  KlBudget budget;
  const auto per_token = spec.number("kl", 0, kLargestNats);
  const auto per_text = spec.number("total", 0, 1e9);
  if (!per_token && !per_text) refuse_missing(spec, "kl= (nats per token) or total= (per text)");
  if (per_token) budget.per_token = *per_token;
  if (per_text) budget.per_text = *per_text;
  return std::make_unique<BudgetRule>(budget);
}

RulePointer make_router(const Spec& spec) {
  const auto path = spec.text("path");
  if (!path || path->empty())
    refuse_missing(spec, "path=, a router's JSON file or the folder of its router.json");
  const auto threshold = spec.number("threshold", 0, 1);
  std::filesystem::path file = *path;
  std::error_code ignored;  // reading it reports the error
  if (std::filesystem::is_directory(file, ignored)) file /= "router.json";
  RouterWeights weights = read_router(file);
  if (threshold) weights.threshold = *threshold;
  return std::make_unique<RouterRule>(weights);
}

RulePointer make_relaxed(const Spec& spec, const FindToken& find) {
  const int top = spec.integer("top", 1, RelaxedRule::kMaxTop).value_or(kRelaxedTop);
  const double delta = spec.number("delta", 0, 1).value_or(kRelaxedDelta);
  const std::string open = spec.text("open").value_or(kThinkOpen);
  const std::string close = spec.text("close").value_or(kThinkClose);
  if (open.empty() || close.empty() || open == close) {
    throw UsageError(kOperation, spec.name(),
                     "two tokens, open= and close=", fmt::format("\"{}\" and \"{}\"", open, close));
  }
  if (!find) return std::make_unique<RelaxedRule>(top, delta, ThinkingMarks{});
  const ThinkingMarks marks{.open = find(open).value_or(kNoToken),
                            .close = find(close).value_or(kNoToken)};
  if (marks.open == kNoToken || marks.close == kNoToken) {
    throw UsageError(
        kOperation, spec.name(),
        fmt::format("a vocabulary with the tokens {} and {} (open= and close= name others)", open,
                    close),
        fmt::format("one without {}", marks.open == kNoToken ? open : close));
  }
  return std::make_unique<RelaxedRule>(top, delta, marks);
}

// A key shared by several kinds. example: a spec that gives the key.
KeyDescription alpha_key(std::string meaning, std::string example) {
  return {
      .name = "alpha", .value = "A", .meaning = std::move(meaning), .example = std::move(example)};
}

KeyDescription loss_key(std::string example) {
  return {.name = "loss",
          .value = "zero-one|log",
          .default_value = "zero-one",
          .meaning =
              "How sure a model is: zero-one by its largest probability, log by its "
              "entropy in nats.",
          .example = std::move(example)};
}

KeyDescription bonus_key(std::string example, bool target_bonus = false) {
  return {.name = "bonus",
          .value = "rule|target",
          .default_value = target_bonus ? "target" : "rule",
          .meaning =
              "What the token behind a draft accepted whole is drawn from. target saves a "
              "step of the drafter; the text then depends on where drafts end.",
          .example = std::move(example)};
}

RuleKind exact_kind() {
  return {.description = {.name = "exact",
                          .form = "exact",
                          .summary = "the target's own distribution (default)",
                          .needs = kAnyDrafter,
                          .about = "Drafts decide how fast the text comes and nothing else. At "
                                   "temperature 0 the text is that of plain decoding.",
                          .source = kLeviathan,
                          .pays = "Wherever the text has to be the target's.",
                          .example = command_with_rule("exact")},
          .make = make_exact};
}

RuleKind chow_kind() {
  return {
      .description =
          {.name = "chow",
           .form = "chow:alpha=A",
           .summary = "the target where the drafter is unsure",
           .needs = kDistributions,
           .about = "Emits the target's distribution where the drafter's largest probability is "
                    "below 1 - A, else the drafter's. A sequential cascade could follow this rule, "
                    "too.",
           .keys = {alpha_key("From -1 to 1; with loss=log from -1000 to 1000. Below 0 it is the "
                              "target, at 1 the drafter.",
                              "chow:alpha=0.5"),
                    loss_key("chow:alpha=0.5,loss=log"), bonus_key("chow:alpha=0.5,bonus=target")},
           .source = fmt::format("Chow, On Optimum Recognition Error and Reject Tradeoff (1970); "
                                 "{}, eq. 2.",
                                 kNarasimhan),
           .pays = "As a baseline: the rules below also look at the target.",
           .example = command_with_rule("chow:alpha=0.5")},
      .make = make_chow};
}

RuleKind diff_kind() {
  return {
      .description =
          {.name = "diff",
           .form = "diff:alpha=A",
           .summary = "the target where it is surer by more than A",
           .needs = kDistributions,
           .about = "Emits the target's distribution where its largest probability exceeds the "
                    "drafter's by more than A, else the drafter's.",
           .keys = {alpha_key("From -1 to 1; with loss=log from -1000 to 1000. At -1 it is "
                              "the target, at 1 the drafter.",
                              "diff:alpha=0.1"),
                    loss_key("diff:alpha=0.5,loss=log"), bonus_key("diff:alpha=0.1,bonus=target")},
           .source = fmt::format("{}, eq. 5.", kNarasimhan),
           .pays = "Near temperature 0 it was among the best on the translation pair of "
                   "docs/cascades.md, within the noise.",
           .example = command_with_rule("diff:alpha=0.1")},
      .make = make_diff};
}

RuleKind opt_kind() {
  return {
      .description =
          {.name = "opt",
           .form = "opt:alpha=A",
           .summary = "diff, with the cost of rejections",
           .needs = kDistributions,
           .about = "As diff, but the target has to be surer by A times the total variation of "
                    "the two distributions. Deferring is cheap where the two agree. At "
                    "temperature 0 it emits what diff does.",
           .keys = {alpha_key("The price of a rejection, from -1000 to 1000.", "opt:alpha=0.3"),
                    loss_key("opt:alpha=0.3,loss=log"), bonus_key("opt:alpha=0.3,bonus=target")},
           .source = fmt::format("{}, lemma 4.", kNarasimhan),
           .pays = "Where few rejections count: long drafts, or a slow target.",
           .example = command_with_rule("opt:alpha=0.3")},
      .make = make_opt};
}

// condition: which tokens the rule rejects.
RuleKind token_kind(const std::string& name, std::string summary, std::string_view condition,
                    std::string alpha, std::string pays) {
  const std::string spec = name + ":alpha=0.3";
  RuleKind kind{
      .description = {
          .name = name,
          .form = name + ":alpha=A",
          .summary = std::move(summary),
          .needs = kDistributions,
          .about = fmt::format("Decides token by token. Tokens that it takes keep the drafter's "
                               "probability; the probability of the others goes to the target's "
                               "distribution. It refuses a token {}.",
                               condition),
          .keys = {alpha_key(std::move(alpha), spec), bonus_key(spec + ",bonus=target")},
          .source = fmt::format("{}, eqs. 13 to 15.", kNarasimhan),
          .pays = std::move(pays),
          .example = command_with_rule(spec)}};
  return kind;
}

RuleKind token_v1_kind() {
  RuleKind kind = token_kind("token-v1", "what the drafter itself finds likely",
                             "to which the drafter gives less than the target's largest "
                             "probability less A",
                             "From -1 to 1. At -1 it is the target, at 1 the drafter.",
                             "Near temperature 0, with diff and opt.");
  kind.make = make_token<TokenSpecificRule::Variant::v1>;
  return kind;
}

RuleKind token_v2_kind() {
  RuleKind kind = token_kind("token-v2", "what is within A of the target's best",
                             "to which the target gives less than its largest probability less A",
                             "From -1 to 1. Below 0 it is the target, at 1 the drafter.",
                             "Where tokens are sampled, for few passes of the target at a quality "
                             "not below its own.");
  kind.make = make_token<TokenSpecificRule::Variant::v2>;
  return kind;
}

RuleKind token_v3_kind() {
  RuleKind kind = token_kind("token-v3", "what has a share of the target's best",
                             "to which the target gives less than 1 - A times its largest "
                             "probability",
                             "From -1 to 1. Below 0 it is the target, at 1 the drafter.",
                             "To begin with: token-v3:alpha=0.3. Raise alpha for speed, lower it "
                             "for fidelity.");
  kind.make = make_token<TokenSpecificRule::Variant::v3>;
  return kind;
}

RuleKind lossy_kind() {
  return {
      .description =
          {.name = "lossy",
           .form = "lossy:alpha=A",
           .summary = "drafts accepted 1 / (1 - A) times as often",
           .needs = kDistributions,
           .about = "A drafted token stands with probability min(1, t / ((1 - A) d)), where d and "
                    "t are what drafter and target give it. At temperature 0 it is the target.",
           .keys = {alpha_key("From 0 to below 1. At 0 it is the target.", "lossy:alpha=0.3"),
                    {.name = "beta",
                     .value = "B|auto",
                     .default_value = "1",
                     .meaning = "What replaces a rejected token: max(0, t / B - d), normalised. B "
                                "is from 1 - A to 1. auto finds the distribution nearest to the "
                                "target.",
                     .example = "lossy:alpha=0.3,beta=auto"},
                    {.name = "kl",
                     .value = "D",
                     .meaning = "In the place of alpha and beta, which are then solved for: nats "
                                "of divergence at each position, at most.",
                     .example = "lossy:kl=0.1"},
                    bonus_key("lossy:alpha=0.3,bonus=target")},
           .source = fmt::format("Tran-Thien, An Optimal Lossy Variant of Speculative Decoding "
                                 "(2023); {}, lemma 2.",
                                 kNarasimhan),
           .pays = "At temperature 1, where the text should stay near the target for the speed it "
                   "gives.",
           .example = command_with_rule("lossy:alpha=0.3")},
      .make = make_lossy};
}

RuleKind lossy_greedy_kind() {
  return {
      .description =
          {.name = "lossy-greedy",
           .form = "lossy-greedy:alpha=A",
           .summary = "temperature 0: what is nearly the likeliest",
           .needs = kDistributions,
           .about = "For temperature 0. The drafter's token stands if the target gives it at "
                    "least 1 - A times its largest probability.",
           .keys = {alpha_key("From -1 to 1. Below 0 it is the target.", "lossy-greedy:alpha=0.3"),
                    bonus_key("lossy-greedy:alpha=0.3,bonus=rule", true)},
           .source = fmt::format("{}, appendix A.5.", kLeviathan),
           .pays = "At temperature 0, as token-v3 but without its further step of the drafter.",
           .example = command_with_rule("lossy-greedy:alpha=0.3")},
      .make = make_lossy_greedy,
      .target_bonus = true};
}

RuleKind lenience_kind() {
  return {
      .description =
          {.name = "lenience",
           .form = "lenience:eps=E",
           .summary = "drafts accepted by f(target) / drafter",
           .needs = kDistributions,
           .about = "A drafted token stands with probability min(1, f(t) / d), where d and t are "
                    "what drafter and target give it. linear is lossy with A = 1 - E.",
           .keys = {{.name = "f",
                     .value = "linear|square|exp",
                     .default_value = "linear",
                     .meaning = "t / E, t / (E * E) or t to the power of E.",
                     .example = "lenience:f=exp,eps=0.5"},
                    {.name = "eps",
                     .value = "E",
                     .meaning = "From 0.000001 to 1. At 1 it is the target.",
                     .example = "lenience:eps=0.5"},
                    bonus_key("lenience:eps=0.5,bonus=target")},
           .source = fmt::format("{}; Zhou et al., DistillSpec (2024).", kLeviathan),
           .pays = "To repeat what these papers measured.",
           .example = command_with_rule("lenience:eps=0.5")},
      .make = make_lenience};
}

RuleKind budget_kind() {
  return {
      .description =
          {.name = "budget",
           .form = "budget:kl=D",
           .summary = "fewest rejections within D nats a token",
           .needs = kDistributions,
           .about = "Of all distributions whose divergence from the target is within the budget, "
                    "emits the one that rejects least. Both caps hold for every text. At "
                    "temperature 0 it is the target.",
           .keys = {{.name = "kl",
                     .value = "D",
                     .meaning =
                         "Nats of divergence at each position, at most. This, total or both.",
                     .example = "budget:kl=0.1"},
                    {.name = "total",
                     .value = "D",
                     .meaning = "Nats over the whole text, at most. When they are spent the rest "
                                "of the text is the target's.",
                     .example = "budget:total=3"},
                    bonus_key("budget:kl=0.1,bonus=target")},
           .source = "The cap per token: Tran-Thien (2023). The derivation and the cap per text: "
                     "this project (src/speculate/rules/budget.h).",
           .pays = "Where you have to say how far a text may stray. It sorts tokens at each "
                   "position; with a large vocabulary give a top-k.",
           .example = command_with_rule("budget:total=3")},
      .make = make_budget};
}

RuleKind bild_sampled_kind() {
  return {.description =
              {.name = "bild-sampled",
               .form = "bild-sampled:alpha=A",
               .summary = "the target where the models lie apart",
               .needs = kDistributions,
               .about = "Emits the target's distribution where the two models lie apart by more "
                        "than A, else the drafter's.",
               .keys = {alpha_key("From 0 to 1000. Beyond the distance's largest value (tv: 1, "
                                  "js: 0.69) it is the drafter.",
                                  "bild-sampled:alpha=2"),
                        {.name = "distance",
                         .value = "surprise|tv|kl|js",
                         .default_value = "surprise",
                         .meaning = "surprise: -log of what the target gives the drafter's "
                                    "likeliest token; total variation; KL; Jensen-Shannon.",
                         .example = "bild-sampled:alpha=0.2,distance=js"},
                        bonus_key("bild-sampled:alpha=2,bonus=target")},
               .source = fmt::format("Kim et al., Speculative Decoding with Big Little Decoder "
                                     "(2023); {}, table 1.",
                                     kNarasimhan),
               .pays = "To compare with bild where tokens are sampled.",
               .example = command_with_rule("bild-sampled:alpha=2")},
          .make = make_bild_sampled};
}

RuleKind router_kind() {
  return {
      .description =
          {.name = "router",
           .form = "router:path=FILE",
           .summary = "a trained choice between the two",
           .needs = kDistributions,
           .about = "Emits the target's distribution where a logistic regression on both models' "
                    "confidence, entropy and disagreement says so, else the drafter's. outrider "
                    "train router fits one.",
           .keys = {{.name = "path",
                     .value = "FILE",
                     .meaning = "The router's JSON file, or the folder of a router.json.",
                     .example = "router:path=router.json"},
                    {.name = "threshold",
                     .value = "X",
                     .default_value = "as the file says, or 0.5",
                     .meaning = "From 0 to 1. At 0 it is the target, at 1 the drafter.",
                     .example = "router:path=router.json,threshold=0.7"},
                    bonus_key("router:path=router.json,bonus=target")},
           .source = fmt::format("{}, section 7 and appendix G, name such a router.", kNarasimhan),
           .pays = "Where there is text of the kind to come to fit it on.",
           .example = command_with_rule("router:path=router.json")},
      .make = make_router};
}

RuleKind relaxed_kind() {
  return {
      .description =
          {.name = "relaxed",
           .form = "relaxed",
           .summary = "near the target's best, in reasoning",
           .needs = kDistributions,
           .about = "Between <think> and </think> a drafted token is accepted if the target has it "
                    "among its likeliest, not far below the first. Elsewhere the text follows the "
                    "target's own distribution.",
           .keys = {{.name = "top",
                     .value = "N",
                     .default_value = fmt::format("{}", kRelaxedTop),
                     .meaning = fmt::format("From 1 to {}: of how many tokens it has to be one.",
                                            RelaxedRule::kMaxTop),
                     .example = "relaxed:top=5"},
                    {.name = "delta",
                     .value = "D",
                     .default_value = fmt::format("{}", kRelaxedDelta),
                     .meaning = "From 0 to 1: how far below the first one's its probability may "
                                "be. At 0 it is the target.",
                     .example = "relaxed:delta=0.3"},
                    {.name = "open",
                     .value = "TOKEN",
                     .default_value = kThinkOpen,
                     .meaning = "The token behind which the model thinks.",
                     .example = "relaxed:open=[THINK],close=[/THINK]"},
                    {.name = "close",
                     .value = "TOKEN",
                     .default_value = kThinkClose,
                     .meaning = "The token that ends it.",
                     .example = "relaxed:open=[THINK],close=[/THINK]"},
                    bonus_key("relaxed:bonus=rule", true)},
           .source = "TensorRT-LLM's relaxed acceptance (DeepSeek R1 MTP Implementation and "
                     "Optimization, 2025).",
           .pays = "With models that think for long before they answer, where the answer alone is "
                   "read.",
           .example = command_with_rule("relaxed:delta=0.3")},
      .make_marked = make_relaxed,
      .target_bonus = true};
}

}  // namespace

std::span<const RuleKind> rule_kinds() {
  static const std::vector<RuleKind> kinds = [] {
    std::vector<RuleKind> all = {
        exact_kind(),    chow_kind(),         diff_kind(),   opt_kind(),          token_v1_kind(),
        token_v2_kind(), token_v3_kind(),     lossy_kind(),  lossy_greedy_kind(), lenience_kind(),
        budget_kind(),   bild_sampled_kind(), router_kind(), relaxed_kind()};
    std::vector<RuleKind> own = acceptance_kinds();
    std::move(own.begin(), own.end(), std::back_inserter(all));
    return all;
  }();
  return kinds;
}

}  // namespace outrider
