// SPDX-License-Identifier: Apache-2.0
// The names of a family's tensors in one file. Immutable; the strings in `names` must outlive it.
#ifndef OUTRIDER_MODEL_LOAD_NAMES_IN_FILE_H_
#define OUTRIDER_MODEL_LOAD_NAMES_IN_FILE_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "io/tensor_source.h"
#include "model/families/family.h"

namespace outrider {

// Names without their endings (".weight").
class NamesInFile {
 public:
  NamesInFile(const TensorSource& source, const DecoderNames& names, bool gguf)
      : names_(names), gguf_(gguf) {
    if (gguf) return;
    choose_spelling(source);
    final_norm_ = spelled(names.final_norm.hugging_face);
  }
  NamesInFile(const NamesInFile&) = delete;  // final_norm() points into it
  NamesInFile& operator=(const NamesInFile&) = delete;

  std::string embedding() const { return of(names_.embedding); }
  bool has_positions() const { return names_.positions.gguf != nullptr; }
  std::string positions() const { return of(names_.positions); }
  std::string head() const { return of(names_.head); }
  std::string layers() const { return of(names_.layers); }
  std::string encoder_layers() const { return of(names_.encoder_layers); }
  TensorName encoder_norm() const { return names_.encoder_norm; }
  // In the form of LayerLoader; lives as long as this object.
  TensorName final_norm() const {
    return {gguf_ ? nullptr : final_norm_.c_str(), names_.final_norm.gguf};
  }

 private:
  // Finds which spelling the file uses by the first of the embedding's names that it has.
  void choose_spelling(const TensorSource& source) {
    for (const char* embedding : {names_.embedding.hugging_face, names_.other_embedding}) {
      for (const bool replaces : {false, true}) {
        if (embedding == nullptr || (replaces && names_.optional_prefix == nullptr)) continue;
        replaces_prefix_ = replaces;
        if (source.find(fmt::format("{}.weight", spelled(embedding))) == nullptr) continue;
        names_.embedding.hugging_face = embedding;
        return;
      }
    }
    replaces_prefix_ = false;  // none found: errors will name the first spelling
  }
  // Hugging Face's name in this file's spelling.
  std::string spelled(std::string_view name) const {
    const std::string_view prefix = names_.optional_prefix == nullptr ? "" : names_.optional_prefix;
    if (!replaces_prefix_ || !name.starts_with(prefix)) return std::string(name);
    return fmt::format("{}{}", names_.other_prefix, name.substr(prefix.size()));
  }
  std::string of(const TensorName& name) const {
    return gguf_ ? name.gguf : spelled(name.hugging_face);
  }

  DecoderNames names_;
  bool gguf_;
  bool replaces_prefix_ = false;
  std::string final_norm_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_NAMES_IN_FILE_H_
