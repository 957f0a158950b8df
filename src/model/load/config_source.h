// What a model's files say about its shape, by key: one reader for config.json and GGUF metadata.
#ifndef OUTRIDER_MODEL_LOAD_CONFIG_SOURCE_H_
#define OUTRIDER_MODEL_LOAD_CONFIG_SOURCE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace outrider {

// What the two formats call the same thing. gguf: behind "<architecture>.". Null: the format has no
// such key.
struct ConfigKey {
  const char* hugging_face;
  const char* gguf;
};

// Where a RoPE table stands.
struct RopeKeys {
  ConfigKey theta = {"rope_theta", "rope.freq_base"};
  // In config.json, the section of rope_parameters that is of these layers ("full_attention"); or
  // null.
  const char* layer_type = nullptr;
  bool may_be_scaled = true;  // the file's scaling is of this table
  // config.json's key of the share of a head that turns, beside "partial_rotary_factor"; null: the
  // family turns whole heads, and another share is refused.
  const char* share = nullptr;
  double default_share = 1;
  // RopeConfig::query_beta: config.json's key in the scaling's section. Null: queries are not
  // scaled by their positions, and a file that says so is refused.
  ConfigKey query_beta = {nullptr, nullptr};
  double default_theta = 10000;
  // The scaling is "proportional" (RopeConfig) and no other: a file's share of a head is that of
  // its pairs. What the file does not say is default_share.
  bool proportional = false;
  // Pairs of a head turn by different positions of images (M-RoPE). Those of text are alike, so
  // that such a file's sections change nothing; other families' files must not have any.
  bool has_sections = false;
};

// Every look-up notes its key; refuse_unread() then names a key that nobody asked for. Look-ups
// throw Error naming file and key on a value of another type. Not thread-safe.
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
  // (n_layers): a number for each, or one for all. Throws Error on another number of numbers.
  virtual std::optional<std::vector<int>> of_layers(const ConfigKey& key, int n_layers) const = 0;
  virtual std::optional<std::vector<bool>> flags(const ConfigKey& key) const = 0;
  // Infinities, too.
  virtual std::optional<std::vector<double>> reals(const ConfigKey& key) const = 0;
  // Whether the file has the key at all: config.json may hold null for it.
  virtual bool has(const ConfigKey& key) const = 0;
  // Throws Error that names the file: key to be `expected`.
  [[noreturn]] virtual void fail(const ConfigKey& key, std::string_view expected,
                                 std::string_view got) const = 0;

  virtual int vocabulary_size() const = 0;
  // Elements of a head that turn, its first ones; 0: all. Refuses a part where keys.share is null.
  virtual int rotary_dim(const RopeKeys& keys, int head_dim) const = 0;
  // Of heads of which so many elements turn.
  virtual RopeConfig rope(const RopeKeys& keys, int rotated_dim) const = 0;
  // Whether the output matrix is the embedding; `otherwise` where config.json does not say.
  virtual bool has_tied_head(bool otherwise) const = 0;
  // Whether the products of that part have biases: config.json's key, or a tensor of GGUF's.
  virtual bool has_bias(const char* hugging_face_key, const char* gguf_tensor) const = 0;

  // bos_token, end_tokens and mask_token, of a config whose shape is right. Throws Error on ids
  // that are no numbers.
  virtual void read_special_tokens(ModelConfig& config) const = 0;
  // Of encoder-decoders, the token that the decoder's texts begin with, as generation_config.json
  // has it, else the file itself; nothing where neither says.
  virtual std::optional<TokenId> start_token() const = 0;
  // The file, for error messages.
  virtual std::string description() const = 0;

  // Throws Error that names a key of meaning nobody asked for.
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

// What families call what they all have.
struct DecoderKeys {
  ConfigKey context_length = {"max_position_embeddings", "context_length"};
  ConfigKey n_layers = {"num_hidden_layers", "block_count"};
  ConfigKey dim = {"hidden_size", "embedding_length"};
  ConfigKey n_heads = {"num_attention_heads", "attention.head_count"};
  ConfigKey n_kv_heads = {"num_key_value_heads", "attention.head_count_kv"};
  ConfigKey head_dim = {"head_dim", "attention.key_length"};
  ConfigKey value_dim = {nullptr, "attention.value_length"};  // the same, where a file says it
  ConfigKey hidden_dim = {"intermediate_size", "feed_forward_length"};
  ConfigKey norm_epsilon = {"rms_norm_eps", "attention.layer_norm_rms_epsilon"};
};

// How decoders differ in what they all say.
struct DecoderDefaults {
  const char* architecture = "";  // ModelConfig::architecture
  DecoderKeys keys = {};
  const char* activation_key = "hidden_act";
  const char* activation = "silu";  // the one that the family computes with; null: it reads its own
  int n_layers = 0;        // of files that list layers and need not count them; 0: the file's
  int widening = 0;        // hidden_dim where the file has none: so many dim; 0: it must
  int context_length = 0;  // of positions without an end, whatever the file says; 0: the file's
  bool tied_head = false;  // where config.json does not say
  bool has_special_tokens = true;  // false: of a head, whose tokens are its target's
  bool has_rope = true;
  RopeKeys rope = {};
};

// What all families share, its bounds checked (check_config).
ModelConfig read_decoder_config(const ConfigSource& source, const DecoderDefaults& defaults);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_CONFIG_SOURCE_H_
