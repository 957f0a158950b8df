// SPDX-License-Identifier: Apache-2.0
// Reads the configuration of a model to train further. Uses no libtorch.
#ifndef OUTRIDER_TRAIN_MODULES_LLAMA_CONFIG_H_
#define OUTRIDER_TRAIN_MODULES_LLAMA_CONFIG_H_

#include <filesystem>

#include "model/config.h"
#include "outrider/error.h"

namespace outrider::train {

// The configuration of a Hugging Face directory of the Llama family. Throws Error for another
// family: trainers would compute its layers as Llama layers without notice.
inline ModelConfig read_llama_config(const std::filesystem::path& directory) {
  ModelConfig config = read_config_json(directory);
  if (config.architecture != "llama") {
    throw Error("read config", directory.string(),
                "a model of the family llama (trainers know no other)", config.architecture);
  }
  return config;
}

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_LLAMA_CONFIG_H_
