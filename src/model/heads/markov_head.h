// SPDX-License-Identifier: Apache-2.0
// Makes a block's slots depend on each other (DSpark: arXiv 2607.05147; as in DeepSpec): a matrix
// of low rank adds to a slot's logits a term of the token drawn at the previous slot.
#ifndef OUTRIDER_MODEL_HEADS_MARKOV_HEAD_H_
#define OUTRIDER_MODEL_HEADS_MARKOV_HEAD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "io/tensor_source.h"
#include "model/heads/block_head_config.h"
#include "model/language_model.h"
#include "model/pass/blocks.h"
#include "model/pass/on_cpu/run_on_cpu.h"

namespace outrider {

// With e = W1[previous token] and h the slot's output:
// - vanilla: logits += W2 e
// - gated: logits += W2 (sigmoid(G [h; e] + b) * e)
// - recurrent: (g, c, o) = J [s; e; h] + b; s' = sigmoid(g) s + (1 - sigmoid(g)) tanh(c); logits +=
//   W2 tanh(o). s is zero before the first slot.
// The confidence, sigmoid(w [h; e] + b), estimates whether the slot's token will be accepted if
// those before it are; it does not depend on that token. A node's bits depend on its path and slot
// alone. Not thread-safe.
class MarkovHead {
 public:
  struct Parts {
    BlockHeadConfig::Markov form;
    int dim = 0;  // of slots' outputs
    int vocabulary_size = 0;
    const TensorView* before = nullptr;  // W1, (vocabulary_size, rank)
    Linear joint;                        // G or J, or empty
    Linear after;                        // W2, (draft vocabulary, rank)
    std::vector<TokenId> vocabulary;     // the target's id of each draft id
    std::vector<float> confidence;       // w, or empty
    float confidence_bias = 0;
  };
  MarkovHead(Parts parts, const CpuPass::Machine& machine);

  int rank() const { return parts_.form.rank; }
  std::int64_t n_weights() const;  // of the matrices in read() and give()
  bool has_confidence() const { return !parts_.confidence.empty(); }

  // A node of a draft for whose slot logits are computed.
  struct Node {
    TokenId token = 0;                   // the token before the slot
    std::span<const float> slot_output;  // (dim)
    std::span<const float> state;        // (rank) of the node before; empty for the first slot
  };
  // states (n, rank): each node's own, for the nodes after it. latents (n, rank): the input of W2.
  void read(std::span<const Node> nodes, std::span<float> states, std::span<float> latents);
  // Maps latents (n, rank) to output's logits (n, the target's vocabulary size), to be added.
  void give(std::span<const float> latents, ForwardOutput& output);
  // In (0, 1). Requires has_confidence().
  double confidence(const Node& node);

 private:
  void embed(TokenId token, std::span<float> to) const;

  Parts parts_;
  Rows joined_, raw_, latent_;
  std::optional<CpuPass> joint_;  // [h; e] or [s; e; h] to its product
  std::optional<CpuPass> after_;
  std::vector<float> embedding_;  // (rank), reused
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_MARKOV_HEAD_H_
