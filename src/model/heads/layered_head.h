// SPDX-License-Identifier: Apache-2.0
// The base of heads that consist of decoder layers, usually one (feature_head.h).
#ifndef OUTRIDER_MODEL_HEADS_LAYERED_HEAD_H_
#define OUTRIDER_MODEL_HEADS_LAYERED_HEAD_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "io/tensor_source.h"
#include "model/heads/feature_head.h"
#include "model/pass/blocks.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/pass/pass_builder.h"

namespace outrider {

// A subclass composes its pass (build) and computes logits from the states (write_logits).
class LayeredHead : public FeatureHead {
 public:
  struct Parts {
    ModelConfig config;  // of a layer; the vocabulary is the target's
    std::vector<DecoderLayer> layers;
    LanguageModel* target = nullptr;  // outlives the head
    // (vocabulary size, dim): the head's own embedding; null: the target's. `source` holds its
    // bytes.
    const TensorView* embedding = nullptr;
    std::shared_ptr<const TensorSource> source;
    CpuPass::Machine machine;
  };

  const ModelConfig& config() const override { return parts_.config; }
  Footprint footprint() const override;
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return pass_->open(prompt); }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;

 protected:
  // The inputs of the head's rows.
  struct Inputs {
    Rows embedding;  // (n_rows, dim), of the row's token
    Rows state;      // (n_rows, dim), of the row
  };

  explicit LayeredHead(Parts parts) : parts_(std::move(parts)) {}
  // `compose` must leave in the stream the state that each row returns. Called once, in the head's
  // constructor: the list refers to the head's weights. given_norm: of the states that rows return;
  // null: none.
  void build(const std::function<void(PassBuilder& pass, const Inputs& inputs)>& compose,
             const Norm* given_norm = nullptr);

  const Parts& parts() const { return parts_; }
  // Maps states (n, dim), as the pass left them, to output's logits (n, the target's vocabulary
  // size), n_rows and vocabulary_size. Runs on one thread, after the team.
  virtual void write_logits(std::span<const float> states, ForwardOutput& output) = 0;

 private:
  // Writes the embeddings of tokens_ to embeddings_.
  void embed_tokens();

  Parts parts_;
  Inputs inputs_;
  std::optional<CpuPass> pass_;  // refers to the head

  // Reused from pass to pass.
  std::vector<TokenId> tokens_;
  std::vector<float> embeddings_;    // (n_rows, dim)
  std::vector<float> asked_states_;  // (n_asked, dim)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_LAYERED_HEAD_H_
