// Composes the ops of a pass out of blocks.
#ifndef OUTRIDER_MODEL_PASS_PASS_BUILDER_H_
#define OUTRIDER_MODEL_PASS_PASS_BUILDER_H_

#include <span>
#include <vector>

#include "io/tensor_source.h"
#include "model/logit_form.h"
#include "model/pass/blocks.h"
#include "model/pass/op.h"

namespace outrider {

// A layer reads like its formula:
//
//   Rows h = pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention);
//   pass.add(h);
//
// Buffers are reused from block to block: what attention() or gated_mlp() returned is gone when the
// next block begins. Weights are referenced, not copied. Not thread-safe.
class PassBuilder {
 public:
  // dim: width of the residual stream. encoder_caches: of an encoder-decoder's decoder, those of
  // the encoder's list, behind which its own stand.
  explicit PassBuilder(int dim, std::vector<LayerCache> encoder_caches = {});

  // The residual stream.
  Rows stream() const { return stream_; }
  // Further rows: what the pass's owner fills before it runs, or another stream.
  Rows buffer(int width);

  // Attention::rope is the number that comes back. The table's angles are computed once a pass,
  // here.
  int rope(RopeTable table);

  // stream = scale * table[token].
  void embed(const TensorView& table, float scale);
  // stream += table[position].
  void add_positions(const TensorView& table);
  // Layers are those of another model's list: attentions that read the keys of its layers. Before
  // any op, for passes over its sequences (CpuPass).
  void read_caches_of(const PassList& lender);
  // What layers read with layer_input(), of the stream as it is now: the embedding.
  void layer_inputs(const LayerInputs& inputs, int n_layers);
  // Ops from here on belong to decoder layer `layer`, until end_layers().
  void begin_layer(int layer);
  void end_layers();

  // What a norm makes of the stream goes to a buffer that products read; what attention, an MLP or
  // another product added stays in its place. An empty norm of the stream copies it.
  Rows norm(const Rows& rows, const Norm& norm);
  // Of the stream as it is now, kept while blocks read what norm() makes: for a second branch that
  // does not read what the first one adds.
  Rows norm_aside(const Norm& norm);
  // The same of what a block returned.
  Rows norm_aside(const Rows& rows, const Norm& norm);
  // norm(from) of one or two parts side by side, for products to read.
  Rows join(std::span<const op::Normalise::Part> parts);
  // What is added to the stream.
  Rows attention(const Rows& read, const Attention& attention);
  // To what the encoder read: its n-th call reads what the encoder's list left by its n-th
  // keys_and_values().
  Rows cross_attention(const Rows& read, const Attention& attention);
  Rows latent_attention(const Rows& read, const LatentAttention& latent);
  // The keys and values of such a layer alone, into the KV cache: rows that later ones read.
  void keys_and_values(const Rows& read, const Attention& attention);
  Rows short_convolution(const Rows& read, const ShortConvolution& convolution);
  Rows delta_net(const Rows& read, const DeltaNet& net);
  Rows mamba(const Rows& read, const Mamba2& mamba);
  Rows gated_mlp(const Rows& read, const GatedMlp& mlp);
  Rows plain_mlp(const Rows& read, const PlainMlp& mlp);
  Rows experts(const Rows& read, const Experts& experts);
  // The two halves of it, for experts that read something else than their router; the second one
  // without Experts::narrow and widen.
  void route(const Rows& read, const Experts& experts);
  Rows routed(const Rows& read, const Experts& experts);
  // stream += sigmoid(gate read) * mlp(read), or mlp(read) where there is no gate.
  void add_shared_expert(const Rows& read, const SharedExpert& expert);
  // What the layer makes of its part of layer_inputs().
  Rows layer_input(const LayerInput& input);
  // stream = factor * stream.
  void scale(float factor);
  // W read (+ bias, added by whoever reads it) and activation(W read + bias).
  Rows linear(const Rows& read, const Linear& linear);
  Rows activated(const Rows& read, const Linear& linear, Activation activation);
  // to = W read + bias.
  void linear_into(const Rows& to, const Rows& read, const Linear& linear);
  // to += scale * (rows + its bias). stream by default.
  void add(const Rows& rows, float scale = 1) { add_to(stream_, rows, scale); }
  void add_to(const Rows& to, const Rows& rows, float scale = 1);
  // to = from.
  void copy(const Rows& from, const Rows& to);

  // Feature n_layers_done of ForwardRequest. norm may be null.
  void leave_feature(int n_layers_done, const Norm* norm);
  // The rows whose logits are asked for, normalised (norm may be null: copied), and the logits
  // themselves in that form: the buffer kLogits.
  // parts: how many of the logits each rank's output matrix gives, where `head` is one of several;
  // rank 0 has all of them then.
  void logits(const Rows& rows, const Norm* norm, const Matrix& head, const LogitForm& form = {},
              const std::vector<int>& parts = {});
  // Logits of every row of `read`, of these tokens alone.
  void spread_logits(const Rows& read, const Matrix& head, const std::vector<TokenId>& ids,
                     int vocabulary_size);

  // The list; the builder is empty afterwards.
  PassList take() { return std::move(list_); }

 private:
  // The buffer of one role, (n_rows, width); one for each width. n_slots as Buffer has it.
  Rows scratch(int role, int width, bool asked = false, int n_slots = 0);
  // The same of one rank's columns, as Buffer::parts has them; empty: of all.
  Rows split_scratch(int role, int width, const std::vector<int>& parts, bool asked = false);
  int add_buffer(int width, bool asked, int n_slots = 0);
  const std::vector<int>& parts_of(const Rows& rows) const;
  // These rows with the columns of all ranks: what an op that reads more than single columns is
  // given. Where a buffer is split, its gather stands here, before that op, and nowhere else.
  Rows whole(const Rows& rows);
  // The forms of finished rows, where products read some. Rows that are split get them when they
  // are gathered.
  void prepare(const Rows& rows, const Matrix& reader);
  template <typename What>
  void append(What what);
  void norm_in_place(const Rows& rows, const std::vector<float>& bias, const Norm& norm);
  int add_cache(const Attention& attention);
  // Those of `products` that are no empty ones.
  void multiply(const Rows& read, std::initializer_list<op::Multiply::Product> products);
  // to's heads, stride apart, of slots by head.
  void multiply_heads(const Rows& slots, const std::vector<Matrix>& matrices, const Rows& to,
                      int stride);
  void multiply_experts(const Experts& experts, const Rows& read,
                        std::initializer_list<op::MultiplyExperts::Product> products);

  struct Scratch {
    int role;
    Rows rows;
  };
  PassList list_;
  std::vector<Scratch> scratch_;
  Rows stream_;
  Rows layer_inputs_;
  int layer_ = -1;
  int next_cross_ = 0;  // cache layer to look for the next one from
  bool output_ = false;
};

// Logits stand outside of the pass's own buffers, where the caller wants them.
inline constexpr int kLogits = -4;

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_PASS_BUILDER_H_
