// How the tensors of a family are named in one file. Immutable; what `names` points to outlives it.
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
    if (gguf || names.optional_prefix == nullptr) return;
    const auto weight = [](std::string_view name) { return fmt::format("{}.weight", name); };
    const std::string_view embedding = names.embedding.hugging_face;
    const std::string_view prefix = names.optional_prefix;
    if (source.find(weight(embedding)) == nullptr &&
        source.find(weight(embedding.substr(prefix.size()))) != nullptr) {
      left_out_ = prefix;
    }
  }

  std::string embedding() const { return of(names_.embedding); }
  bool has_positions() const { return names_.positions.gguf != nullptr; }
  std::string positions() const { return of(names_.positions); }
  std::string head() const { return of(names_.head); }
  std::string layers() const { return of(names_.layers); }
  std::string encoder_layers() const { return of(names_.encoder_layers); }
  TensorName encoder_norm() const { return names_.encoder_norm; }
  // As LayerLoader takes it.
  TensorName final_norm() const {
    TensorName name = names_.final_norm;
    if (is_shortened(name)) name.hugging_face += left_out_.size();
    return name;
  }

 private:
  bool is_shortened(const TensorName& name) const {
    return !left_out_.empty() && std::string_view(name.hugging_face).starts_with(left_out_);
  }
  std::string of(const TensorName& name) const {
    if (gguf_) return name.gguf;
    return name.hugging_face + (is_shortened(name) ? left_out_.size() : 0);
  }

  DecoderNames names_;
  bool gguf_;
  std::string_view left_out_;  // empty: nothing
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_NAMES_IN_FILE_H_
