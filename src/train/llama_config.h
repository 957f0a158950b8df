// What a trainer reads of a model that it goes on with.
#ifndef OUTRIDER_TRAIN_LLAMA_CONFIG_H_
#define OUTRIDER_TRAIN_LLAMA_CONFIG_H_

#include <filesystem>

#include "model/config.h"

namespace outrider::train {

// The configuration of a Hugging Face directory that trainers can go on with: a Llama's. Throws
// Error on another family, whose layers trainers would silently take for a Llama's.
ModelConfig read_llama_config(const std::filesystem::path& directory);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LLAMA_CONFIG_H_
