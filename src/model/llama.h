// The Llama family (Touvron et al., 2023; Dubey et al., 2024): pre-norm decoder with RMSNorm,
// rotary positions, grouped-query attention and SwiGLU.
#ifndef OUTRIDER_MODEL_LLAMA_H_
#define OUTRIDER_MODEL_LLAMA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "io/tensor_source.h"
#include "model/decoder_layers.h"
#include "model/language_model.h"
#include "model/llama_weights.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// One pass at a time. Logits of a row have the same bits whatever else is in the pass, however its
// ancestors came and however many threads run (language_model.h).
class LlamaModel final : public LanguageModel {
 public:
  struct Parts {
    ModelConfig config;
    std::unique_ptr<TensorSource> source;  // what weights look into
    LlamaWeights weights;
    const KernelTable* table = nullptr;  // the one the weights are packed for
    kernels::KvKind kv = kernels::KvKind::f32;
    std::size_t most_cache_bytes = PagePool::kUnbounded;
    int n_threads = 1;
  };
  explicit LlamaModel(Parts parts);

  const ModelConfig& config() const override { return parts_.config; }
  Footprint footprint() const override;
  std::unique_ptr<Sequence> open(const Prompt& prompt) override;
  std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                         std::span<const int> skip_layers) const override;
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  void embed(std::span<const TokenId> tokens, std::span<float> out) override;
  void project(std::span<const float> features, ForwardOutput& output) override;
  std::optional<Matrix> narrower_output(WeightKind kind) const override;

  // As in DecoderLayers.
  void set_least_share_ns(std::int64_t share_ns) { layers_.set_least_share_ns(share_ns); }

 private:
  // The pass, op by op. Each thread of the team runs all of them on its share.
  void run(const Team& team, float* logits);
  bool skips(int layer) const;  // in this pass
  // What the pass multiplies with behind that layer, or null.
  const Matrix* behind(int layer) const;
  void embed(const Team& team);
  void project_to_vocabulary(const Team& team, float* logits);
  void leave_features(const Team& team, int n_layers_done);

  Parts parts_;
  DecoderLayers layers_;                 // looks into parts_
  Activations asked_;                    // (n_asked, dim): what the head reads
  std::span<const int> feature_layers_;  // of the pass that is running
  std::span<const int> skip_layers_;     // likewise
  float* features_ = nullptr;            // (n_rows, feature_layers_.size() * dim)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LLAMA_H_
