// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models/tiny_heads.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/safetensors/safetensors.h"
#include "io/safetensors/safetensors_writer.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Tensors = std::vector<HeadTensor>;

void add_layer(Tensors& tensors, const TinyShape& shape, const std::string& prefix, int width,
               bool input_norm) {
  const std::int64_t queries = shape.n_heads * shape.head_dim;
  const std::int64_t keys = shape.n_kv_heads * shape.head_dim;
  if (input_norm) tensors.push_back({prefix + "input_layernorm.weight", {shape.dim}});
  tensors.push_back({prefix + "self_attn.q_proj.weight", {queries, width}});
  tensors.push_back({prefix + "self_attn.k_proj.weight", {keys, width}});
  tensors.push_back({prefix + "self_attn.v_proj.weight", {keys, width}});
  tensors.push_back({prefix + "self_attn.o_proj.weight", {shape.dim, queries}});
  tensors.push_back({prefix + "post_attention_layernorm.weight", {shape.dim}});
  tensors.push_back({prefix + "mlp.gate_proj.weight", {shape.hidden_dim, shape.dim}});
  tensors.push_back({prefix + "mlp.up_proj.weight", {shape.hidden_dim, shape.dim}});
  tensors.push_back({prefix + "mlp.down_proj.weight", {shape.dim, shape.hidden_dim}});
}

void write(const fs::path& directory, const std::string& file, const Tensors& tensors,
           std::span<const std::int64_t> offsets = {}) {
  fs::create_directories(directory);
  std::vector<std::vector<float>> values;
  values.reserve(tensors.size());
  std::vector<NamedValues> named;
  for (const HeadTensor& tensor : tensors) {
    values.push_back(chirp(tensor.chirped.empty() ? tensor.name : tensor.chirped, tensor.shape));
    named.push_back({.name = tensor.name, .shape = tensor.shape, .values = values.back()});
  }
  if (!offsets.empty()) {
    named.push_back(
        {.name = "d2t", .shape = {static_cast<std::int64_t>(offsets.size())}, .integers = offsets});
  }
  write_safetensors(directory / file, named, ElementType::f32);
}

// "d2t" of a draft vocabulary.
std::vector<std::int64_t> offsets_of(std::span<const TokenId> draft_vocabulary) {
  std::vector<std::int64_t> offsets;
  for (const TokenId token : draft_vocabulary) {
    offsets.push_back(token - static_cast<std::int64_t>(offsets.size()));
  }
  return offsets;
}

// The target's config.json with one layer, and further fields.
void write_config(const TinyShape& target, const fs::path& directory, const Json& more) {
  TinyShape shape = target;
  shape.n_layers = 1;
  shape.tied_head = false;
  Json config = Json::parse(config_json(shape));
  for (const auto& [key, value] : more.items()) config[key] = value;
  std::ofstream(directory / "config.json") << config.dump(1) << "\n";
}

}  // namespace

std::vector<float> chirp(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i < name.size(); ++i) start += static_cast<std::int64_t>(i + 1) * name[i];
  start %= 1000;
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  std::vector<float> values;
  for (std::int64_t j = 0; j < n; ++j) {
    const auto place = static_cast<double>(j);
    const double wave = std::sin(0.7 * place + 0.01 * place * place + static_cast<double>(start));
    double value = 0.3 * wave;
    if (shape.size() > 1) {
      value = 1.5 / std::sqrt(static_cast<double>(shape.back())) * wave;
    } else if (name.ends_with("norm.weight")) {
      value = 1 + 0.2 * wave;
    }
    values.push_back(static_cast<float>(value));
  }
  return values;
}

TinyShape golden_shape() {
  TinyShape shape;
  shape.vocabulary_size = 23;
  shape.context_length = 32;
  shape.n_layers = 3;
  shape.dim = 8;
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  shape.head_dim = 4;
  shape.hidden_dim = 12;
  return shape;
}

TinyModel golden_target() {
  TinyModel model = make_tiny_model(golden_shape());
  for (TinyTensor& tensor : model.tensors) tensor.values = chirp(tensor.name, tensor.shape);
  return model;
}

