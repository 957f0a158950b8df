#include "model/llama_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>

#include "model/stored_weights.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "load weights";

// What the two schemes call the same tensors. {} is the layer.
struct Names {
  const char* embedding;
  const char* final_norm;
  const char* head;
  const char* attention_norm;
  const char* query;
  const char* key;
  const char* value;
  const char* output;
  const char* mlp_norm;
  const char* gate;
  const char* up;
  const char* down;
};

constexpr Names kHuggingFaceNames = {
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .head = "lm_head",
    .attention_norm = "model.layers.{}.input_layernorm",
    .query = "model.layers.{}.self_attn.q_proj",
    .key = "model.layers.{}.self_attn.k_proj",
    .value = "model.layers.{}.self_attn.v_proj",
    .output = "model.layers.{}.self_attn.o_proj",
    .mlp_norm = "model.layers.{}.post_attention_layernorm",
    .gate = "model.layers.{}.mlp.gate_proj",
    .up = "model.layers.{}.mlp.up_proj",
    .down = "model.layers.{}.mlp.down_proj",
};

constexpr Names kGgufNames = {
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .attention_norm = "blk.{}.attn_norm",
    .query = "blk.{}.attn_q",
    .key = "blk.{}.attn_k",
    .value = "blk.{}.attn_v",
    .output = "blk.{}.attn_output",
    .mlp_norm = "blk.{}.ffn_norm",
    .gate = "blk.{}.ffn_gate",
    .up = "blk.{}.ffn_up",
    .down = "blk.{}.ffn_down",
};

// Whether a product has a bias in the file, must have one, or must not.
enum class Bias { never, always, if_stored };

// Runs twice over the same list of tensors: first to check every one of them, then to read them.
class Loader {
 public:
  Loader(const TensorSource& source, const ModelConfig& config, const WeightOptions& options)
      : source_(source),
        config_(config),
        options_(options),
        names_(options.names == NamingScheme::gguf ? kGgufNames : kHuggingFaceNames) {}

  LlamaWeights run() {
    walk();
    reading_ = true;
    n_bytes_total_ = std::exchange(n_bytes_seen_, 0);
    return walk();
  }

 private:
  LlamaWeights walk() {
    const int dim = config_.dim;
    const int queries = config_.n_heads * config_.head_dim;
    const int keys = config_.n_kv_heads * config_.head_dim;
    const Bias attention_bias = config_.attention_bias ? Bias::always : Bias::never;
    const Bias mlp_bias = config_.mlp_bias ? Bias::always : Bias::never;

    LlamaWeights weights;
    weights.embedding = tensor(weight_of(names_.embedding), {config_.vocabulary_size, dim});
    for (int i = 0; i < config_.n_layers; ++i) {
      LlamaLayer layer;
      layer.attention_norm = vector(weight_of(in_layer(names_.attention_norm, i)), dim);
      layer.query = linear(in_layer(names_.query, i), queries, dim, attention_bias, Rows::rotated);
      layer.key = linear(in_layer(names_.key, i), keys, dim, attention_bias, Rows::rotated);
      layer.value = linear(in_layer(names_.value, i), keys, dim, attention_bias);
      layer.output = linear(in_layer(names_.output, i), dim, queries,
                            config_.attention_bias ? Bias::if_stored : Bias::never);
      layer.mlp_norm = vector(weight_of(in_layer(names_.mlp_norm, i)), dim);
      layer.gate = linear(in_layer(names_.gate, i), config_.hidden_dim, dim, mlp_bias);
      layer.up = linear(in_layer(names_.up, i), config_.hidden_dim, dim, mlp_bias);
      layer.down = linear(in_layer(names_.down, i), dim, config_.hidden_dim, mlp_bias);
      weights.layers.push_back(std::move(layer));
    }
    weights.final_norm = vector(weight_of(names_.final_norm), dim);
    const char* head = config_.tied_head ? names_.embedding : names_.head;
    weights.head = linear(head, config_.vocabulary_size, dim, Bias::never).matrix;
    weights.quantized = has_quantized_;
    weights.all_f32 = !has_quantized_ && !has_bf16_;
    return weights;
  }

  static std::string in_layer(const char* name, int layer) {
    return fmt::format(fmt::runtime(name), layer);
  }
  static std::string weight_of(const std::string& name) { return name + ".weight"; }

