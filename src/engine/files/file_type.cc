// SPDX-License-Identifier: Apache-2.0
#include "engine/files/file_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string>
#include <variant>

#include "io/blocks/block_formats.h"

namespace outrider {
namespace {

constexpr std::array kFileTypes = {
    FileType{"q8_0", 7, ElementType::q8_0}, FileType{"q6_k", 18, ElementType::q6_k},
    FileType{"q4_k_m", 15, ElementType::q4_k}, FileType{"q4_0", 2, ElementType::q4_0}};

// --- Which tensors ------------------------------------------------------------------------------

// Name parts of matrices that keep their type: norms, routers, positions, and small ones of certain
// architectures (Gemma 3n, state spaces, RWKV, T5, images, sound).
constexpr std::array<std::string_view, 36> kKept = {"_norm.weight",
                                                    "ffn_gate_inp.weight",
                                                    "ffn_gate_tid2eid.weight",
                                                    "position_embd",
                                                    "token_types.weight",
                                                    "altup",
                                                    "laurel",
                                                    "per_layer_model_proj",
                                                    "ssm_conv1d",
                                                    "shortconv.conv.weight",
                                                    "indexer.k_proj.weight",
                                                    "indexer.q_proj.weight",
                                                    "time_mix_first.weight",
                                                    "time_mix_w0.weight",
                                                    "time_mix_w1.weight",
                                                    "time_mix_w2.weight",
                                                    "time_mix_v0.weight",
                                                    "time_mix_v1.weight",
                                                    "time_mix_v2.weight",
                                                    "time_mix_a0.weight",
                                                    "time_mix_a1.weight",
                                                    "time_mix_a2.weight",
                                                    "time_mix_g1.weight",
                                                    "time_mix_g2.weight",
                                                    "time_mix_decay_w1.weight",
                                                    "time_mix_decay_w2.weight",
                                                    "time_mix_lerp_fused.weight",
                                                    "attn_rel_b.weight",
                                                    "sam.pos_embd",
                                                    "sam.neck.",
                                                    "sam.net_",
                                                    ".rel_pos",
                                                    ".patch_embd",
                                                    ".patch_merger",
                                                    "a.rvq.codebook",
                                                    "mm.a.code_embd"};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_decodable(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16 ||
         find_block_format(type) != nullptr;
}

// Float matrices, and stacks of them.
bool is_quantised(const TensorView& tensor) {
  const bool is_vector = std::all_of(tensor.shape.begin(), tensor.shape.end() - 1,
                                     [](auto size) { return size == 1; });
  return !is_vector && tensor.name.ends_with("weight") && is_decodable(tensor.type) &&
         std::none_of(kKept.begin(), kKept.end(),
                      [&](std::string_view part) { return contains(tensor.name, part); });
}

enum class Role { output, embedding, values, keys, attention_output, down, other };

Role role_of(std::string_view name) {
  if (name == "output.weight") return Role::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::embedding;
  for (const char* part : {"attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight"}) {
    if (contains(name, part)) return Role::values;
  }
  if (contains(name, "attn_k.weight")) return Role::keys;
  if (contains(name, "attn_output.weight")) return Role::attention_output;
  return contains(name, "ffn_down") ? Role::down : Role::other;
}

// N of "blk.N. ..."; -1 for tensors outside layers.
int layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int layer = -1;
  if (name.starts_with(kPrefix)) {
    name.remove_prefix(kPrefix.size());
    std::from_chars(name.data(), name.data() + name.size(), layer);
  }
  return layer;
}

// --- Which type ---------------------------------------------------------------------------------

// What the rule needs from a model's metadata.
struct ModelFacts {
  std::string architecture;
  int n_layers = 0;
  int n_experts = 0;
  // Several heads share values, in one of the known models of 80 layers.
  bool shares_values = false;
  bool has_output = false;  // has an output matrix of its own
  int n_values = 0;         // matrices of that role
};

// 0 if the key is missing or is a list with one value per layer.
std::int64_t integer_of(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find_metadata(key);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return number == nullptr ? 0 : *number;
}

ModelFacts facts_of(const GgufFile& file) {
  ModelFacts facts;
  const std::string* architecture = file.string("general.architecture");
  if (architecture != nullptr) facts.architecture = *architecture;
  const auto number = [&](std::string_view key) {
    return integer_of(file, fmt::format("{}.{}", facts.architecture, key));
  };
  // Clamped: there cannot be more layers or experts than tensors.
  const auto count = [&](std::string_view key) {
    const auto most = static_cast<std::int64_t>(file.tensors().size());
    return static_cast<int>(std::clamp<std::int64_t>(number(key), 0, most));
  };
  facts.n_layers = count("block_count");
  facts.n_experts = count("expert_count");
  facts.shares_values = facts.n_layers == 80 &&
                        (facts.architecture == "qwen2" ||
                         (facts.architecture == "llama" &&
                          number("attention.head_count") != number("attention.head_count_kv")));
  facts.has_output = file.find("output.weight") != nullptr;
  for (const TensorView& tensor : file.tensors()) {
    if (role_of(tensor.name) == Role::values) ++facts.n_values;
  }
  return facts;
}

// The first and the last eighth of the layers, and every third between them.
bool takes_more_bits(int layer, int n_layers) {
  const int eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

// Visits the tensors in file order and counts layers by their matrices, as llama-quantize does.
class Rule {
 public:
  Rule(const FileType& file_type, const ModelFacts& facts) : file_type_(file_type), facts_(facts) {}

  ElementType type_of(const TensorView& tensor) {
    const ElementType type = file_type_.type;
    const bool is_mixed = file_type_.name == "q4_k_m";
    switch (role_of(tensor.name)) {
      case Role::embedding:
        return facts_.has_output ? type : output_type(tensor);
      case Role::output:
        return output_type(tensor);
      case Role::values: {
        const int layer = n_values_seen_++;
        if (facts_.n_experts == kFewExperts) return ElementType::q8_0;
        if (!is_mixed) return type;
        if (takes_more_bits(layer, facts_.n_values)) return ElementType::q6_k;
        return facts_.shares_values ? ElementType::q5_k : type;
      }
      case Role::keys:
        return facts_.n_experts == kFewExperts ? ElementType::q8_0 : type;
      case Role::attention_output:
        return is_mixed && facts_.n_experts == kFewExperts && !is_falcon() ? ElementType::q5_k
                                                                           : type;
      case Role::down: {
        // Some files list experts in any order.
        const int layer = facts_.n_experts > 1 ? layer_of(tensor.name) : n_down_seen_++;
        return is_mixed ? down_type(layer) : type;
      }
      case Role::other:
        break;
    }
    return type;
  }

 private:
  static constexpr int kFewExperts = 8;  // as in Mixtral 8x7B, where attention is a small share

  bool is_falcon() const { return facts_.architecture == "falcon"; }

  ElementType output_type(const TensorView& tensor) const {
    const auto block = static_cast<std::int64_t>(block_elements(file_type_.type));
    const bool is_whole = tensor.shape.back() % block == 0;
    if (is_falcon() || !is_whole || file_type_.type == ElementType::q8_0) return ElementType::q8_0;
    return ElementType::q6_k;
  }

  ElementType down_type(int layer) const {
    const bool more = takes_more_bits(layer, facts_.n_layers);
    if (!is_falcon()) return more ? ElementType::q6_k : file_type_.type;
    if (layer < facts_.n_layers / 16) return ElementType::q6_k;
    return more ? ElementType::q5_k : file_type_.type;
  }

  const FileType& file_type_;
  const ModelFacts& facts_;
  int n_values_seen_ = 0;
  int n_down_seen_ = 0;
};

// The replacement for a type whose blocks do not divide a row: one with about as many bits in
// blocks of 32, or none.
ElementType fallback_of(ElementType wanted, const TensorView& tensor) {
  const auto divides = [&](ElementType type) {
    return tensor.shape.back() % static_cast<std::int64_t>(block_elements(type)) == 0;
  };
  if (divides(wanted)) return wanted;
  if (divides(ElementType::q8_0)) {
    if (wanted == ElementType::q4_k) return ElementType::q5_0;
    if (wanted == ElementType::q5_k) return ElementType::q5_1;
    return ElementType::q8_0;
  }
  return tensor.type == ElementType::f32 ? ElementType::f16 : tensor.type;
}

}  // namespace

std::span<const FileType> file_types() { return kFileTypes; }

const FileType* find_file_type(std::string_view name) {
  const auto* found = std::find_if(kFileTypes.begin(), kFileTypes.end(),
                                   [&](const FileType& type) { return type.name == name; });
  return found == kFileTypes.end() ? nullptr : found;
}

std::vector<PlannedTensor> plan_tensors(const FileType& type, const GgufFile& file) {
  const std::span<const TensorView> tensors = file.tensors();
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    const int layer = layer_of(tensors[left].name);
    const int other = layer_of(tensors[right].name);
    return layer != other ? layer < other : tensors[left].name < tensors[right].name;
  });
  const ModelFacts facts = facts_of(file);
  Rule rule(type, facts);
  std::vector<PlannedTensor> planned(tensors.size());
  for (const std::size_t i : order) {
    const TensorView& tensor = tensors[i];
    planned[i] = {tensor.type, tensor.type};
    if (!is_quantised(tensor)) continue;
    planned[i].wanted = rule.type_of(tensor);
    planned[i].type = fallback_of(planned[i].wanted, tensor);
  }
  return planned;
}

}  // namespace outrider
