// SPDX-License-Identifier: Apache-2.0
// GGUF metadata as a ConfigSource.
#ifndef OUTRIDER_MODEL_LOAD_GGUF_CONFIG_H_
#define OUTRIDER_MODEL_LOAD_GGUF_CONFIG_H_

#include <set>
#include <string>

#include "io/gguf/gguf.h"
#include "model/load/config_source.h"

namespace outrider {

// Keys are those after "<architecture>.". For missing metadata, shapes of tensors are used.
class GgufConfig final : public ConfigSource {
 public:
  // The file must outlive it. Throws Error if the file names no architecture.
  explicit GgufConfig(const GgufFile& file);

  const std::string& architecture() const { return architecture_; }

  bool is_gguf() const override { return true; }
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

 private:
  // The full key, recorded as looked up; empty if the format has none.
  std::string full(const ConfigKey& key) const;
  std::vector<float> read_divisors(const char* name, int rotated_dim) const;
  std::optional<RopeConfig> read_longrope(RopeConfig rope, int rotated_dim) const;
  // The context that the model was trained on before it was extended.
  int original_context() const;
  RopeConfig read_scaling(const RopeKeys& keys, int rotated_dim) const;
  RopeConfig read_proportional(RopeConfig rope, int rotated_dim) const;
  RopeConfig read_yarn(RopeConfig rope, std::optional<double> factor) const;

  const GgufFile& file_;
  std::string architecture_;
  mutable std::set<std::string, std::less<>> asked_;
};

// An integer of the metadata that fits an int; nullopt if the key is absent. Throws Error.
std::optional<int> whole_of(const GgufFile& file, const std::string& key);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_GGUF_CONFIG_H_
