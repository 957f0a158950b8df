// The Llama family (Touvron et al., 2023; Dubey et al., 2024): pre-norm decoder with RMSNorm,
// rotary positions, grouped-query attention and SwiGLU.
#ifndef OUTRIDER_MODEL_LLAMA_H_
#define OUTRIDER_MODEL_LLAMA_H_

#include <memory>
#include <vector>

#include "io/tensor_source.h"
#include "model/kv_cache.h"
#include "model/language_model.h"
#include "model/llama_weights.h"
#include "model/pass_plan.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// One pass at a time. Logits of a row have the same bits whatever else is in the pass, however its
// ancestors came and however many threads run (language_model.h).
class LlamaModel final : public LanguageModel {
 public:
  struct Parts {
    ModelConfig config;
    std::unique_ptr<TensorSource> source;  // what weights.embedding looks into
    LlamaWeights weights;
    const KernelTable* table = nullptr;  // the one the weights are packed for
    kernels::KvKind kv = kernels::KvKind::f32;
    int n_threads = 1;
  };
  explicit LlamaModel(Parts parts);

  const ModelConfig& config() const override { return parts_.config; }
  Footprint footprint() const override;
  std::unique_ptr<Sequence> open(const Prompt& prompt) override;
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  void embed(std::span<const TokenId> tokens, std::span<float> out) override;
  void project(std::span<const float> features, ForwardOutput& output) override;

  // A pass runs on no more threads than leave each this long a share of every layer, by estimate
  // (llama.cc derives the default). Bits do not depend on it; 0: always all threads, for tests.
  void set_least_share_ns(std::int64_t share_ns) { least_share_ns_ = share_ns; }

 private:
  // Everything one pass writes on the way, reused from pass to pass.
  struct Scratch {
    std::vector<float> x;                // (n_rows, dim): the residual stream
    Activations normed;                  // (n_rows, dim): what the products of a layer read
    std::vector<float> query;            // (n_rows, n_heads * head_dim)
    std::vector<float> key;              // (n_rows, n_kv_heads * head_dim)
    std::vector<float> value;            // (n_rows, n_kv_heads * head_dim)
    Activations attended;                // (n_rows, n_heads * head_dim)
    std::vector<float> change;           // (n_rows, dim): what a half layer adds to the stream
    std::vector<float> gate;             // (n_rows, hidden_dim)
    std::vector<float> up;               // (n_rows, hidden_dim)
    Activations hidden;                  // (n_rows, hidden_dim)
    Activations asked;                   // (n_asked, dim): what the head reads
    std::vector<float> cosines;          // (n_rows, head_dim / 2)
    std::vector<float> sines;            // (n_rows, head_dim / 2)
    std::vector<const void*> addresses;  // (n_threads, 2, longest_context): keys, values
  };

  // The pass, op by op. Each thread of the team runs all of them on its share.
  void run(const Team& team, float* logits);
  void embed(const Team& team);
  void attention(const Team& team, int layer_index);
  void store_keys_and_values(const Team& team, int layer_index);
  void attend(const Team& team, int layer_index);
  void feed_forward(const Team& team, const LlamaLayer& layer);
  void project_to_vocabulary(const Team& team, float* logits);
  void leave_features(const Team& team, int n_layers_done);

  void normalise(const Team& team, const std::vector<float>& weight);
  void add_to_stream(const Team& team, const std::vector<float>& bias);
  void make_room();
  int threads_for(int n_rows) const;

  Parts parts_;
  int query_width_;                  // n_heads * head_dim
  int kv_width_;                     // n_kv_heads * head_dim
  std::vector<double> frequencies_;  // (head_dim / 2) radians per position
  std::shared_ptr<PagePool> pool_;
  std::int64_t layer_bytes_ = 0;  // packed matrices of one layer
  std::int64_t least_share_ns_;
  PassPlan plan_;
  Scratch scratch_;
  std::span<const int> feature_layers_;  // of the pass that is running
  float* features_ = nullptr;            // (n_rows, feature_layers_.size() * dim)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LLAMA_H_
