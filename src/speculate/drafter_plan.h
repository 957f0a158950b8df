// From a drafter spec to a drafter, in two steps: reading it, which needs nothing but the spec, and
// making it, which may load files and look at the target.
#ifndef OUTRIDER_SPECULATE_DRAFTER_PLAN_H_
#define OUTRIDER_SPECULATE_DRAFTER_PLAN_H_

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
#include "speculate/tree_shape.h"

namespace outrider {

// A model with a vocabulary of its own.
struct ForeignModel {
  std::unique_ptr<LanguageModel> model;
  VocabularyTranslation forth;  // from the target's vocabulary to its own
  VocabularyTranslation back;   // and from its own to the target's
};

// What drafters are made from. The target outlives them; the functions are called while they are
// made and not later. All throw Error for files that cannot be used.
struct DrafterMaterials {
  LanguageModel* target = nullptr;
  std::filesystem::path target_path = {};  // what it was loaded from
  int vocabulary_size = 0;                 // the target's: no drafter proposes a token beyond it
  // How files of weights are loaded, as the user asked for drafters.
  LoadOptions load = {};
  // A model whose vocabulary has been found to mean the same as the target's.
  std::function<std::unique_ptr<LanguageModel>(const std::filesystem::path&, const LoadOptions&)>
      load_model = {};
  // A model of whatever vocabulary.
  std::function<ForeignModel(const std::filesystem::path&, const LoadOptions&)> load_foreign = {};
  // Ids of a text in the target's vocabulary, without the special tokens around a prompt.
  std::function<std::vector<TokenId>(std::string_view text, std::string_view name)> tokenize = {};
  // Which vocabulary that is, for files of tokens.
  std::function<VocabularyId()> vocabulary_id = {};
};

using MakeDrafter = std::function<std::unique_ptr<Drafter>(const DrafterMaterials&)>;

// Where a better drafter may turn up while texts are generated.
struct PlannedUpdates {
  std::filesystem::path place;   // a model's directory or file; need not be there yet
  std::filesystem::path in_use;  // what the plan itself loads; may be the same
  MakeDrafter make;              // from what stands at the place by then
};

// A spec that has been read and can be meant.
struct DrafterPlan {
  DrafterTraits traits;
  std::shared_ptr<const TreeShape> shape;  // of its drafts where the user names no tree; not null
  // Of drafts that end by themselves where they do not pay, where the user names no length either;
  // null: shape.
  std::shared_ptr<const TreeShape> deepest = nullptr;
  double confidence = 0;  // drafts end behind a token of lower raw probability; 0: never
  MakeDrafter make;
  std::optional<PlannedUpdates> updates = std::nullopt;
  // What tells it from others of its kind whose traits differ, for messages: "with ...".
  std::string variant = {};
};

// Throws UsageError for values that cannot be meant; opens no file. The spec has no other keys than
// the kind's description (drafter_registry.h).
using ReadDrafter = DrafterPlan (*)(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTER_PLAN_H_
