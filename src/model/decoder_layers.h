// The layers of a Llama-type decoder over the rows of one pass: what a model and the heads that
// draft for it have in common. What the rows begin as, and what becomes of them behind the last
// layer, is their owner's business.
#ifndef OUTRIDER_MODEL_DECODER_LAYERS_H_
#define OUTRIDER_MODEL_DECODER_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/table.h"
#include "kernels/whole_attention.h"
#include "model/cache/kv_sequence.h"
#include "model/config.h"
#include "model/language_model.h"
#include "model/llama_weights.h"
#include "model/pass_attention.h"
#include "model/pass_plan.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// Row `row` of a row-major (n, width) array.
template <typename T>
T* row_of(std::vector<T>& values, std::int64_t row, int width) {
  return values.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
}

// y += bias, which may be empty.
void add_bias(const KernelTable& table, float* y, const std::vector<float>& bias);

// A pass goes
//
//   layers.lay_out(blocks, logits);                      one thread; throws
//   layers.begin();                                      does not throw from here on
//   run_team(layers.n_threads(), [&](const Team& team) {
//     ... each row of this thread's share written to x()
//     layers.turn(team);
//     for (i = 0; i < n_layers; ++i) {
//       layers.normalise(team, attention_norm);          or another input, own width
//       layers.attention(team, i, layers.normed());
//       layers.feed_forward(team, i, next);            the next layer's query matrix, for example
//     }
//     ... x() read, rows shared out in the same way
//   });
//
// Rows are shared out in the same way everywhere (team.share), so that between two ops that both
// work row by row no barrier is needed. Products are shared out over columns: a barrier before, and
// one after. One pass at a time; a row's bits depend on its own inputs alone (kernels/table.h).
class DecoderLayers {
 public:
  // What it points to outlives it and does not move.
  struct Parts {
    const ModelConfig* config = nullptr;
    std::span<const LlamaLayer> layers;  // one at least
    const KernelTable* table = nullptr;  // the one the weights are packed for
    kernels::KvKind kv = kernels::KvKind::f32;
    std::size_t most_cache_bytes = PagePool::kUnbounded;
    int n_threads = 1;
    InputForms input_forms;  // what the matrices read, all together
  };
  explicit DecoderLayers(const Parts& parts);

  // An empty sequence. Throws Error on encoder tokens.
  std::unique_ptr<Sequence> open(const Prompt& prompt);
  // As LanguageModel has it.
  std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                         std::span<const int> skip_layers) const;

  // Checks the blocks, lays out their rows and makes room for the pass. Throws Error (or
  // std::bad_alloc); no sequence has changed then. skip_layers: those that the pass will leave out
  // (ForwardRequest).
  void lay_out(std::span<const TokenBlock> blocks, const RowSet& logits,
               std::span<const int> skip_layers = {});
  // The rows become pending nodes of their sequences.
  void begin();
  const PassPlan& plan() const { return plan_; }
  // Of a pass over n_rows rows: no more than leave each thread share enough of every layer.
  int n_threads(int n_rows) const;
  int n_threads() const { return n_threads(plan_.n_rows()); }

  // Of the pass's row i: the residual stream (dim).
  float* x(std::int64_t i) { return row_of(scratch_.x, i, parts_.config->dim); }

  // Each row's rotation angles, which all layers share.
  void turn(const Team& team);
  // normed = x / rms(x) * weight, row by row; with an empty weight, normed = x.
  void normalise(const Team& team, const std::vector<float>& weight);
  const Activations& normed() const { return scratch_.normed; }
  // x += Wo attend(rope(Wq read), rope(Wk read), Wv read). read: (n_rows, inputs of the products),
  // finished by the same thread that has the row.
  void attention(const Team& team, int layer_index, const Activations& read);
  // x += Wdown (silu(Wgate norm(x)) * Wup norm(x)). next: what the team multiplies with next, or
  // null.
  void feed_forward(const Team& team, int layer_index, const Matrix* next);

  std::int64_t kv_bytes_per_token() const;

  // A pass runs on no more threads than leave each this long a share of every layer, by estimate
  // (thread_share.h derives the default). Bits do not depend on it; 0: always all threads, for
  // tests.
  void set_least_share_ns(std::int64_t share_ns) { least_share_ns_ = share_ns; }

 private:
  // Everything one pass writes on the way, reused from pass to pass.
  struct Scratch {
    std::vector<float> x;        // (n_rows, dim): the residual stream
    Activations normed;          // (n_rows, dim): what the products of a layer read
    std::vector<float> query;    // (n_rows, n_heads * head_dim)
    std::vector<float> key;      // (n_rows, n_kv_heads * head_dim)
    std::vector<float> value;    // (n_rows, n_kv_heads * head_dim)
    Activations attended;        // (n_rows, n_heads * head_dim)
    std::vector<float> change;   // (n_rows, dim): what a half layer adds to the stream
    std::vector<float> gate;     // (n_rows, hidden_dim)
    std::vector<float> up;       // (n_rows, hidden_dim)
    Activations hidden;          // (n_rows, hidden_dim)
    std::vector<float> cosines;  // (n_rows, head_dim / 2)
    std::vector<float> sines;    // (n_rows, head_dim / 2)
  };

  void store_keys_and_values(const Team& team, int layer_index);
  kernels::Attend attend_of(int layer_index) const;
  // Of the queries in scratch, what the output product reads.
  void attend(const Team& team, int layer_index);
  void open_gate(const Team& team, const LlamaLayer& layer);
  void add_to_stream(const Team& team, const std::vector<float>& bias);
  void make_room();

  Parts parts_;
  int query_width_;                  // n_heads * head_dim
  int kv_width_;                     // n_kv_heads * head_dim
  std::vector<double> frequencies_;  // (head_dim / 2) radians per position
  std::shared_ptr<KvCache> cache_;
  PassAttention attention_;
  std::int64_t layer_bytes_ = 0;  // packed matrices of one layer
  std::int64_t least_share_ns_;
  PassPlan plan_;
  Scratch scratch_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_DECODER_LAYERS_H_
