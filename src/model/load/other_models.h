// SPDX-License-Identifier: Apache-2.0
// Recognises files that resemble a model's, for error messages that say what they are.
#ifndef OUTRIDER_MODEL_LOAD_OTHER_MODELS_H_
#define OUTRIDER_MODEL_LOAD_OTHER_MODELS_H_

#include <filesystem>

#include "io/gguf/gguf.h"

namespace outrider {

// For a directory without config.json: throws Error if it holds an adapter or files of another
// engine.
void refuse_other_directory(const std::filesystem::path& directory);

// For a GGUF file: throws Error if it is an adapter, a projector or an importance matrix.
void refuse_other_gguf(const GgufFile& file);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_OTHER_MODELS_H_
