// SPDX-License-Identifier: Apache-2.0
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
// Buffers are reused between blocks: the result of attention() or gated_mlp() is invalid when the
// next block begins. Weights are referenced, not copied. Not thread-safe.
class PassBuilder {
 public:
  // dim: width of the residual stream. encoder_caches: for an encoder-decoder's decoder, the caches
  // of the encoder's list, which precede its own.
  explicit PassBuilder(int dim, std::vector<LayerCache> encoder_caches = {});

  // The residual stream.
  Rows stream() const { return stream_; }
  // Additional rows, which the pass's owner fills before it runs, or another stream.
  Rows buffer(int width);

  // Returns the value for Attention::rope. The table's angles are computed once per pass, here.
  int rope(RopeTable table);

  // stream = scale * table[token].
  void embed(const TensorView& table, float scale);
  // stream += table[position].
  void add_positions(const TensorView& table);
  // Attentions read the keys of another model's layers (its list). Call it before any op, for
  // passes over that model's sequences (CpuPass).
  void read_caches_of(const PassList& lender);
  // Computes the inputs of layer_input() from the current stream: the embedding.
  void layer_inputs(const LayerInputs& inputs, int n_layers);
  // The following ops belong to decoder layer `layer`, until end_layers().
  void begin_layer(int layer);
  void end_layers();

  // The norm's output, in a buffer that products read; the output of attention, an MLP or another
  // product is normalised in place. An empty norm of the stream copies it.
  Rows norm(const Rows& rows, const Norm& norm);
  // The norm of the current stream, kept while blocks read other norms: for a second branch that
  // does not read the first one's sum.
  Rows norm_aside(const Norm& norm);
  // The same for a block's output.
  Rows norm_aside(const Rows& rows, const Norm& norm);
  // norm(from) of one or two parts side by side, for products to read.
  Rows join(std::span<const op::Normalise::Part> parts);
  // The output, which is added to the stream.
  Rows attention(const Rows& read, const Attention& attention);
  // Attention to the encoder: its n-th call reads what the encoder's list stored by its n-th
  // keys_and_values().
  Rows cross_attention(const Rows& read, const Attention& attention);
  Rows latent_attention(const Rows& read, const LatentAttention& latent);
  // Only stores keys and values in the KV cache, which later rows read.
  void keys_and_values(const Rows& read, const Attention& attention);
  Rows short_convolution(const Rows& read, const ShortConvolution& convolution);
  Rows delta_net(const Rows& read, const DeltaNet& net);
  Rows mamba(const Rows& read, const Mamba2& mamba);
  Rows gated_mlp(const Rows& read, const GatedMlp& mlp);
  Rows plain_mlp(const Rows& read, const PlainMlp& mlp);
  Rows experts(const Rows& read, const Experts& experts);
  // The two halves of experts(), for experts that read another input than their router; the second
  // one without Experts::narrow and widen.
  void route(const Rows& read, const Experts& experts);
  Rows routed(const Rows& read, const Experts& experts);
  // stream += sigmoid(gate read) * mlp(read), or mlp(read) without a gate.
  void add_shared_expert(const Rows& read, const SharedExpert& expert);
  // The layer's output from its part of layer_inputs().
  Rows layer_input(const LayerInput& input);
  // stream = factor * stream.
  void scale(float factor);
  // W read (+ bias, added by the reader) and activation(W read + bias).
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
  // Normalises the rows with logits (norm may be null: copies) and computes the logits in that
  // form: the buffer kLogits. parts: the number of logits of each rank's output matrix, if `head`
  // is one of several; then rank 0 gets all of them.
  void logits(const Rows& rows, const Norm* norm, const Matrix& head, const LogitForm& form = {},
              const std::vector<int>& parts = {});
  // Logits of every row of `read`, for these tokens alone.
  void spread_logits(const Rows& read, const Matrix& head, const std::vector<TokenId>& ids,
                     int vocabulary_size);

  // The list; the builder is empty afterwards.
  PassList take() { return std::move(list_); }

 private:
  // The buffer of a role, (n_rows, width); one per width. n_slots as in Buffer.
  Rows scratch(int role, int width, bool asked = false, int n_slots = 0);
  // The same for one rank's columns, as in Buffer::parts; empty: for all.
  Rows split_scratch(int role, int width, const std::vector<int>& parts, bool asked = false);
  int add_buffer(int width, bool asked, int n_slots = 0);
  const std::vector<int>& parts_of(const Rows& rows) const;
  // These rows with the columns of all ranks, for an op that reads more than single columns. If a
  // buffer is split, it is gathered here, before that op.
  Rows whole(const Rows& rows);
  // Writes the forms of finished rows that products read. Split rows get them when gathered.
  void prepare(const Rows& rows, const Matrix& reader);
  template <typename What>
  void append(What what);
  void norm_in_place(const Rows& rows, const std::vector<float>& bias, const Norm& norm);
  int add_cache(const Attention& attention);
  // Skips empty products.
  void multiply(const Rows& read, std::initializer_list<op::Multiply::Product> products);
  // to's heads, stride apart, from slots by head.
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
  int next_cross_ = 0;  // the cache layer from which to search the next one
  bool output_ = false;
};

// Logits are outside of the pass's own buffers: the caller provides the memory.
inline constexpr int kLogits = -4;

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_PASS_BUILDER_H_
