#include <memory>

#include "outrider/error.h"
#include "outrider/inspect.h"
#include "outrider/tokenizer.h"
#include "tokenizer/same_vocabulary.h"
#include "tokenizer/translate_vocabulary.h"

namespace outrider {

VocabularyPair inspect_pair(const std::filesystem::path& target,
                            const std::filesystem::path& drafter) {
  const auto side = [](const std::filesystem::path& path) {
    VocabularySide made{.tokenizer = Tokenizer::load(path)};
    made.n_rows = made.tokenizer->vocabulary_size();
    if (made.tokenizer->eos_token() != kNoToken) made.ends.push_back(made.tokenizer->eos_token());
    return made;
  };
  const VocabularySide first = side(target);
  const VocabularySide second = side(drafter);
  VocabularyPair pair{.n_target = first.n_rows,
                      .n_drafter = second.n_rows,
                      .n_shared = n_shared(translate_vocabulary(first, second))};
  try {
    require_same_vocabulary(*first.tokenizer, *second.tokenizer, "compare", drafter.string());
    pair.same_ids = true;
  } catch (const Error&) {
    pair.same_ids = false;
  }
  return pair;
}

}  // namespace outrider
