// SPDX-License-Identifier: Apache-2.0
#include "model/pass/attention_work.h"

#include <algorithm>
#include <span>

namespace outrider {
namespace {

// Passes with more rows have enough units without splits, and merging would need much memory.
constexpr int kMaxSharedRows = 64;

template <typename T>
void grow(std::vector<T>& values, std::size_t n) {
  if (values.size() < n) values.resize(n);
}

// The same, doubling: for buffers that grow a little with every pass.
template <typename T>
void grow_ahead(std::vector<T>& values, std::size_t n) {
  if (values.size() < n) values.resize(std::max(n, 2 * values.size()));
}

}  // namespace

AttentionWork::AttentionWork(const Heads& heads, const KernelTable& table, const KvShape& shape,
                             int max_threads)
    : heads_(heads), table_(&table), shape_(shape), max_threads_(max_threads) {
  const auto n_threads = static_cast<std::size_t>(max_threads);
  scratch_ = allocate_big_memory(n_threads * 2 * shape.block_bytes());
  whole_sums_.resize(n_threads * max_query_states() * static_cast<std::size_t>(shape.value_dim()));
  whole_states_.resize(n_threads * 2 * max_query_states());
  zeros_.assign(static_cast<std::size_t>(shape.value_dim()), 0.0F);
  for (int n = 2; n <= max_threads; ++n) {
    may_share_splits_ = may_share_splits_ || !heads_share_out_evenly(n);
  }
}

Range AttentionWork::heads_of_unit(int head_unit) const {
  const int in_group = head_unit % n_parts() * kernels::kMaxAttendQueries;
  const int first = head_unit / n_parts() * group() + in_group - heads_.first_in_group;
  const int end = first + std::min(group() - in_group, kernels::kMaxAttendQueries);
  return {std::max(first, 0), std::min(end, heads_.n)};
}

std::size_t AttentionWork::max_query_states() const {
  return static_cast<std::size_t>(kernels::kMaxAttendRows) *
         static_cast<std::size_t>(std::min(group(), kernels::kMaxAttendQueries));
}

std::size_t AttentionWork::chunks_per_thread(const PassPlan& plan) const {
  const int n_slots = std::max(plan.n_slots(), longest_expected_);
  return static_cast<std::size_t>((n_slots + kPageTokens - 1) / kPageTokens);
}

void AttentionWork::resize_scratch(const PassPlan& plan) {
  const auto n_rows = static_cast<std::size_t>(plan.n_rows());
  if (blocks_.capacity() < n_rows) blocks_.reserve(n_rows);
  grow(key_locations_, n_rows);
  std::size_t n_slots = 0;
  for (const PassRow& row : plan.rows()) {
    const int depth = row.position - row.sequence->n_kept();
    if (row.node >= 0 && row.node != depth) n_slots += static_cast<std::size_t>(depth) + 1;
  }
  grow_ahead(slots_, n_slots);
  grow_ahead(chunks_, chunks_per_thread(plan) * static_cast<std::size_t>(max_threads_));
  resize_split_scratch(plan);
}

// Sized for any pass of this many rows that may share splits, on any number of threads: a prompt's
// passes, which do not share them, allocate for the drafts that follow.
void AttentionWork::resize_split_scratch(const PassPlan& plan) {
  const int n_splits = kernels::splits_of(std::max(plan.n_slots(), longest_expected_));
  if (!may_share_splits_ || n_splits == 1) return;
  const auto n_rows = static_cast<std::size_t>(std::min(plan.n_rows(), kMaxSharedRows));
  const auto splits = static_cast<std::size_t>(n_splits);
  grow(split_states_, n_rows * splits * static_cast<std::size_t>(heads_.n));
  grow(split_sums_, n_rows * (splits - 1) * static_cast<std::size_t>(out_width()));
}

void AttentionWork::begin(const PassPlan& plan, int n_threads) {
  plan_ = &plan;
  n_chunks_ = chunks_per_thread(plan);
  find_key_locations();
  share_out(n_threads);
}

void AttentionWork::find_key_locations() {
  int n_slots = 0;
  for (int i = 0; i < plan_->n_rows(); ++i) {
    const PassRow& its = row(i);
    // All keys of a reader belong to kept tokens.
    const int n_contiguous = its.node < 0 ? its.n_keys : its.sequence->n_contiguous(its.node);
    key_locations_[static_cast<std::size_t>(i)] = {
        .n_contiguous = n_contiguous, .first_slot = n_slots, .last_of_block = i};
    const int n_scattered = its.n_keys - n_contiguous;
    if (n_scattered == 0) continue;
    its.sequence->scattered_slots(its.node,
                                  std::span(slots_).subspan(static_cast<std::size_t>(n_slots),
                                                            static_cast<std::size_t>(n_scattered)));
    n_slots += n_scattered;
  }
  for (int i = plan_->n_rows() - 2; i >= 0; --i) {
    if (row(i).sequence != row(i + 1).sequence) continue;
    key_locations_[static_cast<std::size_t>(i)].last_of_block =
        key_locations_[static_cast<std::size_t>(i) + 1].last_of_block;
  }
}

// Groups consecutive rows of one sequence into blocks that attend together. If the heads alone
// divide evenly among the threads, a block takes all rows that it may. Otherwise blocks are small
// enough that each thread gets several, so that threads finish within one block's time.
void AttentionWork::share_out(int n_threads) {
  constexpr int kPartsPerThread = 4;
  const int n_rows = plan_->n_rows();
  const bool evenly = heads_share_out_evenly(n_threads);
  int max_keys = 1;
  for (const PassRow& its : plan_->rows()) max_keys = std::max(max_keys, its.n_keys);
  n_shared_splits_ = evenly || n_rows > kMaxSharedRows ? 1 : kernels::splits_of(max_keys);
  int together = kernels::kMaxAttendRows;
  if (!evenly) {
    const int n_parts = kPartsPerThread * n_threads;
    int n_least = 0;  // units if each row attended by itself
    for (const PassRow& its : plan_->rows()) {
      n_least += n_head_units() * (n_shared_splits_ == 1 ? 1 : kernels::splits_of(its.n_keys));
    }
    together = std::clamp((n_least + n_parts - 1) / n_parts, 1, kernels::kMaxAttendRows);
  }
  blocks_.clear();
  for (int first = 0; first < n_rows;) {
    int end = first + 1;
    while (end < n_rows && end - first < together && row(end).sequence == row(first).sequence) {
      ++end;
    }
    blocks_.push_back({first, end - first});
    first = end;
  }
}

void AttentionWork::attend(const Team& team, const Layer& layer, const float* queries,
                           Activations& attended) {
  const int head_dim = shape_.head_dim;
  const int value_dim = shape_.value_dim();
  const auto thread = static_cast<std::size_t>(team.index());
  const std::span<const void*> chunks = std::span(chunks_).subspan(thread * n_chunks_, n_chunks_);
  kernels::AttendRow rows[kernels::kMaxAttendRows] = {};

  kernels::AttendArgs args{};
  args.rows = rows;
  args.query_stride = static_cast<std::size_t>(head_dim);
  args.out_stride = static_cast<std::size_t>(value_dim);
  args.head_dim = head_dim;
  args.values_in_keys = shape_.values_in_keys;
  args.scale = layer.scale;
  args.softcap = layer.softcap;
  if (layer.position_bias != nullptr) {
    args.bias_stride = static_cast<std::size_t>(layer.position_bias->n_distances());
  }
  args.chunks = chunks.data();
  args.scratch = scratch_.get() + thread * 2 * shape_.block_bytes();

  const kernels::WholeAttentionScratch whole_scratch = {
      .sums =
          whole_sums_.data() + thread * max_query_states() * static_cast<std::size_t>(value_dim),
      .states = whole_states_.data() + thread * 2 * max_query_states()};

  const KvSequence* gathered = nullptr;
  // A head's splits are consecutive, so each prefetches the next one's first keys. A window has one
  // or two splits, which one thread takes; an encoder's input usually does as well.
  const int n_shared_splits = layer.window == 0 && !layer.reads_encoder ? n_shared_splits_ : 1;
  const std::int64_t n_block_units = std::int64_t{n_head_units()} * n_shared_splits;
  const std::int64_t n_units = static_cast<std::int64_t>(blocks_.size()) * n_block_units;
  team.parallel_for_dynamic(n_units, 1, [&](const Range& part) {
    for (std::int64_t unit = part.begin; unit < part.end; ++unit) {
      const Block& block = blocks_[static_cast<std::size_t>(unit / n_block_units)];
      const int head_unit = static_cast<int>(unit % n_block_units / n_shared_splits);
      const int kv_head = head_unit / n_parts();
      const Range heads = heads_of_unit(head_unit);
      if (heads.begin >= heads.end) continue;
      const auto first_head = static_cast<int>(heads.begin);
      args.n_queries = static_cast<int>(heads.end - heads.begin);
      args.n_rows = block.n_rows;
      args.keys_at = shape_.keys_at(kv_head);
      args.values_at = shape_.has_values() ? shape_.values_at(kv_head) : 0;
      for (int r = 0; r < block.n_rows; ++r) {
        const int i = block.first_row + r;
        const KeyLocations& where = key_locations_[static_cast<std::size_t>(last_read(i, layer))];
        rows[r] = {
            .queries = queries + std::int64_t{i} * query_width() + first_head * head_dim,
            .out = attended.row(i) + first_head * value_dim,
            .states = nullptr,
            .n_keys = n_keys(i, layer),
            .first_key = layer.window == 0 ? 0 : std::max(row(i).position + 1 - layer.window, 0),
            .n_contiguous = layer.reads_encoder ? n_keys(i, layer) : where.n_contiguous,
            .slots = slots_.data() + where.first_slot,
            .bias = layer.position_bias == nullptr
                        ? nullptr
                        : layer.position_bias->of(first_head) - row(i).position};
      }
      const KvSequence* sequence = row(block.first_row).sequence;
      if (layer.reads_encoder) sequence = sequence->encoder();
      if (gathered != sequence) {
        const std::size_t n_pages = sequence->n_pages(layer.layer);
        sequence->chunks(layer.layer, chunks.subspan(0, std::min(chunks.size(), n_pages)));
      }
      gathered = sequence;
      if (n_shared_splits == 1) {
        kernels::attend_whole(
            *table_, layer.attend, args, whole_scratch,
            {.logits = layer.sinks == nullptr ? nullptr : layer.sinks + first_head,
             .zeros = zeros_.data()});
      } else {
        attend_split(layer.attend, args, block, first_head,
                     static_cast<int>(unit % n_shared_splits), attended);
      }
    }
  });
  if (n_shared_splits == 1) return;
  team.barrier();
  merge_splits(team, layer, attended);
}

float* AttentionWork::split_sums(int i, int head, int split, Activations& attended) {
  const std::int64_t at = std::int64_t{head} * shape_.value_dim();
  if (split == 0) return attended.row(i) + at;
  return split_sums_.data() + (std::int64_t{split - 1} * plan_->n_rows() + i) * out_width() + at;
}

kernels::AttendState* AttentionWork::split_states(int i, int head, int split) {
  return split_states_.data() + (std::int64_t{split} * plan_->n_rows() + i) * heads_.n + head;
}

// args: of the whole block, for query heads from first_head on.
void AttentionWork::attend_split(kernels::Attend attend, const kernels::AttendArgs& args,
                                 const Block& block, int first_head, int split,
                                 Activations& attended) {
  kernels::AttendRow rows[kernels::kMaxAttendRows];
  kernels::AttendArgs one = args;
  one.rows = rows;
  one.n_rows = 0;
  one.split = split;
  for (int r = 0; r < args.n_rows; ++r) {
    if (kernels::splits_of(args.rows[r].n_keys) <= split) continue;
    kernels::AttendRow& its = rows[one.n_rows++] = args.rows[r];
    its.out = split_sums(block.first_row + r, first_head, split, attended);
    its.states = split_states(block.first_row + r, first_head, split);
  }
  if (one.n_rows > 0) attend(one);
}

void AttentionWork::merge_splits(const Team& team, const Layer& layer, Activations& attended) {
  const int n_heads = heads_.n;
  const int value_dim = shape_.value_dim();
  const Range mine = team.share(std::int64_t{plan_->n_rows()} * n_heads);
  for (std::int64_t unit = mine.begin; unit < mine.end; ++unit) {
    const int i = static_cast<int>(unit / n_heads);
    const int head = static_cast<int>(unit % n_heads);
    float* sums = split_sums(i, head, 0, attended);
    kernels::AttendState* state = split_states(i, head, 0);
    const int n_splits = kernels::splits_of(n_keys(i, layer));
    for (int split = 1; split < n_splits; ++split) {
      table_->merge_split(split_sums(i, head, split, attended), *split_states(i, head, split),
                          value_dim, sums, state);
    }
    if (layer.sinks != nullptr) {
      kernels::join_sink(*table_, layer.sinks[head], zeros_.data(), value_dim, sums, state);
    }
    table_->finish_attention(*state, value_dim, sums);
  }
}

}  // namespace outrider
