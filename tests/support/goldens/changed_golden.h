// SPDX-License-Identifier: Apache-2.0
// Golden models (golden_models.h) with a changed config.json.
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_CHANGED_GOLDEN_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_CHANGED_GOLDEN_H_

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/families/registry.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {

// As a value it removes the key. (null is a valid value in config.json.)
inline constexpr const char* kNoKey = "(none)";

// Writes the golden's config.json with these keys set to the directory.
inline void write_changed_config(const std::string& golden, const nlohmann::json& changes,
                                 const std::filesystem::path& directory) {
  nlohmann::json config = json_of(golden_directory(golden) / "config.json");
  for (const auto& [key, value] : changes.items()) {
    if (value == kNoKey) {
      config.erase(key);
    } else {
      config[key] = value;
    }
  }
  std::ofstream(directory / "config.json") << config.dump();
}

// Copies all of the golden's files, with that config.json, to an empty directory.
inline void copy_changed(const std::string& golden, const nlohmann::json& changes,
                         const std::filesystem::path& directory) {
  std::filesystem::copy(golden_directory(golden), directory,
                        std::filesystem::copy_options::recursive);
  write_changed_config(golden, changes, directory);
}

// The result of reading a configuration: a family, or an error's text.
struct ReadConfig {
  std::unique_ptr<const Family> family;
  std::string refusal;
};

inline ReadConfig read_changed(const std::string& golden, const nlohmann::json& changes) {
  const TemporaryDirectory directory;
  write_changed_config(golden, changes, directory.path());
  ReadConfig read;
  try {
    read.family = read_family(directory.path());
  } catch (const Error& error) {
    read.refusal = error.what();
  }
  return read;
}

// The error of loading the model; "" if there is none.
inline std::string refusal_to_load(const std::string& golden, const nlohmann::json& changes) {
  const TemporaryDirectory directory;
  copy_changed(golden, changes, directory.path());
  try {
    (void)load_f32(directory.path());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The logits of one block with all ids.
inline Rows logits_of(const std::filesystem::path& path, const std::vector<TokenId>& ids) {
  const auto model = load_f32(path);
  const auto sequence = model->open({});
  return run_block(*model, *sequence, ids);
}

inline Rows logits_of_changed(const std::string& golden, const nlohmann::json& changes) {
  const TemporaryDirectory directory;
  copy_changed(golden, changes, directory.path());
  return logits_of(directory.path(), GoldenModel(golden).ids);
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_CHANGED_GOLDEN_H_