  // The tensor of that name, once its type and shape are known to be right.
  const TensorView& tensor(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const TensorView* found = source_.find(name);
    if (found == nullptr) {
      throw Error(kOperation, source_.description(), fmt::format("a tensor {}", name), "none");
    }
    if (found->shape != shape) {
      throw Error(kOperation, source_.description(),
                  fmt::format("tensor {} of shape ({})", name, fmt::join(shape, ", ")),
                  fmt::format("({})", fmt::join(found->shape, ", ")));
    }
    if (!is_weight_type(found->type)) {
      throw Error(kOperation, source_.description(),
                  fmt::format("tensor {} of type f32, f16, bf16, q8_0, q4_0, q4_1 or q6_k", name),
                  name_of(found->type));
    }
    return *found;
  }

  std::vector<float> vector(const std::string& name, int n) const {
    const TensorView& view = tensor(name, {n});
    std::vector<float> values;
    if (reading_) {
      values.resize(static_cast<std::size_t>(n));
      decode_rows(view, 0, 1, values);
    }
    return values;
  }

  enum class Rows { plain, rotated };  // rotated: by RoPE, and so interleaved in GGUF

  Linear linear(const std::string& name, int n_columns, int k, Bias bias, Rows rows = Rows::plain) {
    const bool interleaved = rows == Rows::rotated && options_.names == NamingScheme::gguf;
    const std::string bias_name = name + ".bias";
    const bool has_bias = source_.find(bias_name) != nullptr;
    if (bias == Bias::never && has_bias) {
      throw Error(kOperation, source_.description(),
                  fmt::format("no tensor {} (the config says there is no bias)", bias_name), "one");
    }

    const TensorView& view = tensor(weight_of(name), {n_columns, k});
    Linear result;
    if (has_bias || bias == Bias::always) {
      result.bias = vector(bias_name, n_columns);
      if (interleaved && reading_) result.bias = half_split(result.bias, config_.head_dim);
    }
    if (reading_) {
      const StoredWeights stored(view, kind_for(view), interleaved ? config_.head_dim : 0);
      result.matrix = Matrix::pack(stored, *options_.table, options_.n_threads);
    } else {
      const WeightKind kind = options_.kind.value_or(native_kind(view.type));
      has_quantized_ |= kind == WeightKind::int8 || kind == WeightKind::int4;
      has_bf16_ |= kind == WeightKind::bf16;
    }
    advance(view.data.size());
    return result;
  }

  // In a quantised model nothing runs as bf16: matrix units round bf16 products in ways of their
  // own, and its bits must be the same on every table. So what the file left unquantised (often the
  // head) is widened to f32.
  WeightKind kind_for(const TensorView& view) const {
    const WeightKind kind = options_.kind.value_or(native_kind(view.type));
    return kind == WeightKind::bf16 && has_quantized_ ? WeightKind::f32 : kind;
  }

  // Biases change places as the rows they belong to (stored_weights.h).
  static std::vector<float> half_split(const std::vector<float>& interleaved, int head_dim) {
    const auto width = static_cast<std::size_t>(head_dim);
    std::vector<float> split(interleaved.size());
    for (std::size_t head = 0; head < interleaved.size(); head += width) {
      for (std::size_t i = 0; i < width / 2; ++i) {
        split[head + i] = interleaved[head + 2 * i];
        split[head + width / 2 + i] = interleaved[head + 2 * i + 1];
      }
    }
    return split;
  }

  void advance(std::size_t n_bytes) {
    n_bytes_seen_ += n_bytes;
    if (reading_ && options_.progress) {
      options_.progress(static_cast<double>(n_bytes_seen_) / static_cast<double>(n_bytes_total_));
    }
  }

  const TensorSource& source_;
  const ModelConfig& config_;
  const WeightOptions& options_;
  const Names& names_;
  bool reading_ = false;  // false: the first walk, which checks
  bool has_quantized_ = false;
  bool has_bf16_ = false;
  std::size_t n_bytes_seen_ = 0;
  std::size_t n_bytes_total_ = 0;
};

}  // namespace

LlamaWeights load_llama_weights(const TensorSource& source, const ModelConfig& config,
                                const WeightOptions& options) {
  return Loader(source, config, options).run();
}

}  // namespace outrider
