// SPDX-License-Identifier: Apache-2.0
// Opens a model's files and identifies them, before any weight is read.
#ifndef OUTRIDER_MODEL_LOAD_OPEN_MODEL_H_
#define OUTRIDER_MODEL_LOAD_OPEN_MODEL_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/files/file_folder.h"
#include "io/tensor_source.h"
#include "model/families/family.h"
#include "model/quantised/quantisation.h"
#include "model/weight_loader.h"

namespace outrider {

struct OpenedModel {
  std::unique_ptr<const Family> family;
  // For a multimodal directory the text part, with a text model's names.
  std::unique_ptr<TensorSource> source;
  NamingScheme names;
  std::optional<Quantisation> quantisation = {};
};

// PATH: a Hugging Face directory or a GGUF file. Throws Error with the file or key, what was
// expected and what was found.
OpenedModel open_model(const std::filesystem::path& path);

// A model in Hugging Face's form whose small files are in the folder. open_source: returns its
// tensors; called after the configuration has been read.
OpenedModel open_model(const FileFolder& folder,
                       const std::function<std::unique_ptr<TensorSource>()>& open_source);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_OPEN_MODEL_H_
