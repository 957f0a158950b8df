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
  // "f32", "bf16", "int8" or "int4" (groups of 32); empty keeps what the file stores, with f16
  // widened to f32 (exact, twice the memory).
  std::string weights = {};
  // "f32", "bf16" or "int8" (a scale for each head of a token); empty takes f32 for f32 weights and
  // bf16 otherwise.
  std::string kv = {};
  // Bytes that keys and values of all texts may take together, in the target's cache, and as many
  // again in each cache of a drafter (a drafter's are smaller). A pass that needs more ends the
  // generation with an Error. 0: no limit but the memory there is.
  std::uint64_t kv_memory_bytes = 0;
  // Where a mixture's experts are: "memory" (or empty), or "mapped", for models larger than memory:
  // in their file, from which those in use are packed into expert_memory_bytes, those used last
  // staying. The bits are the same. A drafter without experts is loaded as ever.
  std::string experts = {};
  // 0: half of the machine's memory, or of the process's limit. Of experts that are mapped.
  std::uint64_t expert_memory_bytes = 0;
  // Threads of a pass; 0 takes every processor this process may run on.
  int threads = 0;
  // A kernel table by name; empty takes the environment variable OUTRIDER_KERNELS, or else the
  // fastest this machine can run. Results of quantised models are the same bits on every table.
  std::string kernels = {};
  // The processes that hold the model together (outrider/ranks.h), of which this is the first.
  // Null: this one alone.
  std::shared_ptr<Ranks> ranks = nullptr;
  // Where the model's passes run: a device by its name (devices.h), "vulkan:0", or "vulkan", the
  // first that is no software; empty: the processor. The bits are the same (docs/gpu.md). Dense
  // models alone, weights in int8 or int4; others throw UsageError. A drafter's model runs where
  // its own options say; heads run on the processor.
  std::string device = {};
  // Called while loading with the share done, 0..1.
  std::function<void(double)> progress = {};
};

// What `inspect` shows. Sizes in bytes.
struct ModelSummary {
  std::string architecture;
  std::string kernels = {};  // the table in use
  std::string device = {};   // that passes run on, by its driver's name; empty: the processor
  int threads = 0;           // of a pass, at most
  std::int64_t n_parameters = 0;
  int vocabulary_size = 0;
  int context_length = 0;  // tokens
  int n_layers = 0;
  int dim = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int hidden_dim = 0;
  // Of encoder-decoders: layers of the encoder, n_layers being the decoder's, and the token that
  // the decoder's texts begin with. 0: a decoder.
  int n_encoder_layers = 0;
  TokenId start_token = kNoToken;
  std::string weights = {};       // kind(s) of the packed matrices, for example "int4 int8"
  std::string kv = {};            // cache type
  std::int64_t weight_bytes = 0;  // packed matrices
  std::int64_t kv_bytes_per_token = 0;
  // Of mixtures of experts: how many a layer has and how many of them a token uses (0: no experts),
  // and the packed bytes that a pass over one token does not read.
  int n_experts = 0;
  int n_experts_used = 0;
  std::int64_t idle_bytes = 0;
  // Of experts that are mapped: their bytes if all were packed, and those of the memory for them.
  std::int64_t mapped_bytes = 0;
  std::int64_t expert_memory_bytes = 0;
  // Of recurrent layers: the state of a text at one token, and what each token of a pass keeps
  // beside it until the pass is judged. 0 where all layers attend.
  std::int64_t state_bytes = 0;
  std::int64_t state_bytes_per_node = 0;
};

// Loaded once, shared by any number of generators, one of which may run at a time.
class Model {
 public:
  // PATH: a Hugging Face directory (config.json, *.safetensors, tokenizer.json or tokenizer.model),
  // a model's folder in the hub's cache (models--OWNER--NAME: the snapshot of its main branch), or
  // a GGUF file, whatever its name. Throws Error (files) or UsageError (options).
  static std::shared_ptr<const Model> load(const std::filesystem::path& path,
                                           const ModelOptions& options = {});
  // The same of a model in memory (model_in_memory.h): the bits are those of a directory of the
  // same contents. What is used of it is copied or packed, so that its bytes need to be there for
  // the call alone. Throws as load() does, with "memory" in the place of a path; UsageError for
  // ModelOptions::experts = "mapped". A drafter that is looked for beside the target ("mtp" without
  // a path) is not to be had.
  static std::shared_ptr<const Model> from_memory(const ModelInMemory& model,
                                                  const ModelOptions& options = {});
  ~Model();

  // What it was loaded from; empty for one from memory.
  const std::filesystem::path& path() const { return path_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ModelSummary& summary() const { return summary_; }
  // Tokens that end a text: all that the model's files name, and added tokens with a spelling
  // that is known to end one.
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  // What was doubtful about the model's files and was read all the same, a sentence each: the
  // tokenizer's warnings and the configuration's. None of it is printed by the library.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Why it is of no use from now on: another process that held a part of it is lost. Empty: it is.
  // Thread-safe.
  std::string failure() const;

  // For the engine's own use.
  LanguageModel& language_model() const { return *language_model_; }
  // What grammars match the vocabulary by; made when it is first asked for. Thread-safe.
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