void write_eagle_head(const TinyShape& target, const fs::path& directory, const std::string& inputs,
                      bool own_embedding) {
  const bool reads_both = inputs != "token" && inputs != "feature";
  Tensors tensors = {{"fc.weight", {target.dim, (reads_both ? 2 : 1) * target.dim}},
                     {"fc.bias", {target.dim}},
                     {"embed_tokens.weight",
                      {target.vocabulary_size, target.dim},
                      own_embedding ? "" : "model.embed_tokens.weight"}};
  add_layer(tensors, target, "layers.0.", target.dim, false);
  write(directory, "model.safetensors", tensors);
  Json more = {{"bias", true}};
  if (!inputs.empty()) more["eagle_inputs"] = inputs;
  write_config(target, directory, more);
}

void write_eagle3_head(const TinyShape& target, std::span<const TokenId> draft_vocabulary,
                       const fs::path& directory) {
  const std::int64_t n_drafted = draft_vocabulary.empty()
                                     ? target.vocabulary_size
                                     : static_cast<std::int64_t>(draft_vocabulary.size());
  Tensors tensors = {{"fc.weight", {target.dim, 3 * target.dim}},
                     {"midlayer.hidden_norm.weight", {target.dim}},
                     {"norm.weight", {target.dim}},
                     {"lm_head.weight", {n_drafted, target.dim}}};
  add_layer(tensors, target, "midlayer.", 2 * target.dim, true);
  write(directory, "model.safetensors", tensors, offsets_of(draft_vocabulary));
  const int n = target.n_layers;
  const Json layers = n >= 7 ? Json{2, n / 2, n - 3} : Json{0, n / 2, n - 1};
  write_config(target, directory,
               {{"architectures", {"LlamaForCausalLMEagle3"}},
                {"draft_vocab_size", n_drafted},
                {"feature_layers", layers}});
}

void write_eagle3_form(const TinyShape& target, const Eagle3Form& form, const fs::path& directory) {
  const std::int64_t dim = target.dim;
  const std::int64_t n_drafted = form.draft_vocabulary.empty()
                                     ? target.vocabulary_size
                                     : static_cast<std::int64_t>(form.draft_vocabulary.size());
  Tensors tensors = {{"fc.weight", {dim, form.n_features * dim}},
                     {form.prefix + "hidden_norm.weight", {dim}},
                     {"norm.weight", {dim}},
                     {"lm_head.weight", {n_drafted, dim}}};
  add_layer(tensors, target, form.prefix, 2 * target.dim, true);
  for (int i = 1; i < form.n_layers; ++i) {
    add_layer(tensors, target, "layers." + std::to_string(i) + ".", target.dim, true);
  }
  if (form.own_embedding) tensors.push_back({"embed_tokens.weight", {target.vocabulary_size, dim}});
  if (form.input_norm) tensors.push_back({"input_norm.weight", {form.n_features * dim}});
  for (int i = 0; form.fc_norm && i < form.n_features; ++i) {
    tensors.push_back({"fc_norm." + std::to_string(i) + ".weight", {dim}});
  }
  if (form.mask_hidden) {
    const std::int64_t width = form.mask_width > 0 ? form.mask_width : form.n_features * dim;
    tensors.push_back({"mask_hidden", {1, 1, width}});
  }
  write(directory, "model.safetensors", tensors, offsets_of(form.draft_vocabulary));
  Json more = Json::parse(form.config);
  Json layers = {{"num_hidden_layers", form.n_layers}};
  if (form.speculators) {
    write_config(target, directory, layers);
    more["transformer_layer_config"] = Json::parse(std::ifstream(directory / "config.json"));
    std::ofstream(directory / "config.json") << more.dump(1) << "\n";
    return;
  }
  layers.update(more);
  write_config(target, directory, layers);
}

TinyShape golden_block_shape() {
  TinyShape shape = golden_shape();
  shape.n_heads = 4;
  shape.n_kv_heads = 2;
  shape.rope.theta = 500;
  return shape;
}

