// SPDX-License-Identifier: Apache-2.0
#include "outrider/model.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "base/files/file_folder.h"
#include "engine/batch/end_tokens.h"
#include "engine/speculation.h"
#include "grammar/token_trie.h"
#include "io/memory_tensors.h"
#include "kernels/dispatch.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "outrider/model_in_memory.h"
#include "outrider/ranks.h"
#include "tensor/team.h"
#include "tokenizer/formats/tokenizer_file.h"

namespace outrider {

struct Model::LazyTrie {
  std::once_flag once;
  std::optional<TokenTrie> trie;
};

Model::Model() : trie_(std::make_unique<LazyTrie>()) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::load(const std::filesystem::path& path,
                                         const ModelOptions& options) {
  try {
    LoadOptions load = make_load_options(options);
    // For the model only: its drafters run on rank 0.
    if (options.ranks != nullptr) load.ranks = options.ranks->communicator();
    require_model(path);
    std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(path);
    return of_parts(path, std::move(tokenizer), load_model(path, load), load);
  } catch (const std::exception& error) {
    // The others are loading, and would wait for this rank.
    if (options.ranks != nullptr) options.ranks->give_up(error.what());
    throw;
  }
}

std::shared_ptr<const Model> Model::from_memory(const ModelInMemory& given,
                                                const ModelOptions& options) {
  constexpr const char* kName = "memory";  // replaces a path in messages
  LoadOptions load = make_load_options(options);
  if (options.ranks != nullptr) load.ranks = options.ranks->communicator();
  FileFolder::Contents files(given.files);
  files.insert_or_assign("config.json", given.config);
  const FileFolder folder(kName, files);
  std::vector<TensorView> tensors;
  tensors.reserve(given.tensors.size());
  for (const ModelTensor& tensor : given.tensors) {
    const std::optional<ElementType> type = plain_type_named(tensor.type);
    tensors.push_back({.name = tensor.name,
                       .type = type.value_or(ElementType::foreign),
                       .shape = tensor.shape,
                       .data = tensor.data,
                       .foreign_type = type ? std::string() : tensor.type});
  }
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(folder);
  return of_parts(
      {}, std::move(tokenizer),
      load_model(folder, std::make_unique<MemoryTensors>(std::move(tensors), kName), load), load);
}

std::shared_ptr<const Model> Model::of_parts(std::filesystem::path path,
                                             std::shared_ptr<const Tokenizer> tokenizer,
                                             std::unique_ptr<LanguageModel> language_model,
                                             const LoadOptions& load) {
  std::shared_ptr<Model> model(new Model);
  model->path_ = std::move(path);
  model->tokenizer_ = std::move(tokenizer);
  model->language_model_ = std::move(language_model);
  const ModelConfig& config = model->language_model_->config();
  if (load.experts_in_file && config.n_experts == 0) {
    throw UsageError("load model", "--experts mapped", "a mixture of experts",
                     fmt::format("{}, which is none", config.architecture));
  }
  model->end_tokens_ = find_end_tokens(config.end_tokens, *model->tokenizer_);
  model->warnings_ = model->tokenizer_->warnings();
  const std::vector<std::string> of_weights = model->language_model_->warnings();
  model->warnings_.insert(model->warnings_.end(), of_weights.begin(), of_weights.end());
  const Footprint footprint = model->language_model_->footprint();
  model->summary_ = {.architecture = config.architecture,
                     .kernels = footprint.kernels,
                     .device = footprint.device,
                     .threads = load.n_threads > 0 ? load.n_threads : default_threads(),
                     .rank_threads = footprint.rank_threads,
                     .n_parameters = footprint.n_parameters,
                     .vocabulary_size = config.vocabulary_size,
                     .context_length = config.context_length,
                     .n_layers = config.n_layers,
                     .dim = config.dim,
                     .n_heads = config.n_heads,
                     .n_kv_heads = config.n_kv_heads,
                     .head_dim = config.head_dim,
                     .hidden_dim = config.hidden_dim,
                     .n_encoder_layers = config.n_encoder_layers,
                     .start_token = config.start_token,
                     .weights = footprint.weights,
                     .kv = footprint.kv,
                     .weight_bytes = footprint.weight_bytes,
                     .kv_bytes_per_token = footprint.kv_bytes_per_token,
                     .max_kv_bytes = footprint.max_kv_bytes,
                     .n_experts = config.n_experts,
                     .n_experts_used = config.n_experts_used,
                     .idle_bytes = footprint.idle_bytes,
                     .mapped_bytes = footprint.mapped_bytes,
                     .expert_memory_bytes = footprint.expert_memory_bytes,
                     .state_bytes = footprint.state_bytes,
                     .state_bytes_per_node = footprint.input_bytes_per_node};
  return model;
}

std::string Model::failure() const { return language_model_->failure(); }

const TokenTrie& Model::token_trie() const {
  std::call_once(trie_->once, [this] {
    trie_->trie.emplace(*tokenizer_, summary_.vocabulary_size, end_tokens_);
  });
  return *trie_->trie;
}

std::vector<std::pair<std::string, bool>> kernel_tables() {
  std::vector<std::pair<std::string, bool>> tables;
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    tables.emplace_back(table->name, kernels::is_supported(*table));
  }
  return tables;
}

}  // namespace outrider
