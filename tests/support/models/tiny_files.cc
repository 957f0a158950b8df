// SPDX-License-Identifier: Apache-2.0
// Tiny models as files: the writing half of tiny_model.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "base/float16.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_tokenizer.h"

namespace outrider::test {
namespace {

using Bytes = std::vector<std::byte>;

// Little-endian, as both formats are; the library runs only on little-endian machines.
template <typename T>
void put(Bytes& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put_text(Bytes& out, const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), bytes, bytes + text.size());
}

void write_file(const std::filesystem::path& file, const Bytes& bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + file.string());
}

int rounded(float value, int low, int high) {
  return std::clamp(static_cast<int>(std::lround(value)), low, high);
}

// The element of largest magnitude, with its sign.
float extreme(std::span<const float> values) {
  float best = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(best)) best = value;
  }
  return best;
}

void put_q8_0(Bytes& out, std::span<const float> block) {
  const F16 scale = to_f16(std::fabs(extreme(block)) / 127);
  const float step = to_float(scale);
  put(out, scale.bits);
  for (const float value : block) {
    put(out, static_cast<std::int8_t>(step == 0 ? 0 : rounded(value / step, -127, 127)));
  }
}

void put_halves(Bytes& out, const std::array<int, 32>& quants) {
  for (std::size_t i = 0; i < 16; ++i) {
    put(out, static_cast<std::uint8_t>(quants[i] | (quants[i + 16] << 4)));
  }
}

// The element of largest magnitude becomes -8 steps, so that the scale may be negative.
void put_q4_0(Bytes& out, std::span<const float> block) {
  const F16 scale = to_f16(extreme(block) / -8);
  const float step = to_float(scale);
  put(out, scale.bits);
  std::array<int, 32> quants;
  for (std::size_t i = 0; i < 32; ++i) {
    quants[i] = step == 0 ? 8 : rounded(block[i] / step + 8, 0, 15);
  }
  put_halves(out, quants);
}

void put_q4_1(Bytes& out, std::span<const float> block) {
  const auto [least, most] = std::minmax_element(block.begin(), block.end());
  const F16 scale = to_f16((*most - *least) / 15);
  const F16 minimum = to_f16(*least);
  const float step = to_float(scale);
  put(out, scale.bits);
  put(out, minimum.bits);
  std::array<int, 32> quants;
  for (std::size_t i = 0; i < 32; ++i) {
    quants[i] = step == 0 ? 0 : rounded((block[i] - to_float(minimum)) / step, 0, 15);
  }
  put_halves(out, quants);
}

// 256 elements in 16 groups of 16: value = d * scale[group] * (q - 32), with q of six bits. The
// lower four bits take 128 bytes, the upper two 64; 16 scales and d follow. Each half of 128
// elements has its own 64 and 32 bytes; in a half, byte l holds elements l and l + 64 (or l - 32 +
// 32, + 96).
void put_q6_k(Bytes& out, std::span<const float> block) {
  float largest_step = 0;
  std::array<float, 16> steps;
  for (std::size_t group = 0; group < 16; ++group) {
    steps[group] = std::fabs(extreme(block.subspan(group * 16, 16))) / 31;
    largest_step = std::max(largest_step, steps[group]);
  }
  const F16 d = to_f16(largest_step / 127);
  std::array<std::int8_t, 16> scales;
  std::array<std::uint8_t, 256> quants;
  for (std::size_t group = 0; group < 16; ++group) {
    scales[group] = static_cast<std::int8_t>(
        to_float(d) == 0 ? 0 : rounded(steps[group] / to_float(d), 0, 127));
    const float step = to_float(d) * scales[group];
    for (std::size_t i = group * 16; i < group * 16 + 16; ++i) {
      quants[i] = static_cast<std::uint8_t>(step == 0 ? 32 : rounded(block[i] / step + 32, 0, 63));
    }
  }
  for (std::size_t half = 0; half < 256; half += 128) {
    for (std::size_t l = 0; l < 64; ++l) {
      put(out,
          static_cast<std::uint8_t>((quants[half + l] & 15) | ((quants[half + l + 64] & 15) << 4)));
    }
  }
  for (std::size_t half = 0; half < 256; half += 128) {
    for (std::size_t l = 0; l < 32; ++l) {
      unsigned upper = 0;
      for (std::size_t part = 0; part < 4; ++part) {
        upper |= static_cast<unsigned>(quants[half + l + 32 * part] >> 4) << (2 * part);
      }
      put(out, static_cast<std::uint8_t>(upper));
    }
  }
  for (const std::int8_t scale : scales) put(out, scale);
  put(out, d.bits);
}

