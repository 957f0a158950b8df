// SPDX-License-Identifier: Apache-2.0
// Shows what model files hold without loading the models. Thread-safe.
#ifndef OUTRIDER_INSPECT_H_
#define OUTRIDER_INSPECT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace outrider {

struct TensorSummary {
  std::string name;
  std::string type;                 // "f32", "q4_0", ...
  std::vector<std::int64_t> shape;  // outermost first
  std::int64_t n_bytes = 0;
};

struct FileSummary {
  std::string format;                                         // "safetensors" or "gguf"
  std::vector<std::pair<std::string, std::string>> metadata;  // config or GGUF metadata, shortened
  std::vector<TensorSummary> tensors;                         // in file order
  // The main facts in words: family, shape, weights by type, context, chat template, end tokens,
  // drafters; as far as this build can read the files.
  std::vector<std::pair<std::string, std::string>> facts;
  // Doubtful points of the files, a sentence each (Model::warnings), as far as headers show.
  std::vector<std::string> warnings;
};

// PATH as for Model::load. Reads headers only. Throws Error.
FileSummary inspect_file(const std::filesystem::path& path);

// The overlap of two models' vocabularies.
struct VocabularyPair {
  int n_target = 0;  // tokens
  int n_drafter = 0;
  int n_shared = 0;       // tokens with the same bytes in both, or that end a text in both
  bool same_ids = false;  // the same vocabulary: each can draft for the other
};

// PATHs as for Tokenizer::load. Throws Error.
VocabularyPair inspect_pair(const std::filesystem::path& target,
                            const std::filesystem::path& drafter);

}  // namespace outrider

#endif  // OUTRIDER_INSPECT_H_
