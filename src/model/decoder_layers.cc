#include "model/decoder_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/elementary.h"
#include "model/prefill.h"
#include "model/thread_share.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Calls use(row, first, n) for this thread's share of the elements of n_rows rows: of each row
// whole groups, or all up to its end. So a single row is every thread's work, too.
template <typename Use>
void for_parts(const Team& team, int n_rows, int width, const Use& use) {
  const std::int64_t n_groups = kernels::groups_of(width);
  const Range mine = team.share(n_rows * n_groups);
  for (std::int64_t at = mine.begin; at < mine.end;) {
    const std::int64_t row = at / n_groups;
    const std::int64_t row_begin = row * n_groups;
    const std::int64_t end = std::min(row_begin + n_groups, mine.end);
    const auto first = static_cast<int>(at - row_begin) * kernels::kGroup;
    const auto past = static_cast<int>(end - row_begin) * kernels::kGroup;
    use(static_cast<int>(row), first, std::min(past, width) - first);
    at = end;
  }
}

// The n elements of a row from first on, at y, += those of the bias, which may be empty.
void add_bias_part(const KernelTable& table, float* y, const std::vector<float>& bias, int first,
                   int n) {
  if (!bias.empty()) table.add(y, bias.data() + first, n);
}

// All layers keep all positions.
std::shared_ptr<KvCache> make_cache(const DecoderLayers::Parts& parts) {
  const std::vector<LayerCache> layers(parts.layers.size(), {.n_heads = parts.config->n_kv_heads,
                                                             .head_dim = parts.config->head_dim});
  return std::make_shared<KvCache>(layers, parts.kv, parts.most_cache_bytes);
}

}  // namespace

void add_bias(const KernelTable& table, float* y, const std::vector<float>& bias) {
  add_bias_part(table, y, bias, 0, static_cast<int>(bias.size()));
}

DecoderLayers::DecoderLayers(const Parts& parts)
    : parts_(parts),
      query_width_(parts.config->n_heads * parts.config->head_dim),
      kv_width_(parts.config->n_kv_heads * parts.config->head_dim),
      frequencies_(rope_frequencies(*parts.config)),
      cache_(make_cache(parts)),
      attention_(*parts.config, *parts.table, cache_->shape(0), parts.n_threads),
      least_share_ns_(kLeastShare_ns) {
  if (parts_.kv == kernels::KvKind::int8 &&
      parts_.config->head_dim > kernels::kMostRoundedHeadDim) {
    throw UsageError("load model", "kv int8",
                     fmt::format("heads of at most {} elements", kernels::kMostRoundedHeadDim),
                     fmt::format("{}", parts_.config->head_dim));
  }
  const LlamaLayer& layer = parts_.layers.front();
  for (const Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
                               &layer.up, &layer.down}) {
    layer_bytes_ += static_cast<std::int64_t>(linear->matrix.packed_bytes());
  }
}

std::unique_ptr<Sequence> DecoderLayers::open(const Prompt& prompt) {
  if (!prompt.encoder_tokens.empty()) {
    throw Error("open sequence", "prompt", "no encoder tokens (this model is a decoder)", "some");
  }
  auto sequence = std::make_unique<KvSequence>(cache_);
  const int n_reserved = std::min(prompt.n_reserved, parts_.config->context_length + kPrefillRows);
  attention_.expect(n_reserved);
  sequence->expect(n_reserved);
  return sequence;
}

std::unique_ptr<Sequence> DecoderLayers::fork_without(const Sequence& whole,
                                                      std::span<const int> skip_layers) const {
  const auto* sequence = dynamic_cast<const KvSequence*>(&whole);
  if (sequence == nullptr || sequence->cache() != cache_.get()) return nullptr;
  if (!sequence->skipped_layers().empty()) return nullptr;
  // The last ones, and all of these.
  int expected = parts_.config->n_layers - static_cast<int>(skip_layers.size());
  for (const int layer : skip_layers) {
    if (layer != expected++) return nullptr;
  }
  auto fork = sequence->fork();
  static_cast<KvSequence&>(*fork).set_skipped_layers(skip_layers);
  return fork;
}

void DecoderLayers::lay_out(std::span<const TokenBlock> blocks, const RowSet& logits,
                            std::span<const int> skip_layers) {
  plan_.lay_out(blocks, logits, skip_layers, *parts_.config, *cache_);
  make_room();
}

std::int64_t DecoderLayers::kv_bytes_per_token() const {
  return static_cast<std::int64_t>(cache_->token_bytes());
}