void write_dflash_head(const TinyShape& layers, const DflashForm& form, const fs::path& directory) {
  constexpr int kLayers = 2;
  Tensors tensors = {{"fc.weight", {layers.dim, form.n_features * layers.dim}},
                     {"hidden_norm.weight", {layers.dim}},
                     {"norm.weight", {layers.dim}}};
  for (int i = 0; i < kLayers; ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    add_layer(tensors, layers, prefix, layers.dim, true);
    tensors.push_back({prefix + "self_attn.q_norm.weight", {layers.head_dim}});
    tensors.push_back({prefix + "self_attn.k_norm.weight", {layers.head_dim}});
  }
  const auto n_drafted = static_cast<std::int64_t>(form.draft_vocabulary.size());
  if (form.speculators) {
    tensors.push_back(
        {"embed_tokens.weight", {layers.vocabulary_size, layers.dim}, "model.embed_tokens.weight"});
    tensors.push_back(
        {"lm_head.weight", {n_drafted > 0 ? n_drafted : layers.vocabulary_size, layers.dim}});
  }
  constexpr std::int64_t kRank = 4;
  if (!form.markov.empty()) {
    const std::int64_t dim = layers.dim;
    tensors.push_back({"markov_head.markov_w1.weight", {layers.vocabulary_size, kRank}});
    tensors.push_back({"markov_head.markov_w2.weight",
                       {n_drafted > 0 ? n_drafted : layers.vocabulary_size, kRank}});
    if (form.markov == "gated") {
      tensors.push_back({"markov_head.gate_proj.weight", {kRank, dim + kRank}});
      tensors.push_back({"markov_head.gate_proj.bias", {kRank}});
    } else if (form.markov == "rnn") {
      tensors.push_back({"markov_head.joint_proj.weight", {3 * kRank, 2 * kRank + dim}});
      tensors.push_back({"markov_head.joint_proj.bias", {3 * kRank}});
    }
    tensors.push_back(
        {"confidence_head.proj.weight", {1, form.confidence_reads_token ? dim + kRank : dim}});
    tensors.push_back({"confidence_head.proj.bias", {1}});
  }
  for (HeadTensor& tensor : tensors) {
    if (tensor.chirped.empty()) tensor.chirped = tensor.name;
    if (tensor.name != "lm_head.weight") tensor.name = form.prefix + tensor.name;
  }
  write(directory, "model.safetensors", tensors, offsets_of(form.draft_vocabulary));
  write_config(layers, directory, {{"num_hidden_layers", kLayers}});
  Json config = {{"block_size", 5}, {"num_target_layers", layers.n_layers}};
  const Json decoder = Json::parse(std::ifstream(directory / "config.json"));
  if (form.speculators) {
    config["speculators_model_type"] = "dflash";
    config["mask_token_id"] = layers.vocabulary_size - 1;
    config["aux_hidden_state_layer_ids"] = {1, layers.n_layers - 1};
    config["transformer_layer_config"] = decoder;
  } else {
    config.update(decoder);
    config["architectures"] = {"DFlashDraftModel"};
    config["dflash_config"] = {{"mask_token_id", layers.vocabulary_size - 1},
                               {"target_layer_ids", {0, layers.n_layers - 2}}};
  }
  if (!form.markov.empty()) {
    if (!form.speculators) config["architectures"] = {"Qwen3DSparkModel"};
    if (form.speculators) config["speculators_model_type"] = "dspark";
    config["markov_rank"] = kRank;
    config["markov_head_type"] = form.markov;
    config["enable_confidence_head"] = true;
    config["confidence_head_with_markov"] = form.confidence_reads_token;
  }
  if (!form.config.empty()) config.merge_patch(Json::parse(form.config));
  std::ofstream(directory / "config.json") << config.dump(1) << "\n";
}

void write_medusa_heads(const TinyShape& target, int n_heads, bool own_output,
                        const fs::path& directory) {
  Tensors tensors;
  for (int k = 0; k < n_heads; ++k) {
    const std::string head = std::to_string(k);
    tensors.push_back({head + ".0.linear.weight", {target.dim, target.dim}});
    tensors.push_back({head + ".0.linear.bias", {target.dim}});
    if (own_output) tensors.push_back({head + ".1.weight", {target.vocabulary_size, target.dim}});
  }
  write(directory, "medusa_lm_head.safetensors", tensors);
}

