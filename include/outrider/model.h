// SPDX-License-Identifier: Apache-2.0
// A model ready to run: weights and tokenizer.
#ifndef OUTRIDER_MODEL_H_
#define OUTRIDER_MODEL_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider {

class LanguageModel;
class Ranks;
class TokenTrie;
struct LoadOptions;
struct ModelInMemory;

struct ModelOptions {
  // "f32", "bf16", "int8" or "int4" (groups of 32). Empty keeps the type of the file; f16 is
  // widened to f32 (exact, twice the memory).
  std::string weights = {};
  // The KV cache's type: "f32", "bf16" or "int8" (a scale for each head of a token). Empty: f32 for
  // f32 weights, otherwise bf16.
  std::string kv = {};
  // Limit in bytes for the KV cache of all texts, applied to the target's cache and to each
  // drafter's (which are smaller). A pass that needs more ends the generation with an Error. 0: no
  // limit but the machine's memory.
  std::uint64_t kv_memory_bytes = 0;
  // Where experts are kept. "memory" (or empty): packed in memory. "mapped", for models larger than
  // memory: in the file; those in use are packed into expert_memory_bytes, least recently used ones
  // are dropped. The bits are the same. Ignored for a drafter without experts.
  std::string experts = {};
  // For mapped experts. 0: half of the machine's memory, or of the process's limit.
  std::uint64_t expert_memory_bytes = 0;
  // Threads of a pass; 0: all processors that this process may use.
  int threads = 0;
  // A kernel table by name. Empty: that of the environment variable OUTRIDER_KERNELS, or the
  // fastest that this machine can run. Results of quantised models have the same bits on every
  // table.
  std::string kernels = {};
  // The processes that hold the model together (outrider/ranks.h), of which this is the first.
  // Null: this process alone.
  std::shared_ptr<Ranks> ranks = nullptr;
  // The device on which the model's passes run, by its name (devices.h): "vulkan:0", "cuda:0", or
  // "vulkan" or "cuda" for the first that is not software; empty: the processor. The bits are the
  // same (docs/gpu.md).
  // Only dense models with weights in int8 or int4 are supported; others throw UsageError. A
  // drafter's model runs where its own options say; heads run on the processor.
  std::string device = {};
  // Called while loading with the share done, 0..1.
  std::function<void(double)> progress = {};
};

// What `inspect` shows. Sizes in bytes.
struct ModelSummary {
  std::string architecture;
  std::string kernels = {};  // the table in use
  std::string device = {};   // the device of passes, by its driver's name; empty: the processor
  int threads = 0;           // at most, in a pass
  // For a model that several processes hold together (outrider/ranks.h): the threads of each. Bytes
  // are then those of rank 0, and counts those of the model. Empty: this process alone.
  std::vector<int> rank_threads = {};
  int n_ranks() const { return rank_threads.empty() ? 1 : static_cast<int>(rank_threads.size()); }
  std::int64_t n_parameters = 0;
  int vocabulary_size = 0;
  int context_length = 0;  // tokens
  int n_layers = 0;
  int dim = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int hidden_dim = 0;
  // For encoder-decoders: the encoder's layers (n_layers counts the decoder's), and the first token
  // of the decoder's texts. 0: a decoder.
  int n_encoder_layers = 0;
  TokenId start_token = kNoToken;
  std::string weights = {};       // types of the packed matrices, for example "int4 int8"
  std::string kv = {};            // cache type
  std::int64_t weight_bytes = 0;  // packed matrices
  std::int64_t kv_bytes_per_token = 0;
  // The limit of the KV cache of all texts (ModelOptions::kv_memory_bytes; with several ranks rank
  // 0's part of it, which may have fewer heads than others). 0: no limit.
  std::int64_t max_kv_bytes = 0;
  // For mixtures of experts: experts of a layer, those that a token uses (0: no experts), and the
  // packed bytes that a one-token pass does not read.
  int n_experts = 0;
  int n_experts_used = 0;
  std::int64_t idle_bytes = 0;
  // For mapped experts: their bytes if all were packed, and the memory for those in use.
  std::int64_t mapped_bytes = 0;
  std::int64_t expert_memory_bytes = 0;
  // For recurrent layers: the bytes of a text's state at one token, and of the data that a pass
  // keeps for each of its tokens until it is verified. 0 if all layers attend.
  std::int64_t state_bytes = 0;
  std::int64_t state_bytes_per_node = 0;
};

// Loaded once and shared by any number of generators. Only one of them may run at a time.
class Model {
 public:
  // PATH is a Hugging Face directory (config.json, *.safetensors, tokenizer.json or
  // tokenizer.model), a model's folder in the hub's cache (models--OWNER--NAME: the snapshot of its
  // main branch), or a GGUF file of any name. Throws Error (files) and UsageError (options).
  static std::shared_ptr<const Model> load(const std::filesystem::path& path,
                                           const ModelOptions& options = {});
  // Loads a model from memory (model_in_memory.h), with the bits of a directory of the same
  // contents. Its data is copied or packed and needs to live for the call only. Throws as load()
  // does, with "memory" instead of a path, and UsageError for ModelOptions::experts = "mapped".
  // Drafters looked up beside the target ("mtp" without a path) are not available.
  static std::shared_ptr<const Model> from_memory(const ModelInMemory& model,
                                                  const ModelOptions& options = {});
  ~Model();

  // The path it was loaded from; empty for one from memory.
  const std::filesystem::path& path() const { return path_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ModelSummary& summary() const { return summary_; }
  // Tokens that end a text: those named by the model's files, and added tokens with a known
  // end-of-text spelling.
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  // Doubtful points of the model's files that did not stop loading, a sentence each: warnings of
  // the tokenizer and the configuration. The library prints none of them.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Why the model cannot be used any more: another process with a part of it is lost, or its device
  // is. Empty: it can be used. Thread-safe.
  std::string failure() const;

  // For internal use.
  LanguageModel& language_model() const { return *language_model_; }
  // The vocabulary in the form that grammars match; built at first use. For internal use.
  // Thread-safe.
  const TokenTrie& token_trie() const;

 private:
  Model();
  static std::shared_ptr<const Model> of_parts(std::filesystem::path path,
                                               std::shared_ptr<const Tokenizer> tokenizer,
                                               std::unique_ptr<LanguageModel> language_model,
                                               const LoadOptions& load);
  std::filesystem::path path_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<LanguageModel> language_model_;
  ModelSummary summary_;
  std::vector<TokenId> end_tokens_;
  std::vector<std::string> warnings_;
  struct LazyTrie;
  std::unique_ptr<LazyTrie> trie_;
};

// Names of the kernel tables in this build, and whether this machine can run each.
std::vector<std::pair<std::string, bool>> kernel_tables();

}  // namespace outrider

#endif  // OUTRIDER_MODEL_H_
