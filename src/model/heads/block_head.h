// Heads that draft a block in one pass: a few decoder layers that attend to what they make of the
// target's hidden states, and to all of the block (DFlash: arXiv 2602.06036, DSpark: arXiv
// 2607.05147; the forward pass as z-lab/dflash and DeepSpec have it).
#ifndef OUTRIDER_MODEL_HEADS_BLOCK_HEAD_H_
#define OUTRIDER_MODEL_HEADS_BLOCK_HEAD_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "io/tensor_source.h"
#include "model/heads/block_head_config.h"
#include "model/heads/markov_head.h"
#include "model/language_model.h"
#include "model/load_model.h"
#include "model/pass/blocks.h"
#include "model/pass/run_on_cpu.h"
#include "model/shared_output.h"

namespace outrider {

// Of each token that the target has run, a state: norm(fc [hidden states]). Each layer has keys and
// values of these states at the tokens' own positions, as if they were what it reads; its queries
// are those of the block's slots alone, the newest token (the anchor) and masks behind it, whose
// own keys and values are gone when the pass is over. So a sequence of the head holds target states
// and nothing that was drafted: a rejected draft leaves nothing to take back.
//
// A slot's bits depend on the block's tokens, its place and the states before it alone: not on
// other blocks, nor on how many states came at a time. Heads borrow the target's matrices: no pass
// of the target may run at the same time. Not thread-safe.
class BlockHead {
 public:
  // An output matrix of the head's own.
  struct OwnOutput {
    Linear head;                      // (draft vocabulary, dim)
    std::vector<TokenId> vocabulary;  // the target's id of each draft id
  };
  struct Parts {
    BlockHeadConfig config;
    LanguageModel* target = nullptr;  // outlives the head
    Linear fc;                        // (dim, hidden states read * dim)
    Norm state_norm;                  // (dim)
    std::vector<DecoderLayer> layers;
    Norm final_norm;  // (dim)
    // (vocabulary size, dim), or null: the target's. `source` has its bytes.
    const TensorView* embedding = nullptr;
    std::shared_ptr<const TensorSource> source;
    std::optional<OwnOutput> own_output;
    std::optional<SharedOutput> shared_output;  // where there is no own one
    std::unique_ptr<MarkovHead> markov;         // of dspark
    CpuPass::Machine machine;
  };
  explicit BlockHead(Parts parts);

  const BlockHeadConfig& config() const { return parts_.config; }
  int dim() const { return parts_.config.layers.dim; }
  std::span<const int> feature_layers() const { return parts_.config.feature_layers; }
  MarkovHead* markov() const { return parts_.markov.get(); }  // null of dflash
  // Weights that are read for one slot more, in those that a block takes: what that costs, as long
  // as passes wait for weights. 0 of dflash; of dspark, a Markov head's.
  double further_slot() const;
  std::unique_ptr<Sequence> open() { return block_->open({}); }

  // features (n, feature_layers().size() * dim) to states (n, dim).
  void read(std::span<const float> features, std::span<float> states);

  // The next tokens' states of a sequence.
  struct Known {
    Sequence* sequence = nullptr;
    std::span<const float> states;  // (n, dim), n >= 1
  };
  void remember(std::span<const Known> known);

  // A block behind a sequence's states, the anchor its first token.
  struct Block {
    Sequence* sequence = nullptr;
    TokenId anchor = 0;
  };
  // given (n blocks * n_drafted(), dim): of each block, what the slots give, normed, in the order
  // of the tokens that they draft. The sequences stand as before.
  void draft(std::span<const Block> blocks, std::span<float> given);
  // given (n, dim) to output's logits (n, the target's vocabulary size), a Markov head's left out.
  void project(std::span<const float> given, ForwardOutput& output);

 private:
  void build_fuse();
  void build_block();
  void build_context();
  void build_output();
  void embed_slots(std::span<const Block> blocks);

  Parts parts_;
  // Passes; they look into parts_.
  Rows features_, state_, known_, slots_, given_;
  std::optional<CpuPass> fuse_;     // hidden states to states
  std::optional<CpuPass> block_;    // slots to what they give
  std::optional<CpuPass> context_;  // states to keys and values, in block_'s sequences
  std::optional<CpuPass> output_;   // what slots give to logits, by the head's own matrix

  // Reused from pass to pass.
  std::vector<TokenId> tokens_;
  std::vector<TokenBlock> blocks_;
  std::vector<int> chain_;         // 0, 1, ..
  std::vector<float> embeddings_;  // (n_rows, dim)
  std::vector<float> outputs_;     // (n_rows, dim)
};

// PATH: a directory with config.json (block_head_config.h) and weights in safetensors: fc,
// hidden_norm, norm and layers.0, layers.1, .., which are Qwen3's, and of dspark markov_head and
// confidence_head, with "model." before all names or none. Throws Error naming the file, tensor or
// key, what was expected and what came. The target outlives the head.
std::unique_ptr<BlockHead> load_block_head(const std::filesystem::path& path, LanguageModel& target,
                                           BlockHeadKind kind, const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_BLOCK_HEAD_H_
