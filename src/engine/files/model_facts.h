// SPDX-License-Identifier: Apache-2.0
// The main facts about a model's files, in words.
#ifndef OUTRIDER_ENGINE_FILES_MODEL_FACTS_H_
#define OUTRIDER_ENGINE_FILES_MODEL_FACTS_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/tensor_source.h"

namespace outrider {

// Family, shape, weights by type, context, chat template, end tokens, and the drafters that need no
// other model, as far as this build can read them; of a head or an unknown family, the weights
// alone. Reads headers and the tokenizer. Does not throw for unreadable files.
std::vector<std::pair<std::string, std::string>> model_facts(const std::filesystem::path& path,
                                                             const TensorSource& tensors);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_FILES_MODEL_FACTS_H_
