// What a trainer reads of a model that it goes on with. Sees no libtorch.
#ifndef OUTRIDER_TRAIN_LLAMA_CONFIG_H_
#define OUTRIDER_TRAIN_LLAMA_CONFIG_H_

#include <filesystem>

#include "model/config.h"
#include "outrider/error.h"

namespace outrider::train {

// The configuration of a Hugging Face directory that trainers can go on with: a Llama's. Throws
// Error on another family, whose layers trainers would silently take for a Llama's.
inline ModelConfig read_llama_config(const std::filesystem::path& directory) {
  ModelConfig config = read_config_json(directory);
  if (config.architecture != "llama") {
    throw Error("read config", directory.string(),
                "a model of the family llama (trainers know no other)", config.architecture);
  }
  return config;
}

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LLAMA_CONFIG_H_