void DecoderLayers::turn(const Team& team) {
  const int half = parts_.config->head_dim / 2;
  const Range mine = team.share(plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    const PassRow& row = plan_.rows()[static_cast<std::size_t>(i)];
    float* cosines = row_of(scratch_.cosines, i, half);
    float* sines = row_of(scratch_.sines, i, half);
    for (int pair = 0; pair < half; ++pair) {
      const SineCosine turned =
          portable_sincos(row.position * frequencies_[static_cast<std::size_t>(pair)]);
      cosines[pair] = static_cast<float>(turned.cosine);
      sines[pair] = static_cast<float>(turned.sine);
    }
  }
}

void DecoderLayers::attention(const Team& team, int layer_index, const Activations& read) {
  const LlamaLayer& layer = parts_.layers[static_cast<std::size_t>(layer_index)];
  const auto query_width = static_cast<std::size_t>(query_width_);
  const auto kv_width = static_cast<std::size_t>(kv_width_);

  layer.query.matrix.comes_next(team);
  team.barrier();
  layer.query.matrix.multiply(team, read, scratch_.query.data(), query_width);
  layer.key.matrix.multiply(team, read, scratch_.key.data(), kv_width);
  layer.value.matrix.multiply(team, read, scratch_.value.data(), kv_width);
  layer.output.matrix.comes_next(team);
  team.barrier();
  store_keys_and_values(team, layer_index);
  team.barrier();
  attend(team, layer_index);
  team.barrier();
  layer.output.matrix.multiply(team, scratch_.attended, scratch_.change.data(),
                               static_cast<std::size_t>(parts_.config->dim));
  layer.gate.matrix.comes_next(team);
  team.barrier();
  add_to_stream(team, layer.output.bias);
}

// Biases, then the rotation of each head of the queries and keys, then keys and values into their
// slots, rounded to the cache's type: whoever reads them, this row included, reads them rounded.
// Head by head, all rows: the tokens of a block of keys share its cache lines.
void DecoderLayers::store_keys_and_values(const Team& team, int layer_index) {
  const KernelTable& table = *parts_.table;
  const LlamaLayer& layer = parts_.layers[static_cast<std::size_t>(layer_index)];
  const int head_dim = parts_.config->head_dim;
  const int n_heads = parts_.config->n_heads;
  const KvShape& shape = cache_->shape(layer_index);
  // use(row, x): one head of every row, x (head_dim), with its bias.
  const auto for_rows = [&](std::vector<float>& heads, int width, const std::vector<float>& bias,
                            int head, const auto& use) {
    for (int i = 0; i < plan_.n_rows(); ++i) {
      float* x = row_of(heads, i, width) + head * head_dim;
      add_bias_part(table, x, bias, head * head_dim, head_dim);
      use(i, x);
    }
  };
  const auto rotate = [&](int i, float* x) {
    table.rotate(x, row_of(scratch_.cosines, i, head_dim / 2),
                 row_of(scratch_.sines, i, head_dim / 2), head_dim / 2);
  };
  const auto store = [&](int i, const float* x, const auto& stores, std::size_t block_at) {
    const PassRow& row = plan_.rows()[static_cast<std::size_t>(i)];
    const int slot = row.sequence->n_kept() + row.node;
    stores[static_cast<int>(shape.kind)](
        x, head_dim, row.sequence->layer(slot, layer_index) + block_at, slot % kPageTokens);
  };

  // Of each head of keys and values its queries, its keys, its values: to store, a cache line an
  // element, is dearer than to rotate, and so is every thread's work.
  const int group = n_heads / shape.n_heads;
  const int n_units = group + 2;
  const Range mine = team.share(std::int64_t{shape.n_heads} * n_units);
  for (std::int64_t at = mine.begin; at < mine.end; ++at) {
    const int head = static_cast<int>(at) / n_units;
    const int unit = static_cast<int>(at) % n_units;
    if (unit < group) {
      for_rows(scratch_.query, query_width_, layer.query.bias, head * group + unit, rotate);
    } else if (unit == group) {
      for_rows(scratch_.key, kv_width_, layer.key.bias, head, [&](int i, float* key) {
        rotate(i, key);
        store(i, key, table.store_key, shape.keys_at(head));
      });
    } else {
      for_rows(scratch_.value, kv_width_, layer.value.bias, head, [&](int i, const float* value) {
        store(i, value, table.store_value, shape.values_at(head));
      });
    }
  }
}

// Weights that are bf16 bring their own arithmetic, where the table has one, to keys and values.
kernels::Attend DecoderLayers::attend_of(int layer_index) const {
  const KernelTable& table = *parts_.table;
  const WeightKind weights =
      parts_.layers[static_cast<std::size_t>(layer_index)].query.matrix.kind();
  const bool pairs = table.attend_bf16_pairs != nullptr && weights == WeightKind::bf16 &&
                     parts_.kv == kernels::KvKind::bf16 &&
                     parts_.config->head_dim <= kernels::kMostRoundedHeadDim;
  return pairs ? table.attend_bf16_pairs : table.attend[static_cast<int>(parts_.kv)];
}