std::string safetensors_name(ElementType type) {
  return type == ElementType::f32 ? "F32" : type == ElementType::f16 ? "F16" : "BF16";
}

// GGUF's number for a type.
std::uint32_t gguf_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return 0;
    case ElementType::f16:
      return 1;
    case ElementType::q4_0:
      return 2;
    case ElementType::q4_1:
      return 3;
    case ElementType::q8_0:
      return 8;
    case ElementType::q6_k:
      return 14;
    case ElementType::bf16:
      return 30;
    default:
      throw std::invalid_argument("a type that tiny models have not");
  }
}

// model.layers.3.self_attn.q_proj.weight -> blk.3.attn_q.weight
std::string gguf_name(const std::string& name) {
  static const std::array<std::pair<const char*, const char*>, 16> kPairs = {{
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"block_sparse_moe.gate", "ffn_gate_inp"},
      {"block_sparse_moe.experts.0.w1", "ffn_gate_exps"},
      {"block_sparse_moe.experts.0.w2", "ffn_down_exps"},
      {"block_sparse_moe.experts.0.w3", "ffn_up_exps"},
  }};
  std::string result = name;
  for (const auto& [from, to] : kPairs) {
    const std::size_t at = result.find(from);
    if (at != std::string::npos) {
      result.replace(at, std::strlen(from), to);
      break;
    }
  }
  constexpr const char* kPrefix = "model.layers.";
  if (result.starts_with(kPrefix)) result.replace(0, std::strlen(kPrefix), "blk.");
  return result;
}

// The matrices of all experts in one tensor, (n_experts, rows, width); `first` is that of expert 0.
TinyTensor stacked(const TinyModel& model, const TinyTensor& first) {
  TinyTensor all{first.name, first.shape, {}};
  all.shape.insert(all.shape.begin(), model.shape.n_experts);
  for (int expert = 0; expert < model.shape.n_experts; ++expert) {
    std::string name = first.name;
    name.replace(name.find("experts.0."), 10, fmt::format("experts.{}.", expert));
    const std::vector<float>& values = model.find(name)->values;
    all.values.insert(all.values.end(), values.begin(), values.end());
  }
  return all;
}

// Half-split rows (i, i + head_dim / 2) to interleaved ones (2i, 2i + 1), head by head.
std::vector<float> interleaved(const TinyTensor& tensor, int head_dim) {
  const auto width = static_cast<std::size_t>(tensor.shape.size() == 2 ? tensor.shape[1] : 1);
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto head = static_cast<std::size_t>(head_dim);
  std::vector<float> result(tensor.values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t in_head = row % head;
    const std::size_t to = row - in_head + 2 * (in_head % (head / 2)) + in_head / (head / 2);
    std::copy_n(tensor.values.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                result.begin() + static_cast<std::ptrdiff_t>(to * width));
  }
  return result;
}

