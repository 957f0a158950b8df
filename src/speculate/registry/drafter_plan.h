// SPDX-License-Identifier: Apache-2.0
// From a drafter spec to a drafter in two steps: reading needs the spec alone; making may load
// files and read the target.
#ifndef OUTRIDER_SPECULATE_REGISTRY_DRAFTER_PLAN_H_
#define OUTRIDER_SPECULATE_REGISTRY_DRAFTER_PLAN_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/spec.h"
#include "base/vocabulary_id.h"
#include "base/vocabulary_translation.h"
#include "model/language_model.h"
#include "model/load_model.h"
#include "outrider/types.h"
#include "speculate/drafter.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// A model with another vocabulary.
struct ForeignModel {
  std::unique_ptr<LanguageModel> model;
  VocabularyTranslation forth;  // from the target's vocabulary to the model's
  VocabularyTranslation back;   // from the model's to the target's
};

// What drafters are made from. The target must outlive them. The functions are called only while
// drafters are made. All throw Error for unusable files.
struct DrafterMaterials {
  LanguageModel* target = nullptr;
  std::filesystem::path target_path = {};  // the path it was loaded from
  int vocabulary_size = 0;                 // the target's; drafters propose only tokens below it
  // The user's options for loading drafters' weights.
  LoadOptions load = {};
  // Loads a model and checks that its vocabulary equals the target's.
  std::function<std::unique_ptr<LanguageModel>(const std::filesystem::path&, const LoadOptions&)>
      load_model = {};
  // Loads a model of any vocabulary.
  std::function<ForeignModel(const std::filesystem::path&, const LoadOptions&)> load_foreign = {};
  // Ids of a text in the target's vocabulary, without the special tokens around a prompt.
  std::function<std::vector<TokenId>(std::string_view text, std::string_view name)> tokenize = {};
  // The identity of that vocabulary, for files of tokens.
  std::function<VocabularyId()> vocabulary_id = {};
};

using MakeDrafter = std::function<std::unique_ptr<Drafter>(const DrafterMaterials&)>;

// A place where a better drafter may appear while texts are generated.
struct PlannedUpdates {
  std::filesystem::path place;   // a model's directory or file; need not exist yet
  std::filesystem::path in_use;  // what the plan itself loads; may be the same
  MakeDrafter make;              // from what is at the place by then
};

// A valid spec, parsed.
struct DrafterPlan {
  DrafterTraits traits;
  std::shared_ptr<const TreeShape> shape;  // of drafts if the user names no tree; not null
  // The shape of drafts that end where they do not pay, if the user names no length; null: `shape`.
  std::shared_ptr<const TreeShape> deepest = nullptr;
  double confidence = 0;  // drafts end after a token of lower raw probability; 0: never
  MakeDrafter make;
  std::optional<PlannedUpdates> updates = std::nullopt;
  // Distinguishes it from others of its kind with other traits, for messages: "with ...".
  std::string variant = {};
};

// Parses a spec. Throws UsageError for invalid values; opens no file. The spec has only keys of the
// kind's description (drafter_registry.h).
using ReadDrafter = DrafterPlan (*)(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_REGISTRY_DRAFTER_PLAN_H_
