// What all heads of one decoder layer have in common (feature_head.h).
#ifndef OUTRIDER_MODEL_ONE_LAYER_HEAD_H_
#define OUTRIDER_MODEL_ONE_LAYER_HEAD_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "model/decoder_layers.h"
#include "model/feature_head.h"
#include "model/llama_weights.h"

namespace outrider {

// A head says what its layer reads (run) and what becomes of the states it gives (write_logits).
class OneLayerHead : public FeatureHead {
 public:
  struct Parts {
    ModelConfig config;  // of the layer; the vocabulary is the target's
    LlamaLayer layer;
    LanguageModel* target = nullptr;  // outlives the head
    const KernelTable* table = nullptr;
    kernels::KvKind kv = kernels::KvKind::f32;
    std::size_t most_cache_bytes = PagePool::kUnbounded;
    int n_threads = 1;
    InputForms input_forms;
  };

  const ModelConfig& config() const override { return parts_.config; }
  Footprint footprint() const override;
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return layers_.open(prompt); }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;

 protected:
  explicit OneLayerHead(Parts parts);

  const Parts& parts() const { return parts_; }
  DecoderLayers& layers() { return layers_; }
  // Of the pass's row i, (dim) each.
  float* embedding(std::int64_t i) { return row_of(embeddings_, i, parts_.config.dim); }
  float* state(std::int64_t i) { return row_of(states_, i, parts_.config.dim); }

  // One thread, before the team: room for what run() writes.
  virtual void make_room(int n_rows) = 0;
  // Leaves in layers().x() the state that each row gives.
  virtual void run(const Team& team) = 0;
  // states (n, dim), as run() left them, to output's logits (n, the target's vocabulary size),
  // n_rows and vocabulary_size. One thread, after the team.
  virtual void write_logits(std::span<const float> states, ForwardOutput& output) = 0;

 private:
  Parts parts_;
  DecoderLayers layers_;  // looks into parts_

  // Reused from pass to pass.
  std::vector<TokenId> tokens_;
  std::vector<float> embeddings_;    // (n_rows, dim)
  std::vector<float> states_;        // (n_rows, dim)
  std::vector<float> asked_states_;  // (n_asked, dim)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_ONE_LAYER_HEAD_H_