class GgufWriter {
 public:
  void text(const std::string& key, const std::string& value) {
    start(key, 8);
    sized_text(metadata_, value);
  }
  void number(const std::string& key, std::uint32_t value) {
    start(key, 4);
    put(metadata_, value);
  }
  void real(const std::string& key, float value) {
    start(key, 6);
    put(metadata_, value);
  }
  void flag(const std::string& key, bool value) {
    start(key, 7);
    put(metadata_, static_cast<std::uint8_t>(value));
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    start_array(key, 8, values.size());
    for (const std::string& value : values) sized_text(metadata_, value);
  }
  void numbers(const std::string& key, const std::vector<std::int32_t>& values) {
    start_array(key, 5, values.size());
    for (const std::int32_t value : values) put(metadata_, value);
  }
  void tensor(const std::string& name, const std::vector<std::int64_t>& shape, ElementType type,
              const Bytes& bytes) {
    sized_text(descriptions_, name);
    put(descriptions_, static_cast<std::uint32_t>(shape.size()));
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
      put(descriptions_, static_cast<std::uint64_t>(*extent));
    }
    put(descriptions_, gguf_type(type));
    put(descriptions_, static_cast<std::uint64_t>(data_.size()));
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    data_.resize((data_.size() + kAlignment - 1) / kAlignment * kAlignment);
    ++n_tensors_;
  }
  Bytes finish() const {
    Bytes file;
    put_text(file, "GGUF");
    put(file, std::uint32_t{3});
    put(file, n_tensors_);
    put(file, n_keys_);
    file.insert(file.end(), metadata_.begin(), metadata_.end());
    file.insert(file.end(), descriptions_.begin(), descriptions_.end());
    file.resize((file.size() + kAlignment - 1) / kAlignment * kAlignment);
    file.insert(file.end(), data_.begin(), data_.end());
    return file;
  }

 private:
  static constexpr std::size_t kAlignment = 32;  // the format's default
  static void sized_text(Bytes& out, const std::string& value) {
    put(out, static_cast<std::uint64_t>(value.size()));
    put_text(out, value);
  }
  void start(const std::string& key, std::uint32_t type) {
    sized_text(metadata_, key);
    put(metadata_, type);
    ++n_keys_;
  }
  void start_array(const std::string& key, std::uint32_t type, std::size_t n) {
    start(key, 9);
    put(metadata_, type);
    put(metadata_, static_cast<std::uint64_t>(n));
  }

  Bytes metadata_;
  Bytes descriptions_;
  Bytes data_;
  std::uint64_t n_keys_ = 0;
  std::uint64_t n_tensors_ = 0;
};

void put_metadata(GgufWriter& writer, const TinyShape& shape) {
  const auto number = [&](const char* key, int value) {
    writer.number(key, static_cast<std::uint32_t>(value));
  };
  writer.text("general.architecture", "llama");
  number("llama.context_length", shape.context_length);
  number("llama.embedding_length", shape.dim);
  number("llama.block_count", shape.n_layers);
  number("llama.feed_forward_length", shape.hidden_dim);
  if (shape.n_experts > 0) {
    number("llama.expert_count", shape.n_experts);
    number("llama.expert_used_count", shape.n_experts_used);
  }
  number("llama.attention.head_count", shape.n_heads);
  number("llama.attention.head_count_kv", shape.n_kv_heads);
  number("llama.attention.key_length", shape.head_dim);
  number("llama.attention.value_length", shape.head_dim);
  number("llama.rope.dimension_count", shape.head_dim);
  writer.real("llama.rope.freq_base", static_cast<float>(shape.rope.theta));
  if (shape.rope.scaling == RopeConfig::Scaling::linear) {
    writer.text("llama.rope.scaling.type", "linear");
    writer.real("llama.rope.scaling.factor", static_cast<float>(shape.rope.factor));
  }
  writer.real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  number("llama.vocab_size", shape.vocabulary_size);
  if (shape.mask_token != kNoToken) number("tokenizer.ggml.mask_token_id", shape.mask_token);
}

void put_vocabulary(GgufWriter& writer, const TinyVocabulary& vocabulary) {
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "gpt-2");
  writer.texts("tokenizer.ggml.tokens", vocabulary.tokens);
  constexpr std::int32_t kNormal = 1;
  constexpr std::int32_t kControl = 3;
  constexpr std::int32_t kUnused = 5;
  std::vector<std::int32_t> types(vocabulary.tokens.size(), kNormal);
  types[0] = types[1] = kControl;
  std::fill(types.end() - vocabulary.n_unused, types.end(), kUnused);
  writer.numbers("tokenizer.ggml.token_type", types);
  std::vector<std::string> merges;
  for (const auto& [left, right] : vocabulary.merges) merges.push_back(left + " " + right);
  writer.texts("tokenizer.ggml.merges", merges);
  writer.number("tokenizer.ggml.bos_token_id", 0);
  writer.number("tokenizer.ggml.eos_token_id", 1);
  writer.flag("tokenizer.ggml.add_bos_token", true);
}

// Models with fewer tokens than bytes have no tokenizer: they are for tests of the forward pass.
constexpr int kMinVocabulary = 258;

}  // namespace

