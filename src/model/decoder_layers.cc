#include "model/decoder_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/elementary.h"
#include "model/prefill.h"
#include "model/thread_share.h"
#include "outrider/error.h"

namespace outrider {

void add_bias(const KernelTable& table, float* y, const std::vector<float>& bias) {
  if (!bias.empty()) table.add(y, bias.data(), static_cast<int>(bias.size()));
}

DecoderLayers::DecoderLayers(const Parts& parts)
    : parts_(parts),
      query_width_(parts.config->n_heads * parts.config->head_dim),
      kv_width_(parts.config->n_kv_heads * parts.config->head_dim),
      frequencies_(rope_frequencies(*parts.config)),
      pool_(std::make_shared<PagePool>(KvShape{.n_layers = static_cast<int>(parts.layers.size()),
                                               .n_heads = parts.config->n_kv_heads,
                                               .head_dim = parts.config->head_dim,
                                               .kind = parts.kv})),
      least_share_ns_(kLeastShare_ns) {
  if (parts_.kv == kernels::KvKind::int8 &&
      parts_.config->head_dim > kernels::kMostRoundedHeadDim) {
    throw UsageError("load model", "kv int8",
                     fmt::format("heads of at most {} elements", kernels::kMostRoundedHeadDim),
                     fmt::format("{}", parts_.config->head_dim));
  }
  const auto most_threads = static_cast<std::size_t>(parts_.n_threads);
  scratch_.attend_room = allocate_big_memory(most_threads * 2 * pool_->shape().block_bytes());
  const std::size_t n_walks = most_threads * whole_walks();
  scratch_.whole_sums.resize(n_walks * static_cast<std::size_t>(parts_.config->head_dim));
  scratch_.whole_states.resize(2 * n_walks);
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
  auto sequence = std::make_unique<KvSequence>(pool_);
  const int n_reserved = std::min(prompt.n_reserved, parts_.config->context_length + kPrefillRows);
  longest_reserved_ = std::max(longest_reserved_, n_reserved);
  sequence->hold(n_reserved);
  return sequence;
}

std::unique_ptr<Sequence> DecoderLayers::fork_without(const Sequence& whole,
                                                      std::span<const int> skip_layers) const {
  const auto* sequence = dynamic_cast<const KvSequence*>(&whole);
  if (sequence == nullptr || sequence->pool() != pool_.get()) return nullptr;
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
  plan_.lay_out(blocks, logits, skip_layers, *parts_.config, *pool_);
  make_room();
}

std::int64_t DecoderLayers::kv_bytes_per_token() const {
  return static_cast<std::int64_t>(pool_->shape().token_bytes());
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
  attend(team, layer_index);  // (n_rows, n_heads * head_dim)
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
  const KvShape& shape = pool_->shape();
  // use(row, x): one head of every row, x (head_dim), with its bias.
  const auto for_rows = [&](std::vector<float>& heads, int width, const std::vector<float>& bias,
                            int head, const auto& use) {
    for (int i = 0; i < plan_.n_rows(); ++i) {
      float* x = row_of(heads, i, width) + head * head_dim;
      if (!bias.empty()) table.add(x, bias.data() + head * head_dim, head_dim);
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

  const Range mine = team.share(n_heads + 2 * shape.n_heads);
  for (std::int64_t unit = mine.begin; unit < mine.end; ++unit) {
    if (unit < n_heads) {
      for_rows(scratch_.query, query_width_, layer.query.bias, static_cast<int>(unit), rotate);
      continue;
    }
    const int head = static_cast<int>(unit - n_heads) / 2;
    if ((unit - n_heads) % 2 == 0) {
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

// softmax(q k^T / sqrt(head_dim)) v: over (rows that attend together, key-value head), each with
// the query heads that share it; where splits are shared, over these too, whose parts are merged
// behind a barrier, over (row, head).
void DecoderLayers::attend(const Team& team, int layer_index) {
  const KernelTable& table = *parts_.table;
  const ModelConfig& config = *parts_.config;
  const int group = config.n_heads / config.n_kv_heads;
  const KvShape& shape = pool_->shape();
  const auto thread = static_cast<std::size_t>(team.index());
  const std::span<const void*> chunks =
      std::span(scratch_.chunks).subspan(thread * chunks_per_thread(), chunks_per_thread());
  kernels::AttendRow rows[kernels::kMostAttendRows] = {};

  kernels::AttendArgs args{};
  args.rows = rows;
  args.n_queries = group;
  args.query_stride = static_cast<std::size_t>(config.head_dim);
  args.out_stride = static_cast<std::size_t>(config.head_dim);
  args.head_dim = config.head_dim;
  args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.head_dim)));
  args.chunks = chunks.data();
  args.room = scratch_.attend_room.get() + thread * 2 * shape.block_bytes();

  const kernels::WholeAttentionRoom whole_room = {
      .sums = scratch_.whole_sums.data() +
              thread * whole_walks() * static_cast<std::size_t>(config.head_dim),
      .states = scratch_.whole_states.data() + thread * 2 * whole_walks()};
  const kernels::Attend attend = attend_of(layer_index);

  const KvSequence* gathered = nullptr;
  // A head's splits one behind the other: each calls for what the next one reads first.
  const std::int64_t n_block_units = std::int64_t{config.n_kv_heads} * n_shared_splits_;
  const std::int64_t n_units = static_cast<std::int64_t>(blocks_.size()) * n_block_units;
  team.deal(n_units, 1, [&](const Range& part) {
    for (std::int64_t unit = part.begin; unit < part.end; ++unit) {
      const AttendBlock& block = blocks_[static_cast<std::size_t>(unit / n_block_units)];
      const int kv_head = static_cast<int>(unit % n_block_units / n_shared_splits_);
      const int first_query = kv_head * group * config.head_dim;
      args.n_rows = block.n_rows;
      args.keys_at = shape.keys_at(kv_head);
      args.values_at = shape.values_at(kv_head);
      for (int r = 0; r < block.n_rows; ++r) {
        const int i = block.first_row + r;
        const PassRow& row = plan_.rows()[static_cast<std::size_t>(i)];
        const Whereabouts& where = whereabouts_[static_cast<std::size_t>(i)];
        rows[r] = {.queries = row_of(scratch_.query, i, query_width_) + first_query,
                   .out = scratch_.attended.row(i) + first_query,
                   .states = nullptr,
                   .n_keys = row.position + 1,
                   .n_in_place = where.n_in_place,
                   .slots = scratch_.slots.data() + where.first_slot};
      }
      const KvSequence* sequence = plan_.rows()[static_cast<std::size_t>(block.first_row)].sequence;
      if (gathered != sequence) {
        sequence->chunks(layer_index,
                         chunks.subspan(0, std::min(chunks.size(), sequence->n_pages())));
      }
      gathered = sequence;
      if (n_shared_splits_ == 1) {
        kernels::attend_whole(table, attend, args, whole_room);
      } else {
        attend_split(attend, args, block, kv_head * group,
                     static_cast<int>(unit % n_shared_splits_));
      }
    }
  });
  if (n_shared_splits_ > 1) {
    team.barrier();
    merge_splits(team);
  }
  if (!parts_.input_forms.any()) return;

  team.barrier();  // a row is prepared whole, and its heads may be several threads' work
  const Range mine = team.share(plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    scratch_.attended.finish_row(*parts_.table, static_cast<int>(i));
  }
}

float* DecoderLayers::split_sums(int row, int head, int split) {
  const ModelConfig& config = *parts_.config;
  if (split == 0) return scratch_.attended.row(row) + head * config.head_dim;
  return row_of(scratch_.split_sums, std::int64_t{split - 1} * plan_.n_rows() + row, query_width_) +
         head * config.head_dim;
}

kernels::AttendState* DecoderLayers::split_states(int row, int head, int split) {
  return row_of(scratch_.split_states, std::int64_t{split} * plan_.n_rows() + row,
                parts_.config->n_heads) +
         head;
}

// args: of the whole block, for query heads from first_head on.
void DecoderLayers::attend_split(kernels::Attend attend, const kernels::AttendArgs& args,
                                 const AttendBlock& block, int first_head, int split) {
  kernels::AttendRow rows[kernels::kMostAttendRows];
  kernels::AttendArgs one = args;
  one.rows = rows;
  one.n_rows = 0;
  one.split = split;
  for (int r = 0; r < args.n_rows; ++r) {
    if (kernels::splits_of(args.rows[r].n_keys) <= split) continue;
    kernels::AttendRow& row = rows[one.n_rows++] = args.rows[r];
    row.out = split_sums(block.first_row + r, first_head, split);
    row.states = split_states(block.first_row + r, first_head, split);
  }
  if (one.n_rows > 0) attend(one);
}

void DecoderLayers::merge_splits(const Team& team) {
  const KernelTable& table = *parts_.table;
  const int n_heads = parts_.config->n_heads;
  const int head_dim = parts_.config->head_dim;
  const Range mine = team.share(std::int64_t{plan_.n_rows()} * n_heads);
  for (std::int64_t unit = mine.begin; unit < mine.end; ++unit) {
    const int row = static_cast<int>(unit / n_heads);
    const int head = static_cast<int>(unit % n_heads);
    float* sums = split_sums(row, head, 0);
    kernels::AttendState* state = split_states(row, head, 0);
    const int n_splits =
        kernels::splits_of(plan_.rows()[static_cast<std::size_t>(row)].position + 1);
    for (int split = 1; split < n_splits; ++split) {
      table.merge_split(split_sums(row, head, split), *split_states(row, head, split), head_dim,
                        sums, state);
    }
    table.finish_attention(*state, head_dim, sums);
  }
}

void DecoderLayers::feed_forward(const Team& team, int layer_index) {
  const LlamaLayer& layer = parts_.layers[static_cast<std::size_t>(layer_index)];
  const KernelTable& table = *parts_.table;
  const int hidden_dim = parts_.config->hidden_dim;
  const auto stride = static_cast<std::size_t>(hidden_dim);

  normalise(team, layer.mlp_norm);  // (n_rows, dim)
  team.barrier();
  layer.gate.matrix.multiply(team, scratch_.normed, scratch_.gate.data(), stride);
  layer.up.matrix.multiply(team, scratch_.normed, scratch_.up.data(), stride);
  layer.down.matrix.comes_next(team);
  team.barrier();
  const Range mine = team.share(plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    float* gate = row_of(scratch_.gate, i, hidden_dim);
    float* up = row_of(scratch_.up, i, hidden_dim);
    add_bias(table, gate, layer.gate.bias);
    add_bias(table, up, layer.up.bias);
    table.silu_multiply(gate, up, hidden_dim, scratch_.hidden.row(static_cast<int>(i)));
    scratch_.hidden.finish_row(table, static_cast<int>(i));
  }
  team.barrier();
  layer.down.matrix.multiply(team, scratch_.hidden, scratch_.change.data(),
                             static_cast<std::size_t>(parts_.config->dim));
  const auto next = static_cast<std::size_t>(layer_index) + 1;
  if (next < parts_.layers.size()) parts_.layers[next].query.matrix.comes_next(team);
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
  if (blocks_.capacity() < static_cast<std::size_t>(n_rows)) {
    blocks_.reserve(static_cast<std::size_t>(n_rows));
  }
  make_room_for_splits();
  grow(whereabouts_, 1);
  std::size_t n_slots = 0;
  for (const PassRow& row : plan_.rows()) {
    const int depth = row.position - row.sequence->n_kept();
    if (row.node != depth) n_slots += static_cast<std::size_t>(depth) + 1;
  }
  if (scratch_.slots.size() < n_slots) {
    scratch_.slots.resize(std::max(n_slots, 2 * scratch_.slots.size()));
  }
  const std::size_t n_chunks = chunks_per_thread() * static_cast<std::size_t>(parts_.n_threads);
  if (scratch_.chunks.size() < n_chunks) {
    // Doubling, since a decoded sequence grows by a few tokens every pass.
    scratch_.chunks.resize(std::max(n_chunks, 2 * scratch_.chunks.size()));
  }
}

std::size_t DecoderLayers::whole_walks() const {
  return static_cast<std::size_t>(kernels::kMostAttendRows) *
         static_cast<std::size_t>(parts_.config->n_heads / parts_.config->n_kv_heads);
}

std::size_t DecoderLayers::chunks_per_thread() const {
  const int n_slots = std::max(plan_.n_slots(), longest_reserved_);
  return static_cast<std::size_t>((n_slots + kPageTokens - 1) / kPageTokens);
}

void DecoderLayers::begin() {
  plan_.append_nodes();
  find_whereabouts();
  share_out_attention();
}

void DecoderLayers::find_whereabouts() {
  int n_slots = 0;
  for (int i = 0; i < plan_.n_rows(); ++i) {
    const PassRow& row = plan_.rows()[static_cast<std::size_t>(i)];
    const int n_in_place = row.sequence->n_in_place(row.node);
    whereabouts_[static_cast<std::size_t>(i)] = {.n_in_place = n_in_place, .first_slot = n_slots};
    const int n_others = row.position + 1 - n_in_place;
    row.sequence->others(row.node, std::span(scratch_.slots)
                                       .subspan(static_cast<std::size_t>(n_slots),
                                                static_cast<std::size_t>(n_others)));
    n_slots += n_others;
  }
}

// Passes of more rows have parts enough, and would need much room to be merged.
constexpr int kMostSharedRows = 64;

// How many splits of so many positions this pass shares out: all, unless the heads alone share out
// evenly over the threads, or there are rows enough.
int DecoderLayers::shared_splits(int n_positions) const {
  const bool evenly = parts_.config->n_kv_heads % n_threads() == 0;
  return evenly || plan_.n_rows() > kMostSharedRows ? 1 : kernels::splits_of(n_positions);
}

// For whatever pass of so many rows may share them, on however many threads: a prompt's passes,
// which do not, make room for the drafts behind it.
void DecoderLayers::make_room_for_splits() {
  bool ever = false;
  for (int n = 2; n <= parts_.n_threads; ++n) ever = ever || parts_.config->n_kv_heads % n != 0;
  const int n_splits = kernels::splits_of(std::max(plan_.n_slots(), longest_reserved_));
  if (!ever || n_splits == 1) return;
  const auto n_rows = static_cast<std::size_t>(std::min(plan_.n_rows(), kMostSharedRows));
  const auto grow = [&](auto& values, std::int64_t width) {
    const std::size_t n = n_rows * static_cast<std::size_t>(width);
    if (values.size() < n) values.resize(n);
  };
  grow(scratch_.split_states, std::int64_t{n_splits} * parts_.config->n_heads);
  grow(scratch_.split_sums, std::int64_t{n_splits - 1} * query_width_);
}

// Rows attend together if they follow one another in one sequence. All that may, where the heads
// alone share out evenly over the threads; else few enough in a block that every thread gets
// several and what a thread has over is a block's time at the most.
void DecoderLayers::share_out_attention() {
  constexpr int kPartsPerThread = 4;
  const std::vector<PassRow>& rows = plan_.rows();
  const int n_rows = plan_.n_rows();
  const int n_parts = kPartsPerThread * n_threads();
  const int n_kv_heads = parts_.config->n_kv_heads;
  int last = 0;
  for (const PassRow& row : rows) last = std::max(last, row.position);
  n_shared_splits_ = shared_splits(last + 1);
  int n_least = 0;  // parts, if each row attended by itself
  for (const PassRow& row : rows) {
    n_least += n_kv_heads * (n_shared_splits_ == 1 ? 1 : kernels::splits_of(row.position + 1));
  }
  const int together = n_kv_heads % n_threads() == 0 ? kernels::kMostAttendRows
                                                     : std::clamp((n_least + n_parts - 1) / n_parts,
                                                                  1, kernels::kMostAttendRows);
  blocks_.clear();
  for (int first = 0; first < n_rows;) {
    const PassRow& row = rows[static_cast<std::size_t>(first)];
    int end = first + 1;
    while (end < n_rows && end - first < together &&
           rows[static_cast<std::size_t>(end)].sequence == row.sequence) {
      ++end;
    }
    blocks_.push_back({first, end - first});
    first = end;
  }
}

int DecoderLayers::n_threads(int n_rows) const {
  const ModelConfig& config = *parts_.config;
  const std::int64_t products_per_row =
      std::int64_t{config.dim} *
      (2 * query_width_ + 2 * kv_width_ + 3 * std::int64_t{config.hidden_dim});
  return threads_for(layer_bytes_, products_per_row * n_rows, least_share_ns_, parts_.n_threads);
}

}  // namespace outrider