void write_assistant(const TinyShape& target, const fs::path& directory) {
  constexpr int kLayers = 2;
  constexpr int kDim = 24;
  constexpr int kHidden = 36;
  const std::int64_t n_heads = 2 * target.n_kv_heads;
  const std::int64_t queries = n_heads * target.head_dim;
  Tensors tensors = {{"pre_projection.weight", {kDim, 2 * target.dim}},
                     {"post_projection.weight", {target.dim, kDim}},
                     {"model.embed_tokens.weight", {target.vocabulary_size, kDim}},
                     {"model.norm.weight", {kDim}}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      tensors.push_back({prefix + norm + ".weight", {kDim}});
    }
    tensors.push_back({prefix + "self_attn.q_proj.weight", {queries, kDim}});
    tensors.push_back({prefix + "self_attn.q_norm.weight", {target.head_dim}});
    tensors.push_back({prefix + "self_attn.o_proj.weight", {kDim, queries}});
    tensors.push_back({prefix + "mlp.gate_proj.weight", {kHidden, kDim}});
    tensors.push_back({prefix + "mlp.up_proj.weight", {kHidden, kDim}});
    tensors.push_back({prefix + "mlp.down_proj.weight", {kDim, kHidden}});
  }
  write(directory, "model.safetensors", tensors);
  const Json rope = {
      {"full_attention",
       {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.5}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  const Json text = {{"model_type", "gemma4_text"},
                     {"vocab_size", target.vocabulary_size},
                     {"hidden_size", kDim},
                     {"intermediate_size", kHidden},
                     {"num_hidden_layers", kLayers},
                     {"num_attention_heads", n_heads},
                     {"num_key_value_heads", target.n_kv_heads},
                     {"head_dim", target.head_dim},
                     {"global_head_dim", target.head_dim},
                     {"layer_types", {"full_attention", "full_attention"}},
                     {"sliding_window", 16},
                     {"max_position_embeddings", target.context_length},
                     {"rms_norm_eps", 1e-6},
                     {"num_kv_shared_layers", kLayers},
                     {"hidden_size_per_layer_input", 0},
                     {"vocab_size_per_layer_input", 0},
                     {"rope_parameters", rope}};
  std::ofstream(directory / "config.json") << Json{{"model_type", "gemma4_assistant"},
                                                   {"backbone_hidden_size", target.dim},
                                                   {"use_ordered_embeddings", false},
                                                   {"tie_word_embeddings", true},
                                                   {"text_config", text}}
                                                  .dump(1)
                                           << "\n";
}

void write_mtp_modules(const TinyShape& target, int n_modules, const fs::path& directory) {
  Tensors tensors;
  for (int k = 0; k < n_modules; ++k) {
    const std::string trained = std::to_string(k) + ".";
    const std::string prefix = "model.layers." + std::to_string(target.n_layers + k) + ".";
    const std::size_t first = tensors.size();
    for (const char* norm : {"enorm", "hnorm", "shared_head.norm"}) {
      tensors.push_back({trained + norm + ".weight", {target.dim}});
    }
    tensors.push_back({trained + "eh_proj.weight", {target.dim, 2 * target.dim}});
    add_layer(tensors, target, trained, target.dim, true);
    for (std::size_t i = first; i < tensors.size(); ++i) {
      tensors[i].chirped = tensors[i].name;
      tensors[i].name = prefix + tensors[i].name.substr(trained.size());
    }
  }
  constexpr const char* kShards[] = {"model-00001-of-00002.safetensors",
                                     "model-00002-of-00002.safetensors"};
  fs::rename(directory / "model.safetensors", directory / kShards[0]);
  write(directory, kShards[1], tensors);
  Json map = Json::object();
  for (const char* shard : kShards) {
    const auto source = open_safetensors(directory / shard);
    for (const TensorView& tensor : source->tensors()) map[tensor.name] = shard;
  }
  std::ofstream(directory / "model.safetensors.index.json")
      << Json{{"metadata", Json::object()}, {"weight_map", map}}.dump();
  Json config = Json::parse(std::ifstream(directory / "config.json"));
  config["num_nextn_predict_layers"] = n_modules;
  std::ofstream(directory / "config.json") << config.dump(1);
}

}  // namespace outrider::test
