// SPDX-License-Identifier: Apache-2.0
// A model whose output a test chooses: each token has one successor, whatever comes before. It is
// written in the files of real models, so tests of unusual directories know the correct text.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_CHAIN_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_CHAIN_MODEL_H_

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors/safetensors_writer.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/texts/byte_level.h"

namespace outrider::test {

using Json = nlohmann::json;

// Pieces of a vocabulary, in the order of ids. Byte-level: pieces are text as it is, with blanks.
// Otherwise SentencePiece's form, with U+2581 for blanks.
struct ChainVocabulary {
  std::vector<std::string> pieces;
  std::map<std::string, bool> added;  // added tokens, and whether each is special
  bool byte_level = true;
};

inline Json tokenizer_of(const ChainVocabulary& vocabulary) {
  Json pieces = Json::object();
  Json added = Json::array();
  for (std::size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const std::string& piece = vocabulary.pieces[id];
    if (const auto mark = vocabulary.added.find(piece); mark != vocabulary.added.end()) {
      added.push_back(
          {{"id", id}, {"content", piece}, {"special", mark->second}, {"normalized", false}});
      continue;
    }
    std::string spelled = piece;
    if (vocabulary.byte_level) {
      spelled.clear();
      append_byte_level(piece, spelled);
    }
    pieces[spelled] = id;
  }
  Json document = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"model",
       {{"type", "BPE"}, {"vocab", pieces}, {"merges", Json::array()}, {"ignore_merges", true}}}};
  if (vocabulary.byte_level) {
    document["pre_tokenizer"] = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    document["decoder"] = {{"type", "ByteLevel"}};
  } else {
    document["pre_tokenizer"] = {{"type", "Metaspace"},
                                 {"replacement", "\u2581"},
                                 {"prepend_scheme", "first"},
                                 {"split", true}};
    document["decoder"] = {{"type", "Metaspace"},
                           {"replacement", "\u2581"},
                           {"prepend_scheme", "first"},
                           {"split", true}};
  }
  return document;
}

// The model: next[i] follows token i. Tensors are listed by name; the caller may change them before
// they are written.
struct ChainModel {
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
  Json config;
};

// (n, n) with a one at (row_of(i), i) of each column i.
template <class RowOf>
std::vector<float> permutation(int n, const RowOf& row_of) {
  std::vector<float> values(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    values[static_cast<std::size_t>(row_of(i)) * static_cast<std::size_t>(n) +
           static_cast<std::size_t>(i)] = 1;
  }
  return values;
}

inline ChainModel make_chain_model(const std::vector<int>& next) {
  const auto n = static_cast<int>(next.size());
  const auto zeros = [](std::int64_t rows, std::int64_t columns) {
    return std::pair(std::vector<std::int64_t>{rows, columns},
                     std::vector<float>(static_cast<std::size_t>(rows * columns)));
  };
  const auto ones = [n] {
    return std::pair(std::vector<std::int64_t>{n}, std::vector<float>(std::size_t(n), 1.0F));
  };
  constexpr int kHeadDim = 2;
  constexpr int kHidden = 2;
  ChainModel model;
  const std::string layer = "model.layers.0.";
  // A layer that adds nothing: its output is the embedding, one unit vector for each token.
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    model.tensors[layer + name + ".weight"] = zeros(kHeadDim, n);
  }
  model.tensors[layer + "self_attn.o_proj.weight"] = zeros(n, kHeadDim);
  model.tensors[layer + "mlp.gate_proj.weight"] = zeros(kHidden, n);
  model.tensors[layer + "mlp.up_proj.weight"] = zeros(kHidden, n);
  model.tensors[layer + "mlp.down_proj.weight"] = zeros(n, kHidden);
  model.tensors[layer + "input_layernorm.weight"] = ones();
  model.tensors[layer + "post_attention_layernorm.weight"] = ones();
  model.tensors["model.norm.weight"] = ones();
  model.tensors["model.embed_tokens.weight"] = {{n, n}, permutation(n, [](int i) { return i; })};
  model.tensors["lm_head.weight"] = {
      {n, n}, permutation(n, [&next](int i) { return next[static_cast<std::size_t>(i)]; })};
  model.config = {{"architectures", {"LlamaForCausalLM"}},
                  {"model_type", "llama"},
                  {"vocab_size", n},
                  {"hidden_size", n},
                  {"intermediate_size", kHidden},
                  {"num_hidden_layers", 1},
                  {"num_attention_heads", 1},
                  {"num_key_value_heads", 1},
                  {"head_dim", kHeadDim},
                  {"max_position_embeddings", 512},
                  {"rms_norm_eps", 1e-5},
                  {"tie_word_embeddings", false}};
  return model;
}

inline void write_json(const Json& json, const std::filesystem::path& path) {
  std::ofstream(path) << json.dump();
}

inline void write_tensors(const ChainModel& model, const std::filesystem::path& path) {
  std::vector<NamedValues> values;
  values.reserve(model.tensors.size());
  for (const auto& [name, tensor] : model.tensors) {
    values.push_back({.name = name, .shape = tensor.first, .values = tensor.second});
  }
  write_safetensors(path, values, ElementType::f32);
}

inline void write_chain(const ChainModel& model, const Json& tokenizer,
                        const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  write_tensors(model, directory / "model.safetensors");
  write_json(model.config, directory / "config.json");
  write_json(tokenizer, directory / "tokenizer.json");
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_CHAIN_MODEL_H_
