// SPDX-License-Identifier: Apache-2.0
#include "model/cache/recurrent_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/cache/recurrence.h"
#include "model/thread_share.h"
#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider {
namespace {

float* floats_at(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

}  // namespace

RecurrentPart::RecurrentPart(KvCache& cache)
    : RecurrentPart(cache, PageTable(cache.pool(), cache.state_group(), 1),
                    StateSnapshots(cache.pool()), false) {}

RecurrentPart::RecurrentPart(KvCache& cache, PageTable state, StateSnapshots snapshots,
                             bool has_state)
    : cache_(&cache),
      state_(std::move(state)),
      inputs_(cache.pool(), cache.state_group() + 1, kInputNodes),
      snapshots_(std::move(snapshots)),
      has_state_(has_state) {}

RecurrentPart RecurrentPart::fork() const {
  return {*cache_, state_.fork(has_state_ ? 1 : 0), snapshots_.fork(), has_state_};
}

void RecurrentPart::add_ranges(int n_pending, int n_new, std::vector<SlotRange>& ranges) {
  add_state_range(ranges);
  ranges.push_back({&inputs_, n_pending, n_pending + n_new, n_pending});
}

void RecurrentPart::add_state_range(std::vector<SlotRange>& ranges) {
  ranges.push_back({&state_, 0, 1, 1});
}

void RecurrentPart::count_pages(int n_pending, int n_new, std::span<int> n_needed) const {
  n_needed[static_cast<std::size_t>(state_.group())] += cache_->n_pages_to_own(state_, 0, 1);
  n_needed[static_cast<std::size_t>(inputs_.group())] +=
      cache_->n_pages_to_own(inputs_, n_pending, n_pending + n_new);
}

void RecurrentPart::begin() {
  if (has_state_) return;
  cache_->store().clear_page(state_.group(), state_.page(0));
  has_state_ = true;
}

float* RecurrentPart::inputs(int node, int layer) const {
  const RecurrentShape& shape = cache_->group_of(layer).recurrent;
  return floats_at(cache_->store().bytes(inputs_.page_of(node)) +
                   cache_->place(layer).inputs_at_bytes) +
         static_cast<std::ptrdiff_t>(node % kInputNodes) * shape.input_width;
}

float* RecurrentPart::state_of(int layer) const {
  return floats_at(cache_->store().bytes(state_.page(0)) + cache_->place(layer).at_bytes);
}

// Threads share layers and their units. Each unit processes all nodes in order, so its part of a
// state is read once. The next pass could do this when it reads the state, which would save one
// read and write of it per round; unmeasured.
void RecurrentPart::replay(std::span<const int> nodes) {
  const CacheGroup& group = cache_->groups()[static_cast<std::size_t>(state_.group())];
  const RecurrentShape& shape = group.recurrent;
  struct Work {
    const RecurrentPart& part;
    const CacheGroup& group;
    std::span<const int> nodes;
    int n_of_layer;
  } const work{*this, group, nodes, n_units(shape)};
  const auto n_layers = static_cast<std::int64_t>(group.layers.size());
  const std::int64_t n_floats = n_layers * shape.state_width;
  const int n_that_pay = threads_for(n_floats * static_cast<std::int64_t>(sizeof(float)),
                                     n_floats * static_cast<std::int64_t>(nodes.size()),
                                     kMinShare_ns, cache_->replay().n_threads);
  // One thread or all: OpenMP's libraries end the threads that a smaller team leaves idle, and
  // create them again for the next pass.
  run_team(n_that_pay == 1 ? 1 : cache_->replay().n_threads,
           [&work, n_units = n_layers * work.n_of_layer](const Team& team) {
             const KernelTable& table = *work.part.cache_->replay().table;
             const Range mine = team.share(n_units);
             for (std::int64_t at = mine.begin; at < mine.end; ++at) {
               const int layer = work.group.layers[static_cast<std::size_t>(at / work.n_of_layer)];
               const auto unit = static_cast<int>(at % work.n_of_layer);
               for (const int node : work.nodes) {
                 advance(table, work.group.recurrent, unit, work.part.inputs(node, layer),
                         work.part.state_of(layer));
               }
             }
           });
}

void RecurrentPart::keep(std::span<const int> path, int n_kept) {
  while (!path.empty()) {
    const auto n_to_border = static_cast<std::size_t>(kPageTokens - n_kept % kPageTokens);
    const std::size_t n = std::min(path.size(), n_to_border);
    replay(path.first(n));
    path = path.subspan(n);
    n_kept += static_cast<int>(n);
    if (n == n_to_border) take_snapshot(n_kept);
  }
  drop_pending();
}

void RecurrentPart::take_snapshot(int n_tokens) {
  snapshots_.thin(n_tokens);
  const PageId page = cache_->try_acquire(state_.group());
  if (page == kNoPage) return;
  cache_->store().copy_first_slots(state_.group(), state_.page(0), page, 1);
  snapshots_.add({n_tokens, page});
}

int RecurrentPart::reachable(int n_tokens, int n_kept) const {
  if (n_tokens == n_kept) return n_tokens;
  const StateSnapshot* const snapshot = snapshots_.last_until(n_tokens);
  return snapshot == nullptr ? 0 : snapshot->n_tokens;
}

void RecurrentPart::rewind(int n_tokens, int n_kept) {
  drop_pending();
  if (n_tokens == n_kept) return;
  state_.drop_beyond(0);
  has_state_ = false;
  snapshots_.drop_beyond(n_tokens);
  if (n_tokens == 0) return;
  const PageId page = snapshots_.all().back().page;
  cache_->pool().share(page);
  state_.put(0, page);
  has_state_ = true;
}

namespace {

int last_border_before(int n_kept) { return std::max(n_kept - 1, 0) / kPageTokens * kPageTokens; }

}  // namespace

void RecurrentPart::save(int n_kept, const ByteSink& write) const {
  if (n_kept == 0) return;
  const PageStore& store = cache_->store();
  const std::size_t n_bytes = cache_->state_bytes();
  write({store.bytes(state_.page(0)), n_bytes});
  const int border = last_border_before(n_kept);
  if (border == 0) return;
  const StateSnapshot* const snapshot = snapshots_.last_until(border);
  if (snapshot == nullptr || snapshot->n_tokens != border) {
    throw Error("save sequence", "recurrent layers", fmt::format("their state at token {}", border),
                "none: its memory was needed for tokens (--kv-memory)");
  }
  write({store.bytes(snapshot->page), n_bytes});
}

void RecurrentPart::load(int n_kept, const ByteSource& read) {
  if (n_kept == 0) return;
  std::vector<SlotRange> ranges;
  add_state_range(ranges);
  cache_->own(ranges, "load sequence");
  has_state_ = true;
  const std::size_t n_bytes = cache_->state_bytes();
  read({cache_->store().bytes(state_.page(0)), n_bytes});
  const int border = last_border_before(n_kept);
  if (border == 0) return;
  const PageId page = cache_->try_acquire(state_.group());
  if (page == kNoPage) {
    throw Error("load sequence", "KV cache", "room for two states of recurrent layers",
                "less (--kv-memory)");
  }
  snapshots_.add({border, page});
  read({cache_->store().bytes(page), n_bytes});
}

std::size_t RecurrentPart::snapshot_bytes() const {
  return static_cast<std::size_t>(snapshots_.n_own_pages()) * cache_->state_bytes();
}

bool RecurrentPart::drop_snapshots() {
  const bool any = !snapshots_.all().empty();
  snapshots_.drop_beyond(-1);
  return any;
}

}  // namespace outrider
