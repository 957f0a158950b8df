// SPDX-License-Identifier: Apache-2.0
// A Hugging Face directory read into memory, for programs that hold a model in memory.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_MEMORY_FILES_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_MEMORY_FILES_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_folder.h"
#include "io/safetensors/safetensors.h"
#include "io/tensor_source.h"
#include "outrider/model_in_memory.h"

namespace outrider::test {

// All files except the weights, by name; the bytes of the weights, one byte off any alignment.
class MemoryFiles {
 public:
  explicit MemoryFiles(const std::filesystem::path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (!entry.is_regular_file() || entry.path().extension() == ".safetensors" ||
          entry.path().extension() == ".gguf") {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    const auto source = open_safetensors_directory(directory);
    for (const TensorView& tensor : source->tensors()) {
      std::vector<std::byte>& bytes = bytes_.emplace_back(1);
      bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
      TensorView& view = views.emplace_back(tensor);
      view.data = std::span(bytes).subspan(1);
    }
  }

  FileFolder folder() const { return FileFolder("memory", files); }

  ModelInMemory model() const {
    ModelInMemory model;
    model.files = files;
    model.config = files.at("config.json");
    for (const TensorView& view : views) {
      model.tensors.push_back(
          {.name = view.name, .type = view.type_name(), .shape = view.shape, .data = view.data});
    }
    return model;
  }

  // Overwrites the bytes, as if another owner used the memory.
  void spoil() {
    for (std::vector<std::byte>& bytes : bytes_) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0x5A});
    }
  }

  FileFolder::Contents files;
  std::vector<TensorView> views;

 private:
  std::deque<std::vector<std::byte>> bytes_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_MEMORY_FILES_H_