std::vector<std::byte> encode_values(const std::vector<float>& values, std::int64_t width,
                                     ElementType type) {
  const auto block = static_cast<std::int64_t>(block_elements(type));
  if (width % block != 0) {
    throw std::invalid_argument(fmt::format("rows of {} in blocks of {}", width, block));
  }
  Bytes bytes;
  for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(block)) {
    const std::span<const float> part(values.data() + at, static_cast<std::size_t>(block));
    switch (type) {
      case ElementType::f32:
        put(bytes, part[0]);
        break;
      case ElementType::f16:
        put(bytes, to_f16(part[0]).bits);
        break;
      case ElementType::bf16:
        put(bytes, to_bf16(part[0]).bits);
        break;
      case ElementType::q8_0:
        put_q8_0(bytes, part);
        break;
      case ElementType::q4_0:
        put_q4_0(bytes, part);
        break;
      case ElementType::q4_1:
        put_q4_1(bytes, part);
        break;
      case ElementType::q6_k:
        put_q6_k(bytes, part);
        break;
      default:
        throw std::invalid_argument("a type that tiny models have not");
    }
  }
  return bytes;
}

void write_hugging_face(const TinyModel& model, const std::filesystem::path& directory,
                        ElementType type) {
  std::filesystem::create_directories(directory);
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  Bytes data;
  for (const TinyTensor& tensor : model.tensors) {
    const std::size_t begin = data.size();
    const Bytes bytes = encode_values(tensor.values, tensor.shape.back(), type);
    data.insert(data.end(), bytes.begin(), bytes.end());
    header[tensor.name] = {{"dtype", safetensors_name(type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  Bytes file;
  put(file, static_cast<std::uint64_t>(text.size()));
  put_text(file, text);
  file.insert(file.end(), data.begin(), data.end());
  write_file(directory / "model.safetensors", file);

  const auto write_text = [&](const char* name, const std::string& content) {
    Bytes bytes;
    put_text(bytes, content);
    write_file(directory / name, bytes);
  };
  write_text("config.json", config_json(model.shape, type));
  write_text("generation_config.json", "{\"bos_token_id\": 0, \"eos_token_id\": [1]}\n");
  if (model.shape.vocabulary_size >= kMinVocabulary) {
    write_text("tokenizer.json", tokenizer_json(make_tiny_vocabulary(model.shape.vocabulary_size)));
  }
}

void write_gguf(const TinyModel& model, const std::filesystem::path& file, const GgufTypes& types) {
  GgufWriter writer;
  put_metadata(writer, model.shape);
  if (model.shape.vocabulary_size >= kMinVocabulary) {
    put_vocabulary(writer, make_tiny_vocabulary(model.shape.vocabulary_size));
  }
  if (model.shape.rope.scaling == RopeConfig::Scaling::llama3) {
    // As the public converter writes them: the divisor of each frequency.
    ModelConfig config;
    config.head_dim = model.shape.head_dim;
    config.rope.theta = model.shape.rope.theta;
    const std::vector<double> plain = rope_frequencies(config);
    config.rope = model.shape.rope;
    const std::vector<double> scaled = rope_frequencies(config);
    std::vector<float> divisors;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      divisors.push_back(static_cast<float>(plain[i] / scaled[i]));
    }
    const auto n = static_cast<std::int64_t>(divisors.size());
    writer.tensor("rope_freqs.weight", {n}, ElementType::f32,
                  encode_values(divisors, n, ElementType::f32));
  }
  const std::string head = model.shape.tied_head ? "model.embed_tokens.weight" : "lm_head.weight";
  for (const TinyTensor& one : model.tensors) {
    const bool of_expert = one.name.find(".experts.") != std::string::npos;
    if (of_expert && one.name.find(".experts.0.") == std::string::npos) continue;
    const TinyTensor tensor = of_expert ? stacked(model, one) : one;
    const bool rotated = tensor.name.find("q_proj") != std::string::npos ||
                         tensor.name.find("k_proj") != std::string::npos;
    const std::vector<float> values =
        rotated ? interleaved(tensor, model.shape.head_dim) : tensor.values;
    const bool is_router = tensor.name.find("block_sparse_moe.gate") != std::string::npos;
    const ElementType type = tensor.shape.size() < 2 || is_router ? ElementType::f32
                             : tensor.name == head                ? types.head
                                                                  : types.matrices;
    writer.tensor(gguf_name(tensor.name), tensor.shape, type,
                  encode_values(values, tensor.shape.back(), type));
  }
  write_file(file, writer.finish());
}

}  // namespace outrider::test
