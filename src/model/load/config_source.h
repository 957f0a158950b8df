// SPDX-License-Identifier: Apache-2.0
// A model's configuration by key: one reader for config.json and GGUF metadata.
#ifndef OUTRIDER_MODEL_LOAD_CONFIG_SOURCE_H_
#define OUTRIDER_MODEL_LOAD_CONFIG_SOURCE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace outrider {

// The two formats' names for the same value. gguf: after "<architecture>.". Null: the format has no
// such key.
struct ConfigKey {
  const char* hugging_face;
  const char* gguf;
};

// The keys of a RoPE table.
struct RopeKeys {
  ConfigKey theta = {"rope_theta", "rope.freq_base"};
  // In config.json, the section of rope_parameters for these layers ("full_attention"); or null.
  const char* layer_type = nullptr;
  bool may_be_scaled = true;  // the file's scaling applies to this table
  // config.json's key of the rotated share of a head, besides "partial_rotary_factor"; null: the
  // family rotates whole heads, and another share is refused.
  const char* share = nullptr;
  double default_share = 1;
  // RopeConfig::query_beta: config.json's key in the section of the scaling. Null: queries are not
  // scaled by their positions, and a file that says so is refused.
  ConfigKey query_beta = {nullptr, nullptr};
  double default_theta = 10000;
  // Only the scaling "proportional" (RopeConfig): a file's share of a head is that of its pairs,
  // default_share if it has none.
  bool proportional = false;
  // Pairs of a head rotate by different positions of images (M-RoPE). For text these are equal, so
  // such a file's sections change nothing; other families refuse files with sections.
  bool has_sections = false;
};

// Every look-up records its key; refuse_unread() then names a key that was not looked up. Look-ups
// throw Error with file and key on a value of another type. Not thread-safe.
class ConfigSource {
 public:
  virtual ~ConfigSource() = default;
  virtual bool is_gguf() const = 0;

  virtual std::optional<int> whole(const ConfigKey& key) const = 0;
  virtual std::optional<double> real(const ConfigKey& key) const = 0;
  virtual std::optional<bool> flag(const ConfigKey& key) const = 0;
  virtual std::optional<std::string> text(const ConfigKey& key) const = 0;
  virtual std::optional<std::vector<std::string>> texts(const ConfigKey& key) const = 0;
  virtual std::optional<std::vector<int>> wholes(const ConfigKey& key) const = 0;
  // (n_layers): one number for each, or one for all. Throws Error on another number of entries.
  virtual std::optional<std::vector<int>> of_layers(const ConfigKey& key, int n_layers) const = 0;
  virtual std::optional<std::vector<bool>> flags(const ConfigKey& key) const = 0;
  // Allows infinities.
  virtual std::optional<std::vector<double>> reals(const ConfigKey& key) const = 0;
  // Whether the file has the key at all; in config.json it may be null.
  virtual bool has(const ConfigKey& key) const = 0;
  // Throws Error with the file: key to be `expected`.
  [[noreturn]] virtual void fail(const ConfigKey& key, std::string_view expected,
                                 std::string_view got) const = 0;

  virtual int vocabulary_size() const = 0;
  // Rotated elements of a head, its first ones; 0: all. Refuses a part if keys.share is null.
  virtual int rotary_dim(const RopeKeys& keys, int head_dim) const = 0;
  // For heads with rotated_dim rotated elements.
  virtual RopeConfig rope(const RopeKeys& keys, int rotated_dim) const = 0;
  // Whether the output matrix is the embedding; `otherwise` if config.json does not say.
  virtual bool has_tied_head(bool otherwise) const = 0;
  // Whether the products of that part have biases: by config.json's key, or by GGUF's tensor.
  virtual bool has_bias(const char* hugging_face_key, const char* gguf_tensor) const = 0;

  // Reads bos_token, end_tokens and mask_token; the shape in `config` must be set. Throws Error on
  // ids that are not numbers.
  virtual void read_special_tokens(ModelConfig& config) const = 0;
  // For encoder-decoders: the first token of the decoder's texts, by generation_config.json, else
  // by the file itself; empty if neither has it.
  virtual std::optional<TokenId> start_token() const = 0;
  // The file, for error messages.
  virtual std::string description() const = 0;

  // Throws Error with a meaningful key that was not looked up.
  virtual void refuse_unread() const = 0;

  int required_whole(const ConfigKey& key) const {
    const std::optional<int> value = whole(key);
    if (!value) fail(key, "there", "no such key");
    return *value;
  }
  double required_real(const ConfigKey& key) const {
    const std::optional<double> value = real(key);
    if (!value) fail(key, "there", "no such key");
    return *value;
  }
};

// Keys that all families share.
struct DecoderKeys {
  ConfigKey context_length = {"max_position_embeddings", "context_length"};
  ConfigKey n_layers = {"num_hidden_layers", "block_count"};
  ConfigKey dim = {"hidden_size", "embedding_length"};
  ConfigKey n_heads = {"num_attention_heads", "attention.head_count"};
  ConfigKey n_kv_heads = {"num_key_value_heads", "attention.head_count_kv"};
  ConfigKey head_dim = {"head_dim", "attention.key_length"};
  ConfigKey value_dim = {nullptr, "attention.value_length"};  // the same, if a file has it
  ConfigKey hidden_dim = {"intermediate_size", "feed_forward_length"};
  ConfigKey norm_epsilon = {"rms_norm_eps", "attention.layer_norm_rms_epsilon"};
};

// How decoders differ in these values.
struct DecoderDefaults {
  const char* architecture = "";  // ModelConfig::architecture
  DecoderKeys keys = {};
  const char* activation_key = "hidden_act";
  const char* activation = "silu";  // the only one supported; null: the family reads it
  int n_layers = 0;  // for files that list layers and may not count them; 0: the file's
  int widening = 0;  // hidden_dim as a multiple of dim if the file has none; 0: it is required
  int context_length = 0;          // for unlimited positions, whatever the file says; 0: the file's
  bool tied_head = false;          // if config.json does not say
  bool has_special_tokens = true;  // false: of a head, whose tokens are its target's
  bool has_rope = true;
  RopeKeys rope = {};
};

// Reads what all families share and checks bounds (check_config).
ModelConfig read_decoder_config(const ConfigSource& source, const DecoderDefaults& defaults);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_CONFIG_SOURCE_H_