void DecoderLayers::attend(const Team& team, int layer_index) {
  attention_.attend(team, attend_of(layer_index), layer_index, scratch_.query.data(),
                    scratch_.attended);
  if (!parts_.input_forms.any()) return;

  team.barrier();  // a group is prepared whole, and may be several heads' and threads' work
  for_parts(team, plan_.n_rows(), query_width_, [this](int i, int first, int n) {
    scratch_.attended.finish_part(*parts_.table, i, first, n);
  });
}

// hidden = silu(gate) * up.
void DecoderLayers::open_gate(const Team& team, const LlamaLayer& layer) {
  const KernelTable& table = *parts_.table;
  const int width = parts_.config->hidden_dim;
  for_parts(team, plan_.n_rows(), width, [&](int i, int first, int n) {
    float* gate = row_of(scratch_.gate, i, width) + first;
    float* up = row_of(scratch_.up, i, width) + first;
    add_bias_part(table, gate, layer.gate.bias, first, n);
    add_bias_part(table, up, layer.up.bias, first, n);
    table.silu_multiply(gate, up, n, scratch_.hidden.row(i) + first);
    scratch_.hidden.finish_part(table, i, first, n);
  });
}

void DecoderLayers::feed_forward(const Team& team, int layer_index, const Matrix* next) {
  const LlamaLayer& layer = parts_.layers[static_cast<std::size_t>(layer_index)];
  const auto stride = static_cast<std::size_t>(parts_.config->hidden_dim);

  normalise(team, layer.mlp_norm);  // (n_rows, dim)
  team.barrier();
  layer.gate.matrix.multiply(team, scratch_.normed, scratch_.gate.data(), stride);
  layer.up.matrix.multiply(team, scratch_.normed, scratch_.up.data(), stride);
  layer.down.matrix.comes_next(team);
  team.barrier();
  open_gate(team, layer);
  team.barrier();
  layer.down.matrix.multiply(team, scratch_.hidden, scratch_.change.data(),
                             static_cast<std::size_t>(parts_.config->dim));
  next != nullptr ? next->comes_next(team) : team.reads_next(nullptr, 0);
  team.barrier();
  add_to_stream(team, layer.down.bias);
}

void DecoderLayers::normalise(const Team& team, const std::vector<float>& weight) {
  const Range mine = team.share(plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    float* normed = scratch_.normed.row(static_cast<int>(i));
    if (weight.empty()) {
      std::copy_n(x(i), parts_.config->dim, normed);
    } else {
      parts_.table->rms_norm(x(i), weight.data(), parts_.config->dim, parts_.config->norm_epsilon,
                             normed);
    }
    scratch_.normed.finish_row(*parts_.table, static_cast<int>(i));
  }
}

// x += change (+ bias), row by row.
void DecoderLayers::add_to_stream(const Team& team, const std::vector<float>& bias) {
  const int dim = parts_.config->dim;
  const Range mine = team.share(plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    float* change = row_of(scratch_.change, i, dim);
    add_bias(*parts_.table, change, bias);
    parts_.table->add(row_of(scratch_.x, i, dim), change, dim);
  }
}

void DecoderLayers::make_room() {
  const ModelConfig& config = *parts_.config;
  const int n_rows = plan_.n_rows();
  const auto grow = [&](auto& values, int width) {
    const std::size_t n = static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(width);
    if (values.size() < n) values.resize(n);
  };
  grow(scratch_.x, config.dim);
  grow(scratch_.query, query_width_);
  grow(scratch_.key, kv_width_);
  grow(scratch_.value, kv_width_);
  grow(scratch_.change, config.dim);
  grow(scratch_.gate, config.hidden_dim);
  grow(scratch_.up, config.hidden_dim);
  grow(scratch_.cosines, config.head_dim / 2);
  grow(scratch_.sines, config.head_dim / 2);
  scratch_.normed.resize(n_rows, config.dim, parts_.input_forms);
  scratch_.attended.resize(n_rows, query_width_, parts_.input_forms);
  scratch_.hidden.resize(n_rows, config.hidden_dim, parts_.input_forms);
  attention_.make_room(plan_);
}

void DecoderLayers::begin() {
  plan_.append_nodes();
  attention_.begin(plan_, n_threads());
}

int DecoderLayers::n_threads(int n_rows) const {
  const ModelConfig& config = *parts_.config;
  const std::int64_t products_per_row =
      std::int64_t{config.dim} *
      (2 * query_width_ + 2 * kv_width_ + 3 * std::int64_t{config.hidden_dim});
  return threads_for(layer_bytes_, products_per_row * n_rows, least_share_ns_, parts_.n_threads);
}

}  // namespace outrider
