// Files that look like a model's and are something else: each is called what it is.
#ifndef OUTRIDER_MODEL_LOAD_OTHER_MODELS_H_
#define OUTRIDER_MODEL_LOAD_OTHER_MODELS_H_

#include <filesystem>

#include "io/gguf.h"

namespace outrider {

// A directory without config.json: throws Error where it holds an adapter or files of another
// engine.
void refuse_other_directory(const std::filesystem::path& directory);

// A GGUF file: throws Error where it is an adapter, a projector or an importance matrix.
void refuse_other_gguf(const GgufFile& file);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_OTHER_MODELS_H_
