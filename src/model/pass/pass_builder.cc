// SPDX-License-Identifier: Apache-2.0
#include "model/pass/pass_builder.h"

#include <numeric>
#include <utility>

namespace outrider {
namespace {

// The roles of buffers. Two roles never share one, so that a block's inputs are not overwritten.
enum Role {
  kNormed,
  kAside,
  kPositions,
  kQuery,
  kKey,
  kValue,
  kAttended,
  kAttentionGate,
  kQueryDown,
  kPlainQueries,
  kAbsorbed,
  kLatents,
  kHeadValues,
  kGatedInputs,
  kDeltaQuery,
  kDeltaKey,
  kDeltaValue,
  kDeltaGate,
  kDeltaBeta,
  kDeltaDecay,
  kScanned,
  kConvolved,
  kBranch,
  kGate,
  kUp,
  kHidden,
  kAsked,
  kPart,
  kScores,
  kShare,
  kNarrowed,
  kGathered,
  kOfExperts,
  kOfTokens,
  kLayerInputs,
  kLogitsPart,
  kWhole  // from here on, one for each split buffer
};

}  // namespace

PassBuilder::PassBuilder(int dim, std::vector<LayerCache> encoder_caches) {
  stream_ = {.buffer = add_buffer(dim, false), .width = dim};
  list_.caches = std::move(encoder_caches);
}

int PassBuilder::add_buffer(int width, bool asked, int n_slots) {
  list_.buffers.push_back({.width = width, .asked = asked, .n_slots = n_slots, .forms = {}});
  return static_cast<int>(list_.buffers.size()) - 1;
}

Rows PassBuilder::scratch(int role, int width, bool asked, int n_slots) {
  for (const Scratch& known : scratch_) {
    const Buffer& buffer = list_.buffers[static_cast<std::size_t>(known.rows.buffer)];
    if (known.role == role && buffer.width == width && buffer.n_slots == n_slots &&
        buffer.parts.empty()) {
      return known.rows;
    }
  }
  const Rows rows{.buffer = add_buffer(width, asked, n_slots), .width = width};
  scratch_.push_back({role, rows});
  return rows;
}

Rows PassBuilder::split_scratch(int role, int width, const std::vector<int>& parts, bool asked) {
  if (parts.empty()) return scratch(role, width, asked);
  for (const Scratch& known : scratch_) {
    const Buffer& buffer = list_.buffers[static_cast<std::size_t>(known.rows.buffer)];
    if (known.role == role && buffer.width == width && buffer.parts == parts) return known.rows;
  }
  const Rows rows{.buffer = add_buffer(width, asked), .width = width};
  list_.buffers.back().parts = parts;
  scratch_.push_back({role, rows});
  return rows;
}

const std::vector<int>& PassBuilder::parts_of(const Rows& rows) const {
  return list_.buffers[static_cast<std::size_t>(rows.buffer)].parts;
}

Rows PassBuilder::whole(const Rows& rows) {
  if (rows.buffer < 0 || parts_of(rows).empty()) return rows;
  const std::vector<int>& parts = parts_of(rows);
  const int width = std::accumulate(parts.begin(), parts.end(), 0);
  const Rows to = scratch(kWhole + rows.buffer, width);
  append(op::Gather{.from = rows, .to = to});
  return to;
}

void PassBuilder::prepare(const Rows& rows, const Matrix& reader) {
  if (reader.reads().any() && parts_of(rows).empty()) append(op::Prepare{.rows = rows});
}

Rows PassBuilder::buffer(int width) { return {.buffer = add_buffer(width, false), .width = width}; }

template <typename What>
void PassBuilder::append(What what) {
  list_.ops.push_back({.what = std::move(what), .layer = layer_, .output = output_});
}

int PassBuilder::rope(RopeTable table) {
  list_.ropes.push_back(std::move(table));
  const int number = static_cast<int>(list_.ropes.size()) - 1;
  append(op::Angles{.rope = number});
  return number;
}

void PassBuilder::embed(const TensorView& table, float scale) {
  append(op::Embed{.by = op::Embed::By::token, .table = &table, .scale = scale, .to = stream_});
}

void PassBuilder::add_positions(const TensorView& table) {
  const Rows positions = scratch(kPositions, stream_.width);
  append(op::Embed{.by = op::Embed::By::position, .table = &table, .scale = 1, .to = positions});
  add(positions);
}

void PassBuilder::read_caches_of(const PassList& lender) {
  list_.caches = lender.caches;
  list_.cache_of_layer = lender.cache_of_layer;
}

void PassBuilder::layer_inputs(const LayerInputs& inputs, int n_layers) {
  const Rows all = scratch(kLayerInputs, n_layers * inputs.width);
  const Rows of_tokens = scratch(kOfTokens, all.width);
  append(op::Embed{.by = op::Embed::By::token,
                   .table = &inputs.table,
                   .scale = inputs.table_scale,
                   .to = of_tokens});
  const op::Normalise::Part stream{stream_, nullptr};
  multiply(join({&stream, 1}), {{&inputs.projection.matrix, all}});
  layer_inputs_ = {.buffer = all.buffer, .width = inputs.width};
  Rows its = layer_inputs_;
  for (int layer = 0; layer < n_layers; ++layer) {
    its.first = layer * inputs.width;
    append(op::Normalise{.parts = {{{its, &inputs.norm}, {}}}, .n_parts = 1, .to = its});
  }
  add_to(all, of_tokens);
}

void PassBuilder::begin_layer(int layer) {
  layer_ = layer;
  if (layer >= list_.n_layers) list_.n_layers = layer + 1;
}

void PassBuilder::end_layers() { layer_ = -1; }

void PassBuilder::multiply(const Rows& read,
                           std::initializer_list<op::Multiply::Product> products) {
  op::Multiply what{.from = whole(read), .products = {}, .n_products = 0};
  for (const op::Multiply::Product& product : products) {
    if (product.matrix->n_columns() == 0) continue;
    what.products[static_cast<std::size_t>(what.n_products++)] = product;
    list_.buffers[static_cast<std::size_t>(what.from.buffer)].forms |= product.matrix->reads();
  }
  append(what);
}

Rows PassBuilder::norm(const Rows& rows, const Norm& norm) {
  if (rows.buffer != stream_.buffer) {
    const Rows its = whole(rows);
    append(op::Normalise{.parts = {{{its, &norm}, {}}}, .n_parts = 1, .to = its});
    return {.buffer = its.buffer, .width = its.width};
  }
  const op::Normalise::Part part{rows, &norm};
  return join({&part, 1});
}

Rows PassBuilder::norm_aside(const Norm& norm) {
  const Rows to = scratch(kAside, stream_.width);
  append(op::Normalise{.parts = {{{stream_, &norm}, {}}}, .n_parts = 1, .to = to});
  return to;
}

Rows PassBuilder::norm_aside(const Rows& rows, const Norm& norm) {
  const Rows its = whole(rows);
  const Rows to = scratch(kAside, its.width);
  append(op::Normalise{.parts = {{{its, &norm}, {}}}, .n_parts = 1, .to = to});
  return to;
}

Rows PassBuilder::join(std::span<const op::Normalise::Part> parts) {
  op::Normalise what{.parts = {}, .n_parts = 0, .to = {}};
  int width = 0;
  for (const op::Normalise::Part& part : parts) {
    const Rows from = whole(part.from);
    what.parts[static_cast<std::size_t>(what.n_parts++)] = {from, part.norm};
    width += from.width;
  }
  what.to = scratch(kNormed, width);
  append(what);
  return what.to;
}

void PassBuilder::norm_in_place(const Rows& rows, const std::vector<float>& bias,
                                const Norm& norm) {
  const Rows from = {.buffer = rows.buffer, .width = rows.width, .bias = &bias};
  append(op::Normalise{.parts = {{{from, &norm}, {}}}, .n_parts = 1, .to = rows});
}

// Adds the cache layer of the next attention.
int PassBuilder::add_cache(const Attention& attention) {
  list_.caches.push_back({.n_heads = attention.n_kv_heads,
                          .head_dim = attention.head_dim,
                          .window = attention.window,
                          .recurrent = {},
                          .values_in_keys = attention.values_in_keys,
                          .side = attention.side});
  const int place = static_cast<int>(list_.caches.size()) - 1;
  if (layer_ >= 0 && attention.side == CacheSide::text) {
    const auto layer = static_cast<std::size_t>(layer_);
    if (list_.cache_of_layer.size() <= layer) list_.cache_of_layer.resize(layer + 1, -1);
    list_.cache_of_layer[layer] = place;
  }
  return place;
}

Rows PassBuilder::attention(const Rows& read, const Attention& attention) {
  const int kv_width = attention.n_kv_heads * attention.head_dim;
  const bool own_keys = attention.has_own_keys();
  const Rows query = scratch(kQuery, attention.n_heads * attention.head_dim);
  const Rows key = own_keys ? scratch(kKey, kv_width) : Rows{};
  const Rows value = own_keys ? scratch(kValue, kv_width) : Rows{};
  const Rows attended = split_scratch(kAttended, query.width, attention.parts);
  const int cache_layer =
      own_keys ? add_cache(attention)
               : list_.cache_of_layer.at(static_cast<std::size_t>(attention.reads_layer));
  const bool is_gated = !attention.gate.empty();
  Rows gate;
  if (is_gated) gate = scratch(kAttentionGate, query.width);
  multiply(read, {{&attention.query.matrix, query},
                  {&attention.key.matrix, key},
                  {&attention.value.matrix, value},
                  {&attention.gate.matrix, gate}});
  if (is_gated) gate.bias = &attention.gate.bias;
  if (attention.norms_all_heads) {
    norm_in_place(query, attention.query.bias, attention.query_norm);
    norm_in_place(key, attention.key.bias, attention.key_norm);
  }
  append(op::PlaceHeads{.query = query,
                        .key = key,
                        .value = value,
                        .attention = &attention,
                        .cache_layer = cache_layer});
  append(op::Attend{
      .query = query, .to = attended, .attention = &attention, .cache_layer = cache_layer});
  if (is_gated) {
    append(
        op::Gate{.gate = gate, .up = attended, .to = attended, .activation = Activation::sigmoid});
  } else {
    prepare(attended, attention.output.matrix);
  }
  return linear(attended, attention.output);
}

Rows PassBuilder::cross_attention(const Rows& read, const Attention& attention) {
  const Rows query = scratch(kQuery, attention.n_heads * attention.head_dim);
  const Rows attended = scratch(kAttended, query.width);
  while (list_.caches[static_cast<std::size_t>(next_cross_)].side != CacheSide::cross) {
    ++next_cross_;
  }
  multiply(read, {{&attention.query.matrix, query}});
  append(op::Attend{
      .query = query, .to = attended, .attention = &attention, .cache_layer = next_cross_++});
  prepare(attended, attention.output.matrix);
  return linear(attended, attention.output);
}

void PassBuilder::multiply_heads(const Rows& slots, const std::vector<Matrix>& matrices,
                                 const Rows& to, int stride) {
  for (const Matrix& matrix : matrices) {
    list_.buffers[static_cast<std::size_t>(slots.buffer)].forms |= matrix.reads();
  }
  append(op::MultiplyHeads{.from = slots, .matrices = &matrices, .to = to, .stride = stride});
}

Rows PassBuilder::latent_attention(const Rows& read, const LatentAttention& latent) {
  const Attention& attention = latent.attention;
  const int n_heads = attention.n_heads;
  const Rows query = scratch(kQuery, n_heads * (latent.plain_dim + latent.rope_dim));
  const Rows key = scratch(kKey, attention.head_dim);
  const Rows kept = scratch(kValue, attention.head_dim);
  const Rows plain = scratch(kPlainQueries, latent.plain_dim, false, n_heads);
  const Rows absorbed = scratch(kAbsorbed, n_heads * attention.head_dim);
  const Rows attended = scratch(kAttended, n_heads * latent.latent_dim);
  const Rows latents = scratch(kLatents, latent.latent_dim, false, n_heads);
  const Rows values = scratch(kHeadValues, n_heads * latent.value_dim);
  const int cache_layer = add_cache(attention);
  if (latent.query_down.empty()) {
    multiply(read, {{&attention.query.matrix, query}, {&latent.down.matrix, key}});
  } else {
    const Rows down = scratch(kQueryDown, latent.query_down.matrix.n_columns());
    multiply(read, {{&latent.query_down.matrix, down}, {&latent.down.matrix, key}});
    multiply(norm(down, latent.query_norm), {{&attention.query.matrix, query}});
  }
  append(op::PlaceLatents{.query = query,
                          .key = key,
                          .kept = kept,
                          .plain = plain,
                          .absorbed = absorbed,
                          .latent = &latent,
                          .cache_layer = cache_layer});
  multiply_heads(plain, latent.key_up, absorbed, attention.head_dim);
  append(op::Attend{
      .query = absorbed, .to = attended, .attention = &attention, .cache_layer = cache_layer});
  append(op::SplitHeads{.from = attended, .to = latents});
  multiply_heads(latents, latent.value_up, values, latent.value_dim);
  prepare(values, attention.output.matrix);
  return linear(values, attention.output);
}

void PassBuilder::keys_and_values(const Rows& read, const Attention& attention) {
  const int kv_width = attention.n_kv_heads * attention.head_dim;
  const Rows key = scratch(kKey, kv_width);
  const Rows value = scratch(kValue, kv_width);
  const int cache_layer = add_cache(attention);
  multiply(read, {{&attention.key.matrix, key}, {&attention.value.matrix, value}});
  if (attention.norms_all_heads) norm_in_place(key, attention.key.bias, attention.key_norm);
  append(op::PlaceHeads{.query = {},
                        .key = key,
                        .value = value,
                        .attention = &attention,
                        .cache_layer = cache_layer});
}

Rows PassBuilder::short_convolution(const Rows& read, const ShortConvolution& convolution) {
  const int width = convolution.width();
  Rows gated = scratch(kGatedInputs, 3 * width);
  const Rows convolved = scratch(kConvolved, width);
  list_.caches.push_back({.recurrent = shape_of_convolution(width, convolution.n_taps)});
  multiply(read, {{&convolution.input.matrix, gated}});
  gated.bias = &convolution.input.bias;
  append(op::Recur{.layer = op::Recur::Convolution{gated, &convolution},
                   .to = convolved,
                   .cache_layer = static_cast<int>(list_.caches.size()) - 1});
  return linear(convolved, convolution.output);
}

Rows PassBuilder::delta_net(const Rows& read, const DeltaNet& net) {
  const DeltaShape& shape = net.shape;
  const op::Recur::Delta delta = {.query = scratch(kDeltaQuery, shape.keys_width()),
                                  .key = scratch(kDeltaKey, shape.keys_width()),
                                  .value = scratch(kDeltaValue, shape.values_width()),
                                  .gate = scratch(kDeltaGate, shape.values_width()),
                                  .beta = scratch(kDeltaBeta, shape.n_value_heads),
                                  .decay = scratch(kDeltaDecay, shape.n_value_heads),
                                  .net = &net};
  const Rows out = scratch(kAttended, shape.values_width());
  list_.caches.push_back({.recurrent = shape_of_delta(shape)});
  multiply(read, {{&net.query.matrix, delta.query},
                  {&net.key.matrix, delta.key},
                  {&net.value.matrix, delta.value},
                  {&net.gate.matrix, delta.gate}});
  multiply(read, {{&net.beta.matrix, delta.beta}, {&net.decay.matrix, delta.decay}});
  append(op::Recur{
      .layer = delta, .to = out, .cache_layer = static_cast<int>(list_.caches.size()) - 1});
  prepare(out, net.output.matrix);
  return linear(out, net.output);
}

Rows PassBuilder::mamba(const Rows& read, const Mamba2& mamba) {
  const DeltaShape& shape = mamba.shape;
  Rows query = scratch(kDeltaQuery, shape.keys_width());
  Rows key = scratch(kDeltaKey, shape.keys_width());
  Rows value = scratch(kDeltaValue, shape.values_width());
  Rows gate = scratch(kDeltaGate, shape.values_width());
  Rows step = scratch(kDeltaDecay, shape.n_value_heads);
  const Rows out = scratch(kScanned, shape.values_width());
  list_.caches.push_back({.recurrent = shape_of_mamba(shape)});
  const int cache_layer = static_cast<int>(list_.caches.size()) - 1;
  multiply(read, {{&mamba.query.matrix, query},
                  {&mamba.key.matrix, key},
                  {&mamba.value.matrix, value},
                  {&mamba.gate.matrix, gate}});
  multiply(read, {{&mamba.step.matrix, step}});
  query.bias = &mamba.query.bias;
  key.bias = &mamba.key.bias;
  value.bias = &mamba.value.bias;
  gate.bias = &mamba.gate.bias;
  step.bias = &mamba.step.bias;
  append(op::Recur{.layer = op::Recur::MambaInputs{query, key, value, &mamba},
                   .cache_layer = cache_layer});
  append(op::Recur{
      .layer = op::Recur::Mamba{query, step, &mamba}, .to = out, .cache_layer = cache_layer});
  append(op::Gate{.gate = gate, .up = out, .to = out, .activation = Activation::silu});
  const op::Normalise::Part part{out, &mamba.norm};
  return linear(join({&part, 1}), mamba.output);
}

Rows PassBuilder::gated_mlp(const Rows& read, const GatedMlp& mlp) {
  Rows gate = scratch(kGate, mlp.gate.matrix.n_columns());
  Rows up = scratch(kUp, gate.width);
  const Rows hidden = split_scratch(kHidden, gate.width, mlp.up.parts);
  multiply(read, {{&mlp.gate.matrix, gate}, {&mlp.up.matrix, up}});
  gate.bias = &mlp.gate.bias;
  up.bias = &mlp.up.bias;
  append(op::Gate{.gate = gate, .up = up, .to = hidden, .activation = mlp.activation});
  return linear(hidden, mlp.down);
}

Rows PassBuilder::plain_mlp(const Rows& read, const PlainMlp& mlp) {
  const Rows hidden = split_scratch(kHidden, mlp.up.matrix.n_columns(), mlp.up.parts);
  multiply(read, {{&mlp.up.matrix, hidden}});
  Rows up = hidden;
  up.bias = &mlp.up.bias;
  append(op::Gate{.gate = up, .up = {}, .to = hidden, .activation = mlp.activation});
  return linear(hidden, mlp.down);
}

void PassBuilder::multiply_experts(const Experts& experts, const Rows& read,
                                   std::initializer_list<op::MultiplyExperts::Product> products) {
  op::MultiplyExperts what{
      .from = read, .products = {}, .n_products = 0, .experts = &experts, .memory = experts.memory};
  for (const op::MultiplyExperts::Product& product : products) {
    what.products[static_cast<std::size_t>(what.n_products++)] = product;
    for (const Matrix& matrix : *product.matrices) {
      if (matrix.n_columns() == 0) continue;  // on another rank
      list_.buffers[static_cast<std::size_t>(read.buffer)].forms |= matrix.reads();
    }
  }
  append(what);
}

Rows PassBuilder::experts(const Rows& read, const Experts& experts) {
  route(read, experts);
  if (experts.narrow.empty()) return routed(read, experts);
  // With the bias added now, since several slots read a row.
  const Rows narrowed = scratch(kNarrowed, experts.narrow.matrix.n_columns());
  linear_into(narrowed, read, experts.narrow);
  const Rows sum = routed(narrowed, experts);
  prepare(sum, experts.widen.matrix);
  return linear(sum, experts.widen);
}

void PassBuilder::route(const Rows& read, const Experts& experts) {
  Rows scores = scratch(kScores, experts.n());
  multiply(read, {{&experts.router, scores}});
  if (!experts.router_bias.empty()) scores.bias = &experts.router_bias;
  append(op::Route{.scores = scores, .experts = &experts});
}

Rows PassBuilder::routed(const Rows& read, const Experts& experts) {
  const int hidden_dim = experts.own(experts.up).n_columns();
  const auto gathered = [&](int role, int width) {
    return scratch(role, width, false, experts.n_used);
  };
  const Rows rows = gathered(kGathered, read.width);
  const Rows hidden = gathered(kHidden, hidden_dim);
  const Rows down = gathered(kOfExperts, read.width);
  const Rows sum = scratch(kBranch, read.width);
  append(op::Normalise{.parts = {{{read, nullptr}, {}}},
                       .n_parts = 1,
                       .to = rows,
                       .takes = op::Normalise::Takes::routed,
                       .experts = &experts});
  const Experts* const own_slots = experts.parts.empty() ? nullptr : &experts;
  if (experts.gate.empty()) {
    multiply_experts(experts, rows, {{&experts.up, hidden}});
    append(op::Gate{.gate = hidden,
                    .up = {},
                    .to = hidden,
                    .activation = experts.activation,
                    .experts = own_slots});
  } else {
    const Rows gate = gathered(kGate, hidden_dim);
    const Rows up = gathered(kUp, hidden_dim);
    multiply_experts(experts, rows, {{&experts.gate, gate}, {&experts.up, up}});
    append(op::Gate{.gate = gate,
                    .up = up,
                    .to = hidden,
                    .activation = experts.activation,
                    .limit = experts.limit,
                    .experts = experts.gate_bias.empty() ? own_slots : &experts});
  }
  multiply_experts(experts, hidden, {{&experts.down, down}});
  if (!experts.parts.empty()) append(op::GatherExperts{.rows = down, .experts = &experts});
  append(op::SumExperts{.from = down, .to = sum, .experts = &experts});
  return sum;
}

void PassBuilder::add_shared_expert(const Rows& read, const SharedExpert& expert) {
  if (expert.gate.empty()) return add(gated_mlp(read, expert.mlp));
  const Rows share = scratch(kShare, 1);
  multiply(read, {{&expert.gate.matrix, share}});
  const Rows out = whole(gated_mlp(read, expert.mlp));
  append(op::Add{.to = stream_, .from = out, .scale = 1, .gate = share});
}

Rows PassBuilder::layer_input(const LayerInput& input) {
  const int width = layer_inputs_.width;
  const Rows gate = scratch(kGate, width);
  const Rows hidden = scratch(kHidden, width);
  Rows its = layer_inputs_;
  its.first = layer_ * width;
  const op::Normalise::Part stream{stream_, nullptr};
  multiply(join({&stream, 1}), {{&input.gate.matrix, gate}});
  append(op::Gate{.gate = gate, .up = its, .to = hidden, .activation = input.activation});
  return linear(hidden, input.output);
}

void PassBuilder::scale(float factor) {
  if (factor == 1) return;
  append(op::Normalise{
      .parts = {{{stream_, nullptr}, {}}}, .n_parts = 1, .to = stream_, .scale = factor});
}

Rows PassBuilder::linear(const Rows& read, const Linear& linear) {
  Rows to = split_scratch(kBranch, linear.matrix.n_columns(), linear.parts);
  multiply(read, {{&linear.matrix, to}});
  to.bias = &linear.bias;
  return to;
}

Rows PassBuilder::activated(const Rows& read, const Linear& linear, Activation activation) {
  const Rows branch = this->linear(read, linear);
  const Rows to = {.buffer = branch.buffer, .width = branch.width};
  append(op::Gate{.gate = branch, .up = {}, .to = to, .activation = activation});
  return to;
}

void PassBuilder::linear_into(const Rows& to, const Rows& read, const Linear& linear) {
  multiply(read, {{&linear.matrix, to}});
  if (!linear.bias.empty()) {
    append(op::Add{.to = to, .from = {.buffer = -1, .width = to.width, .bias = &linear.bias}});
  }
}

void PassBuilder::add_to(const Rows& to, const Rows& rows, float scale) {
  append(op::Add{.to = to, .from = whole(rows), .scale = scale});
}

void PassBuilder::copy(const Rows& from, const Rows& to) {
  append(op::Normalise{.parts = {{{whole(from), nullptr}, {}}}, .n_parts = 1, .to = to});
}

void PassBuilder::leave_feature(int n_layers_done, const Norm* norm) {
  // The op belongs to no layer: if the layer is skipped, the feature is the stream that bypassed
  // it.
  const int layer = std::exchange(layer_, -1);
  append(op::LeaveFeature{.n_layers_done = n_layers_done, .from = stream_, .norm = norm});
  layer_ = layer;
}

void PassBuilder::logits(const Rows& rows, const Norm* norm, const Matrix& head,
                         const LogitForm& form, const std::vector<int>& parts) {
  output_ = true;
  const Rows asked = scratch(kAsked, rows.width, true);
  const Rows logits = parts.empty() ? Rows{.buffer = kLogits, .width = head.n_columns()}
                                    : split_scratch(kLogitsPart, head.n_columns(), parts, true);
  // A product's input is narrower than its output, so the input is scaled.
  append(op::Normalise{.parts = {{{rows, norm}, {}}},
                       .n_parts = 1,
                       .to = asked,
                       .takes = op::Normalise::Takes::asked,
                       .scale = form.scale});
  multiply(asked, {{&head, logits}});
  if (form.softcap > 0) append(op::SoftCap{.rows = logits, .cap = form.softcap});
  if (!parts.empty()) {
    const int width = std::accumulate(parts.begin(), parts.end(), 0);
    append(op::Gather{.from = logits, .to = {.buffer = kLogits, .width = width}, .asked = true});
  }
  output_ = false;
}

void PassBuilder::spread_logits(const Rows& read, const Matrix& head,
                                const std::vector<TokenId>& ids, int vocabulary_size) {
  const Rows part = scratch(kPart, head.n_columns());
  multiply(read, {{&head, part}});
  append(
      op::Spread{.from = part, .to = {.buffer = kLogits, .width = vocabulary_size}, .ids = &ids});
}

}  // namespace outrider
