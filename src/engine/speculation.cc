// SPDX-License-Identifier: Apache-2.0
#include "engine/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/spec.h"
#include "device/open_device.h"
#include "engine/drafting/make_tree_shape.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "speculate/drafters/own_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/rules/make_rule.h"
#include "tensor/kernels_in_use.h"
#include "tokenizer/formats/tokenizer_file.h"
#include "tokenizer/same_vocabulary.h"
#include "tokenizer/translate_vocabulary.h"

namespace outrider {
namespace {

// Throws UsageError if the acceptance reads the drafter's distributions and it has none.
void require_distributions(const Verification& verification, const std::string& drafter,
                           bool has_draft_prob) {
  if (!verification.acceptance->needs().draft_prob || has_draft_prob) return;
  std::vector<std::string_view> fitting;
  for (const DrafterKind& kind : drafter_kinds()) {
    const std::string_view form = kind.description.form;
    if (kind.has_draft_prob) fitting.push_back(form.substr(0, form.find('[')));
  }
  throw UsageError(
      "use rule", verification.rule,
      fmt::format("a drafter that has distributions ({}; auto:, first: and relay: of these)",
                  fmt::join(fitting, ", ")),
      fmt::format("the drafter {}", drafter));
}

// The shared ids must mean the same tokens in both vocabularies. A drafter stored without a
// tokenizer is accepted if its size fits.
void require_fitting_vocabulary(const Model& target, const LanguageModel& drafter,
                                const std::filesystem::path& path) {
  constexpr const char* kOperation = "load drafter";
  const int n_target = target.summary().vocabulary_size;
  const int n_drafter = drafter.config().vocabulary_size;
  const bool has_tokenizer = std::filesystem::is_regular_file(path) || find_tokenizer_file(path);
  if (!has_tokenizer) {
    if (n_target != n_drafter) {
      throw Error(kOperation, path.string(), fmt::format("the target's vocabulary of {}", n_target),
                  fmt::format("one of {}", n_drafter));
    }
    return;
  }
  // The models' matrices may be padded differently; only their tokens count.
  require_same_vocabulary(
      target.tokenizer(), *Tokenizer::load(path), kOperation, path.string(),
      fmt::format(" (model:{},vocabulary=shared drafts what both have)", path.string()));
}

// An encoder-decoder's drafter reads the same encoder input.
void require_fitting_encoder(const Model& target, const LanguageModel& drafter,
                             const std::filesystem::path& path) {
  const auto named = [](bool has_encoder) {
    return has_encoder ? "an encoder-decoder" : "a decoder";
  };
  const bool expected = target.summary().n_encoder_layers > 0;
  const bool got = drafter.config().has_encoder();
  if (expected == got) return;
  throw Error("load drafter", path.string(), fmt::format("{}, as the target is", named(expected)),
              named(got));
}

// Loads a model that need not share the target's vocabulary.
ForeignModel load_foreign(const Model& target, const LoadOptions& load,
                          const std::filesystem::path& path) {
  const auto side_of = [](std::shared_ptr<const Tokenizer> tokenizer, const ModelConfig& config) {
    VocabularySide side{.tokenizer = std::move(tokenizer),
                        .n_rows = config.vocabulary_size,
                        .ends = config.end_tokens};
    const TokenId end = side.tokenizer->eos_token();
    if (side.ends.empty() && end != kNoToken) side.ends.push_back(end);
    return side;
  };
  ForeignModel foreign;
  foreign.model = load_model(path, load);
  if (target.summary().n_encoder_layers > 0 || foreign.model->config().has_encoder()) {
    throw Error("load drafter", path.string(), "decoders, where vocabularies differ",
                "an encoder-decoder");
  }
  // A pointer that does not own: the target's tokenizer outlives the drafter.
  const std::shared_ptr<const Tokenizer> lent(std::shared_ptr<void>(), &target.tokenizer());
  const VocabularySide target_side = side_of(lent, target.language_model().config());
  const VocabularySide foreign_side = side_of(Tokenizer::load(path), foreign.model->config());
  foreign.forth = translate_vocabulary(target_side, foreign_side);
  foreign.back = translate_vocabulary(foreign_side, target_side);
  return foreign;
}

// A speculation without its drafter, from the specs alone, and the plan to make that drafter.
struct Plan {
  Speculation speculation;
  std::optional<DrafterPlan> drafter;  // none: plain decoding
};

// The default shape of drafts.
std::shared_ptr<const TreeShape> own_shape(const DrafterPlan& drafter, bool adaptive) {
  return adaptive && drafter.deepest != nullptr ? drafter.deepest : drafter.shape;
}

DrafterPlan read_plan(const SpeculationOptions& options) {
  if (options.own_drafter == nullptr) return read_drafter(options.drafter);
  const Spec spec = Spec::parse("drafter", options.drafter);
  if (spec.name() != "own") {
    throw UsageError("read drafter", options.drafter, "own, for a drafter that the program brings",
                     spec.name());
  }
  return read_own_drafter(spec, options.own_drafter);
}

// find: finds the target's tokens by their spelling. Empty if only the specs are checked, before a
// target is loaded.
Plan read_speculation(const SpeculationOptions& options, const FindToken& find) {
  Plan plan;
  Speculation& speculation = plan.speculation;
  std::string drafter = options.drafter.substr(0, options.drafter.find(':'));
  if (drafter == "none" && options.own_drafter == nullptr) {
    const Spec spec = Spec::parse("drafter", options.drafter);
    spec.require_no_value();
    spec.require_keys({});
  } else {
    plan.drafter = read_plan(options);
    if (!plan.drafter->variant.empty()) drafter += " " + plan.drafter->variant;
  }
  Verification verification = make_verification(options.rule, options.verify, find);
  require_distributions(verification, drafter, plan.drafter && plan.drafter->traits.has_draft_prob);
  speculation.rule = verification.rule;
  speculation.adaptive = options.adaptive;
  speculation.acceptance = std::move(verification.acceptance);
  speculation.shape = options.tree.empty() && plan.drafter
                          ? own_shape(*plan.drafter, options.adaptive)
                          : make_tree_shape(options.tree);
  if (speculation.acceptance->chains_only() && !speculation.shape->is_chain()) {
    throw UsageError("judge drafts", speculation.acceptance->name(), "a chain",
                     options.tree.empty() ? fmt::format("the drafter {}", drafter)
                                          : fmt::format("the tree {}", options.tree));
  }
  if (!plan.drafter) {
    // Without drafts every acceptance emits the target's distribution. The coupled one is taken:
    // with the same seed, plain sampling then gives the text that `verify = "coupled"` gives with
    // drafts.
    speculation.acceptance = make_coupled(std::make_shared<ExactRule>());
    return plan;
  }
  if (speculation.shape->depth() < speculation.acceptance->min_depth()) {
    throw UsageError("judge drafts", options.rule,
                     fmt::format("drafts of {} tokens or more (--tree) or a shorter window=",
                                 speculation.acceptance->min_depth()),
                     options.tree.empty()
                         ? fmt::format("{} of the drafter {}", speculation.shape->depth(), drafter)
                         : fmt::format("the tree {}", options.tree));
  }
  const double confidence = std::max(plan.drafter->confidence, verification.draft_until);
  if (confidence > 0) speculation.stop = std::make_unique<ConfidenceStop>(confidence);
  return plan;
}

}  // namespace

LoadOptions make_load_options(const ModelOptions& options) {
  constexpr const char* kOperation = "load model";
  LoadOptions load;
  if (!options.weights.empty()) {
    load.weights = weight_kind_named(options.weights);
    if (!load.weights) {
      throw UsageError(kOperation, "weights", "one of f32, bf16, int8, int4", options.weights);
    }
  }
  if (options.kv == "f32") {
    load.kv = kernels::KvKind::f32;
  } else if (options.kv == "bf16") {
    load.kv = kernels::KvKind::bf16;
  } else if (options.kv == "int8") {
    load.kv = kernels::KvKind::int8;
  } else if (!options.kv.empty()) {
    throw UsageError(kOperation, "kv", "one of f32, bf16, int8", options.kv);
  }
  if (options.threads < 0) {
    throw UsageError(kOperation, "threads", "0 or more", fmt::format("{}", options.threads));
  }
  load.kv_memory_bytes = options.kv_memory_bytes;
  if (!options.experts.empty() && options.experts != "memory" && options.experts != "mapped") {
    throw UsageError(kOperation, "experts", "memory or mapped", options.experts);
  }
  load.experts_in_file = options.experts == "mapped";
  if (options.expert_memory_bytes > 0 && !load.experts_in_file) {
    throw UsageError(kOperation, "--experts-memory", "--experts mapped beside it",
                     options.experts.empty() ? "none" : options.experts);
  }
  load.expert_memory_bytes = options.expert_memory_bytes;
  load.n_threads = options.threads;
  load.table = &choose_kernels(options.kernels);
  if (!options.device.empty()) {
    load.device = device::open_device(options.device);
    load.device_name = "device " + options.device;
  }
  load.progress = options.progress;
  return load;
}

DrafterMaterials drafter_materials(const Model& target, const LoadOptions& load) {
  DrafterMaterials materials;
  materials.target = &target.language_model();
  materials.target_path = target.path();
  materials.vocabulary_size = target.summary().vocabulary_size;
  materials.load = load;
  materials.load_model = [&target](const std::filesystem::path& path, const LoadOptions& as) {
    auto model = load_model(path, as);
    require_fitting_encoder(target, *model, path);
    require_fitting_vocabulary(target, *model, path);
    return model;
  };
  materials.load_foreign = [&target](const std::filesystem::path& path, const LoadOptions& as) {
    return load_foreign(target, as, path);
  };
  materials.tokenize = [&target](std::string_view text, std::string_view name) {
    require_text(text, name);
    return target.tokenizer().encode(text, false);
  };
  materials.vocabulary_id = [&target] { return vocabulary_id(target.tokenizer()); };
  return materials;
}

void check_speculation(const SpeculationOptions& options) { (void)read_speculation(options, {}); }

std::unique_ptr<LanguageModel> load_drafter_model(const Model& target,
                                                  const SpeculationOptions& options) {
  const Spec spec = Spec::parse("drafter", options.drafter);
  if (spec.name() != "model") {
    throw UsageError("load drafter", options.drafter, "a drafter with a model, model:PATH",
                     spec.name());
  }
  if (spec.text("updates")) {
    throw UsageError("load drafter", options.drafter, "one model for all texts", "updates=");
  }
  const std::string& path = spec.required_value("model:PATH");
  const LoadOptions load =
      DrafterWeights::read(spec).options(make_load_options(options.drafter_options));
  // A model with another vocabulary is refused. At a round's root it would give another
  // distribution than along a given text, and its context is not counted in the target's tokens.
  if (const auto vocabulary = spec.text("vocabulary"); vocabulary && *vocabulary != "same") {
    throw UsageError("load drafter", options.drafter, "a drafter of the target's vocabulary",
                     "vocabulary=" + *vocabulary);
  }
  auto model = load_model(path, load);
  require_fitting_encoder(target, *model, path);
  require_fitting_vocabulary(target, *model, path);
  return model;
}

std::int64_t n_drafter_parameters(const SpeculationOptions& options) {
  const Spec spec = Spec::parse("drafter", options.drafter);
  const LoadOptions load =
      DrafterWeights::read(spec).options(make_load_options(options.drafter_options));
  return load_model(spec.required_value("model:PATH"), load)->footprint().n_parameters;
}

namespace {

FindToken finder_of(const Tokenizer& tokenizer) {
  return [&tokenizer](std::string_view spelling) { return tokenizer.find(spelling); };
}

// Adds the drafter and what follows from it: whether the rule's distribution depends on the prefix
// alone (RuleScope).
Speculation with_drafter(Plan plan, std::shared_ptr<Drafter> drafter) {
  Speculation& speculation = plan.speculation;
  speculation.drafter = std::move(drafter);
  const bool looks_at_draft = speculation.acceptance->needs().draft_prob;
  speculation.scope = speculation.acceptance->prefix_determined() &&
                              (!looks_at_draft || speculation.drafter->traits().prefix_determined)
                          ? RuleScope::prefix
                          : RuleScope::round;
  return std::move(speculation);
}

}  // namespace

Speculation make_speculation(const Tokenizer& tokenizer, const SpeculationOptions& options,
                             std::shared_ptr<Drafter> drafter,
                             const std::shared_ptr<const TreeShape>& shape) {
  Plan plan = read_speculation(options, finder_of(tokenizer));
  if (!plan.drafter) return std::move(plan.speculation);
  // `drafter` was made with the object `shape`, by whose address composite drafters recognise their
  // own shape. This plan has made another object.
  const bool is_own = options.tree.empty() && plan.speculation.shape == plan.drafter->shape;
  if (is_own) plan.speculation.shape = shape;
  return with_drafter(std::move(plan), std::move(drafter));
}

Speculation make_speculation(const Model& target, const SpeculationOptions& options) {
  Plan plan = read_speculation(options, finder_of(target.tokenizer()));
  if (!plan.drafter) return std::move(plan.speculation);
  std::optional<DrafterUpdates> updates;
  if (plan.drafter->updates) {  // before loading: replacements meanwhile are found later
    updates.emplace(*plan.drafter->updates, options.drafter_options);
  }
  std::shared_ptr<Drafter> drafter =
      plan.drafter->make(drafter_materials(target, make_load_options(options.drafter_options)));
  Speculation speculation = with_drafter(std::move(plan), std::move(drafter));
  speculation.updates = std::move(updates);
  return speculation;
}

}  // namespace outrider
