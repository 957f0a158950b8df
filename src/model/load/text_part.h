// The text model within a directory of a multimodal one.
#ifndef OUTRIDER_MODEL_LOAD_TEXT_PART_H_
#define OUTRIDER_MODEL_LOAD_TEXT_PART_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/tensor_source.h"

namespace outrider {

// What a config.json (`file`, for messages) says of its text part, under a text model's keys;
// nothing where it is a text model's own. Throws Error naming the class where its text part is not
// known.
std::optional<nlohmann::json> text_config_of(const nlohmann::json& config,
                                             const std::filesystem::path& file);

// The tensors of the text part, under a text model's names ("model.layers.0...").
std::unique_ptr<TensorSource> open_text_part(std::unique_ptr<TensorSource> whole);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_TEXT_PART_H_
