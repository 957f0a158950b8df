// SPDX-License-Identifier: Apache-2.0
// The tiny models of tests/golden and the outputs of Hugging Face transformers for them
// (tests/golden/make/make_family_models.py).
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_MODELS_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_MODELS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "model/config_section.h"
#include "model/load_model.h"
#include "tests/support/models/run_model.h"

namespace outrider::test {

inline std::filesystem::path golden_directory(const std::string& name) {
  return std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / name;
}

inline nlohmann::json json_of(const std::filesystem::path& file) { return parse_config(file); }

// Names of the golden models, ascending: of those that also have the given file ("model.gguf"), by
// default all.
inline std::vector<std::string> golden_names(const char* file = "golden.json") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_directory(""))) {
    const bool is_one = std::filesystem::exists(entry.path() / "golden.json") &&
                        std::filesystem::exists(entry.path() / file);
    if (is_one) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "logits" of the folder's golden.safetensors.
inline Rows golden_logits(const std::filesystem::path& folder) {
  const auto source = open_safetensors(folder / "golden.safetensors");
  const TensorView* view = source->find("logits");
  Rows logits(static_cast<std::size_t>(view->shape[0]),
              Row(static_cast<std::size_t>(view->shape[1])));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    decode_rows(*view, static_cast<std::int64_t>(i), 1, logits[i]);
  }
  return logits;
}

struct GoldenModel {
  explicit GoldenModel(const std::string& name) : directory(golden_directory(name)) {
    const nlohmann::json json = json_of(directory / "golden.json");
    ids = json["ids"].get<std::vector<TokenId>>();
    encoder_ids = json.value("encoder_ids", std::vector<TokenId>{});
    greedy = json["greedy"].get<std::vector<TokenId>>();
    logits = golden_logits(directory);
  }

  std::filesystem::path directory;
  std::vector<TokenId> encoder_ids;  // for an encoder-decoder
  std::vector<TokenId> ids;          // longer than the window, if there is one
  std::vector<TokenId> greedy;       // after them
  Rows logits;                       // (ids.size(), vocabulary_size)
};

inline std::unique_ptr<LanguageModel> load_f32(const std::filesystem::path& path) {
  return load_model(path, {.weights = WeightKind::f32, .kv = kernels::KvKind::f32, .n_threads = 2});
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_MODELS_H_
