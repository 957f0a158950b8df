// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>

#include "model/config.h"
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
    if (std::filesystem::exists(path / "config.json")) {
      try {
        made.ends = read_config_json(path).end_tokens;
      } catch (const Error&) {  // this build cannot run the model, but its vocabulary counts
        made.ends.clear();
      }
    }
    const TokenId end = made.tokenizer->eos_token();
    if (made.ends.empty() && end != kNoToken) made.ends.push_back(end);
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
