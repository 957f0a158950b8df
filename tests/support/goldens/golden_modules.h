// SPDX-License-Identifier: Apache-2.0
// Golden models with a multi-token prediction module, and the module's outputs
// (tests/golden/make/make_mtp_golden.py).
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_MODULES_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_MODULES_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/goldens/golden_models.h"

namespace outrider::test {

inline const std::vector<std::string>& golden_modules() {
  static const std::vector<std::string> names = {"deepseek_v3", "glm4_moe", "qwen3_5",
                                                 "qwen3_next"};
  return names;
}

struct GoldenModule {
  explicit GoldenModule(const std::string& name)
      : folder(golden_directory("mtp") / name), json(json_of(folder / "module.json")) {
    base = json["base"].get<std::string>();
    tokens = json["tokens"].get<std::vector<TokenId>>();
    n_text = GoldenModel(base).ids.size();
    logits = golden_logits(folder);
  }

  std::filesystem::path gguf() const { return folder / "target.gguf"; }
  // The base's files, and the module in a second shard, as in published directories.
  void write_directory(const std::filesystem::path& to) const {
    namespace fs = std::filesystem;
    const fs::path from = golden_directory(base);
    fs::create_directories(to);
    const char* const shards[] = {"model-00001-of-00002.safetensors",
                                  "model-00002-of-00002.safetensors"};
    fs::copy_file(from / "model.safetensors", to / shards[0]);
    fs::copy_file(folder / "module.safetensors", to / shards[1]);
    fs::copy_file(from / "generation_config.json", to / "generation_config.json");
    nlohmann::json map = nlohmann::json::object();
    for (const char* shard : shards) {
      const auto source = open_safetensors(to / shard);
      for (const TensorView& tensor : source->tensors()) map[tensor.name] = shard;
    }
    std::ofstream(to / "model.safetensors.index.json")
        << nlohmann::json{{"metadata", nlohmann::json::object()}, {"weight_map", map}}.dump();
    nlohmann::json config = json_of(from / "config.json");
    config.update(json["config"]);
    std::ofstream(to / "config.json") << config.dump();
  }

  std::filesystem::path folder;
  nlohmann::json json;
  std::string base;
  std::vector<TokenId> tokens;  // the text and the tokens the module drafts after it
  std::size_t n_text = 0;
  Rows logits;  // (tokens.size() - 1, vocabulary size): row i of the token after tokens[i + 1]
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_MODULES_H_
