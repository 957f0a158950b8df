// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face directory as a ConfigSource.
#ifndef OUTRIDER_MODEL_LOAD_JSON_CONFIG_H_
#define OUTRIDER_MODEL_LOAD_JSON_CONFIG_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/files/file_folder.h"
#include "model/config_section.h"
#include "model/load/config_source.h"

namespace outrider {

// Reads old and new spellings (rope_theta / rope_parameters / rope_scaling).
class JsonConfig final : public ConfigSource {
 public:
  // Throws Error for a file that is not a JSON object, and for quantised weights.
  explicit JsonConfig(const std::filesystem::path& file);
  // `json`: the part of `file` to read. is_text_part: the file is a multimodal model's.
  JsonConfig(nlohmann::json json, std::filesystem::path file, bool is_text_part = false);
  // The same for a folder's config.json.
  JsonConfig(nlohmann::json json, FileFolder folder, bool is_text_part);

  bool is_gguf() const override { return false; }
  std::optional<int> whole(const ConfigKey& key) const override;
  std::optional<double> real(const ConfigKey& key) const override;
  std::optional<bool> flag(const ConfigKey& key) const override;
  std::optional<std::string> text(const ConfigKey& key) const override;
  std::optional<std::vector<std::string>> texts(const ConfigKey& key) const override;
  std::optional<std::vector<int>> wholes(const ConfigKey& key) const override;
  std::optional<std::vector<int>> of_layers(const ConfigKey& key, int n_layers) const override;
  std::optional<std::vector<bool>> flags(const ConfigKey& key) const override;
  std::optional<std::vector<double>> reals(const ConfigKey& key) const override;
  bool has(const ConfigKey& key) const override;
  [[noreturn]] void fail(const ConfigKey& key, std::string_view expected,
                         std::string_view got) const override;
  int vocabulary_size() const override;
  int rotary_dim(const RopeKeys& keys, int head_dim) const override;
  RopeConfig rope(const RopeKeys& keys, int rotated_dim) const override;
  bool has_tied_head(bool otherwise) const override;
  bool has_bias(const char* hugging_face_key, const char* gguf_tensor) const override;
  void read_special_tokens(ModelConfig& config) const override;
  std::optional<TokenId> start_token() const override;
  std::string description() const override;
  void refuse_unread() const override;

  const ConfigSection& section() const { return section_; }

 private:
  JsonConfig(nlohmann::json json, std::filesystem::path file, FileFolder beside, bool is_text_part);
  // Null if absent.
  const nlohmann::json* find(const ConfigKey& key) const;
  // read(entry): returns a T, or nothing if the entry is not `expected`.
  template <typename T, typename Read>
  std::optional<std::vector<T>> array_of(const ConfigKey& key, const char* expected,
                                         const Read& read) const;

  std::filesystem::path file_;
  FileFolder beside_;  // files beside config.json
  nlohmann::json json_;
  ConfigSection section_;  // refers to json_
  bool is_text_part_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_JSON_CONFIG_H_
