#include "train/llama_config.h"

#include "outrider/error.h"

namespace outrider::train {

ModelConfig read_llama_config(const std::filesystem::path& directory) {
  ModelConfig config = read_config_json(directory);
  if (config.architecture != "llama") {
    throw Error("read config", directory.string(),
                "a model of the family llama (trainers know no other)", config.architecture);
  }
  return config;
}

}  // namespace outrider::train
