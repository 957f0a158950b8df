#include "engine/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/make_rule.h"
#include "engine/make_tree_shape.h"
#include "engine/spec.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/drafters/model_drafter.h"
#include "tensor/kernels_in_use.h"
#include "tokenizer/same_vocabulary.h"

namespace outrider {
namespace {

// The kinds of drafters there are, and what is known of them before one is loaded.
struct DrafterKind {
  std::string_view name;
  std::string_view spec;
  DrafterTraits traits;
};
constexpr DrafterKind kDrafterKinds[] = {
    {"none", "none", {}},
    {"model", "model:PATH", {.has_draft_prob = true, .prefix_determined = true}},
};

void require_distributions(const Judging& judging, const std::string& drafter) {
  if (!judging.acceptance->needs().draft_prob) return;
  std::vector<std::string_view> fitting;
  for (const DrafterKind& kind : kDrafterKinds) {
    if (kind.traits.has_draft_prob) fitting.push_back(kind.spec);
    if (kind.name == drafter && kind.traits.has_draft_prob) return;
  }
  throw UsageError("use rule", judging.rule,
                   fmt::format("a drafter that has distributions ({})", fmt::join(fitting, ", ")),
                   fmt::format("the drafter {}", drafter));
}

// Both vocabularies must mean the same by the ids they share. A drafter stored without a tokenizer
// is taken at its word if its size fits.
void require_fitting_vocabulary(const Model& target, const LanguageModel& drafter,
                                const std::filesystem::path& path) {
  constexpr const char* kOperation = "load drafter";
  const int n_target = target.summary().vocabulary_size;
  const int n_drafter = drafter.config().vocabulary_size;
  const bool has_tokenizer =
      std::filesystem::is_regular_file(path) || std::filesystem::exists(path / "tokenizer.json");
  if (!has_tokenizer) {
    if (n_target != n_drafter) {
      throw Error(kOperation, path.string(), fmt::format("the target's vocabulary of {}", n_target),
                  fmt::format("one of {}", n_drafter));
    }
    return;
  }
  // The models' matrices may be padded to different sizes; their tokens are what counts.
  require_same_vocabulary(target.tokenizer(), *Tokenizer::load(path), kOperation, path.string());
}

// All of a speculation but the drafter, from the specs alone.
Speculation without_drafter(const Spec& spec, const SpeculationOptions& options) {
  Speculation speculation;
  spec.require_name({"none", "model"});
  Judging judging = make_judging(options.rule, options.verify);
  require_distributions(judging, spec.name());
  speculation.rule = judging.rule;
  speculation.acceptance = std::move(judging.acceptance);
  speculation.shape = make_tree_shape(options.tree);
  if (speculation.acceptance->chains_only() && !speculation.shape->is_chain()) {
    throw UsageError("judge drafts", speculation.acceptance->name(), "a chain",
                     fmt::format("the tree {}", options.tree));
  }
  if (spec.name() == "none") {
    spec.require_no_value();
    spec.require_keys({});
    // Plain sampling is Gumbel coupling with nothing drafted.
    speculation.acceptance = make_coupled(std::make_shared<ExactRule>());
    return speculation;
  }
  spec.require_keys({"confidence"});
  if (spec.value().empty()) {
    throw UsageError("read drafter", options.drafter, "model:PATH", "no path");
  }
  const double confidence =
      std::max(spec.number("confidence", 0, 1).value_or(0), judging.draft_until);
  if (confidence > 0) speculation.stop = std::make_unique<ConfidenceStop>(confidence);
  return speculation;
}

}  // namespace

LoadOptions make_load_options(const ModelOptions& options) {
  constexpr const char* kOperation = "load model";
  LoadOptions load;
  if (!options.weights.empty()) {
    constexpr std::pair<const char*, kernels::WeightKind> kKinds[] = {
        {"f32", kernels::WeightKind::f32},
        {"bf16", kernels::WeightKind::bf16},
        {"int8", kernels::WeightKind::int8},
        {"int4", kernels::WeightKind::int4}};
    for (const auto& [name, kind] : kKinds) {
      if (options.weights == name) load.weights = kind;
    }
    if (!load.weights) {
      throw UsageError(kOperation, "weights", "one of f32, bf16, int8, int4", options.weights);
    }
  }
  if (options.kv == "f32") {
    load.kv = kernels::KvKind::f32;
  } else if (options.kv == "bf16") {
    load.kv = kernels::KvKind::bf16;
  } else if (!options.kv.empty()) {
    throw UsageError(kOperation, "kv", "one of f32, bf16", options.kv);
  }
  if (options.threads < 0) {
    throw UsageError(kOperation, "threads", "0 or more", fmt::format("{}", options.threads));
  }
  load.n_threads = options.threads;
  load.table = &choose_kernels(options.kernels);
  load.progress = options.progress;
  return load;
}

void check_speculation(const SpeculationOptions& options) {
  (void)without_drafter(Spec::parse("drafter", options.drafter), options);
}

Speculation make_speculation(const Model& target, const SpeculationOptions& options) {
  const Spec spec = Spec::parse("drafter", options.drafter);
  Speculation speculation = without_drafter(spec, options);
  if (spec.name() == "none") return speculation;
  auto model = load_model(spec.value(), make_load_options(options.drafter_options));
  require_fitting_vocabulary(target, *model, spec.value());
  speculation.drafter =
      std::make_unique<ModelDrafter>(std::move(model), target.summary().vocabulary_size);
  const bool looks_at_draft = speculation.acceptance->needs().draft_prob;
  speculation.scope = speculation.acceptance->prefix_determined() &&
                              (!looks_at_draft || speculation.drafter->traits().prefix_determined)
                          ? RuleScope::prefix
                          : RuleScope::round;
  return speculation;
}

}  // namespace outrider
