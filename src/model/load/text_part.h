// SPDX-License-Identifier: Apache-2.0
// The text model in a multimodal model's directory.
#ifndef OUTRIDER_MODEL_LOAD_TEXT_PART_H_
#define OUTRIDER_MODEL_LOAD_TEXT_PART_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/tensor_source.h"

namespace outrider {

// The text part of a config.json (`file`, for messages), with a text model's keys; empty if it is a
// text model's. Throws Error, with the class, if its text part is not supported.
std::optional<nlohmann::json> text_config_of(const nlohmann::json& config,
                                             const std::filesystem::path& file);

// The tensors of the text part, with a text model's names ("model.layers.0...").
std::unique_ptr<TensorSource> open_text_part(std::unique_ptr<TensorSource> whole);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_TEXT_PART_H_
