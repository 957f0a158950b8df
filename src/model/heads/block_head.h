// SPDX-License-Identifier: Apache-2.0
// Heads that draft a block in one pass: a few decoder layers that attend to states computed from
// the target's hidden states, and to the whole block (DFlash: arXiv 2602.06036, DSpark: arXiv
// 2607.05147; the forward pass as in z-lab/dflash and DeepSpec).
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
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/shared_output.h"

namespace outrider {

// For each token that the target has run there is a state: norm(fc [hidden states]). Each layer has
// keys and values of these states at the tokens' positions, as if the states were its input.
// Queries come from the block's slots alone: the newest token (the anchor) and masks after it. The
// slots' own keys and values are dropped after the pass. So a sequence of the head holds states of
// the target only, and a rejected draft needs no rollback.
//
// A slot's bits depend only on the block's tokens, its place and the states before it: not on other
// blocks, nor on how many states came at a time. Heads use the target's matrices, so no pass of the
// target may run at the same time. Not thread-safe.
class BlockHead {
 public:
  // The head's own output matrix.
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
    // (vocabulary size, dim), or null: the target's. `source` holds its bytes.
    const TensorView* embedding = nullptr;
    std::shared_ptr<const TensorSource> source;
    std::optional<OwnOutput> own_output;
    std::optional<SharedOutput> shared_output;  // if there is no own one
    std::unique_ptr<MarkovHead> markov;         // of dspark
    CpuPass::Machine machine;
  };
  explicit BlockHead(Parts parts);

  const BlockHeadConfig& config() const { return parts_.config; }
  int dim() const { return parts_.config.layers.dim; }
  std::span<const int> feature_layers() const { return parts_.config.feature_layers; }
  MarkovHead* markov() const { return parts_.markov.get(); }  // null for dflash
  // Weights read for one more slot, relative to those of a block: its cost, as long as passes are
  // limited by weights. 0 for dflash; for dspark, the Markov head's.
  double further_slot() const;
  std::unique_ptr<Sequence> open() { return block_->open({}); }

  // Maps features (n, feature_layers().size() * dim) to states (n, dim).
  void read(std::span<const float> features, std::span<float> states);

  // The states of a sequence's next tokens.
  struct Known {
    Sequence* sequence = nullptr;
    std::span<const float> states;  // (n, dim), n >= 1
  };
  void remember(std::span<const Known> known);

  // A block after a sequence's states; the anchor is its first token.
  struct Block {
    Sequence* sequence = nullptr;
    TokenId anchor = 0;
  };
  // slot_outputs (n blocks * n_drafted(), dim): for each block the normed outputs of the slots, in
  // the order of the tokens that they draft. The sequences are unchanged.
  void draft(std::span<const Block> blocks, std::span<float> slot_outputs);
  // Maps slot_outputs (n, dim) to output's logits (n, the target's vocabulary size), without a
  // Markov head's.
  void project(std::span<const float> slot_outputs, ForwardOutput& output);

 private:
  void build_fuse();
  void build_block();
  void build_context();
  void build_output();
  void embed_slots(std::span<const Block> blocks);

  Parts parts_;
  // Passes; they refer to parts_.
  Rows features_, state_, known_, slots_, slot_outputs_;
  std::optional<CpuPass> fuse_;     // hidden states to states
  std::optional<CpuPass> block_;    // slots to their outputs
  std::optional<CpuPass> context_;  // states to keys and values, in block_'s sequences
  std::optional<CpuPass> output_;   // outputs of slots to logits, by the head's own matrix

  // Reused from pass to pass.
  std::vector<TokenId> tokens_;
  std::vector<TokenBlock> blocks_;
  std::vector<int> chain_;         // 0, 1, ..
  std::vector<float> embeddings_;  // (n_rows, dim)
  std::vector<float> outputs_;     // (n_rows, dim)
};

// PATH: a directory with config.json (block_head_config.h) and weights in safetensors: fc,
// hidden_norm, norm and layers.0, layers.1, .., which have Qwen3's form, and for dspark markov_head
// and confidence_head; all names have the prefix "model." or none. Throws Error with the file,
// tensor or key, what was expected and what was found. The target must outlive the head.
std::unique_ptr<BlockHead> load_block_head(const std::filesystem::path& path, LanguageModel& target,
                                           BlockHeadKind kind, const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_BLOCK_HEAD_H_
