// SPDX-License-Identifier: Apache-2.0
#include "model/cache/kv_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/bytes_of.h"
#include "model/prefill.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// The most pending nodes of a sequence, as growths count them (Stream::growth): those of a pass, as
// many of a drafter with the same cache, and one page more.
constexpr int kMaxPending = 2 * kPrefillRows + kPageTokens;

// The first position that queries from position n on read within a window.
int first_read(int n, int window) { return std::max(n - window + 1, 0); }

}  // namespace

KvSequence::KvSequence(std::shared_ptr<KvCache> cache, Role role)
    : cache_(std::move(cache)), role_(role) {
  tables_.reserve(cache_->groups().size());
  for (const CacheGroup& group : cache_->groups()) {
    if (!has_keys(group.kind)) break;
    tables_.emplace_back(cache_->pool(), static_cast<int>(tables_.size()));
  }
  if (cache_->state_group() >= 0) recurrent_.emplace(*cache_);
}

void KvSequence::expect(int n_slots) {
  for (PageTable& table : tables_) {
    if (fills(table)) table.reserve(pages_of(n_slots));
  }
}

std::shared_ptr<KvSequence> KvSequence::open_encoder(std::shared_ptr<KvCache> cache,
                                                     std::span<const TokenId> tokens) {
  auto encoder = std::make_shared<KvSequence>(std::move(cache), Role::encoder);
  encoder->input_.assign(tokens.begin(), tokens.end());
  return encoder;
}

void KvSequence::finish_encoder() {
  std::vector<int> all(input_.size());
  std::iota(all.begin(), all.end(), 0);
  keep(all);
  for (PageTable& table : tables_) {
    const CacheGroup& group = cache_->groups()[static_cast<std::size_t>(table.group())];
    if (group.side == CacheSide::encoder) table.drop_beyond(0);
  }
}

void KvSequence::ensure_slots(int n_new) {
  const Reservation reservation{this, n_new};
  ensure_slots({&reservation, 1});
}

void KvSequence::ensure_slots(std::span<const Reservation> reservations) {
  if (reservations.empty()) return;
  KvCache& cache = *reservations.front().sequence->cache_;
  std::vector<SlotRange>& ranges = cache.ranges();
  ranges.clear();
  for (const auto& [sequence, n_new] : reservations) {
    sequence->tree_.reserve(n_new);
    const int n_slots = sequence->tree_.n_slots();
    for (PageTable& table : sequence->tables_) {
      if (!sequence->fills(table)) continue;
      ranges.push_back({&table, n_slots, n_slots + n_new, n_slots});
    }
    if (sequence->recurrent_) {
      sequence->recurrent_->add_ranges(sequence->n_pending(), n_new, ranges);
    }
  }
  own(cache, reservations, "forward");
  for (const auto& [sequence, n_new] : reservations) {
    if (sequence->recurrent_) sequence->recurrent_->begin();
  }
}

void KvSequence::own(KvCache& cache, std::span<const Reservation> sequences,
                     const char* operation) {
  try {
    cache.own(cache.ranges(), operation);
  } catch (const Error&) {
    bool any = false;
    for (const auto& [sequence, n_new] : sequences) {
      any |= sequence->recurrent_ && sequence->recurrent_->drop_snapshots();
    }
    if (!any) throw;
    cache.own(cache.ranges(), operation);
  }
}

bool KvSequence::fit(KvCache& cache, std::span<const SequenceGrowth> growths) {
  std::vector<int>& n_needed = cache.n_needed();
  std::fill(n_needed.begin(), n_needed.end(), 0);
  std::size_t n_snapshot_bytes = 0;
  for (const SequenceGrowth& growth : growths) {
    const auto& sequence = static_cast<const KvSequence&>(*growth.sequence);
    const int n_slots = sequence.tree_.n_slots();
    const auto add = [&](const KvSequence& of, int first, int end) {
      for (const PageTable& table : of.tables_) {
        if (!of.fills(table)) continue;
        n_needed[static_cast<std::size_t>(table.group())] +=
            cache.n_pages_to_own(table, first, end);
      }
    };
    add(sequence, n_slots, n_slots + growth.n_tokens);
    if (const KvSequence* const encoder = sequence.encoder(); encoder && encoder->empty()) {
      add(*encoder, 0, static_cast<int>(encoder->input_.size()));
    }
    if (!sequence.recurrent_) continue;
    sequence.recurrent_->count_pages(sequence.n_pending(), std::min(growth.n_tokens, kMaxPending),
                                     n_needed);
    n_snapshot_bytes += sequence.recurrent_->snapshot_bytes();
  }
  return cache.pool().fits(n_needed, n_snapshot_bytes);
}

void KvSequence::chunks(int layer, std::span<const void*> chunks) const {
  const KvCache::LayerPlace& place = cache_->place(layer);
  const PageTable& table = tables_[static_cast<std::size_t>(place.group)];
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const PageId page = table.page(i);
    chunks[i] = page == kNoPage ? nullptr : cache_->store().bytes(page) + place.at_bytes;
  }
}

void KvSequence::keep(std::span<const int> path) {
  const std::span<const SlotMove> moves = tree_.moves_to_keep(path);
  const int n_kept = tree_.n_kept() + static_cast<int>(path.size());
  std::vector<SlotRange>& ranges = cache_->ranges();
  ranges.clear();
  if (!moves.empty()) {
    for (PageTable& table : tables_) {
      if (!fills(table)) continue;
      ranges.push_back({&table, moves.front().to, n_kept, tree_.n_slots()});
    }
  }
  if (recurrent_ && !path.empty()) recurrent_->add_state_range(ranges);
  if (!ranges.empty()) {
    const Reservation self{this, 0};
    own(*cache_, {&self, 1}, "keep");
    for (const PageTable& table : tables_) {  // before any moves: all or none
      if (fills(table)) cache_->store().prepare_moves(table.group());
    }
    for (const PageTable& table : tables_) {
      if (fills(table)) cache_->store().move_slots(table, moves);
    }
  }
  if (recurrent_) recurrent_->keep(path, tree_.n_kept());
  tree_.keep(static_cast<int>(path.size()));
  drop_unread_pages();
}

int KvSequence::rewind(int n_tokens) {
  if (n_tokens < 0 || n_tokens > n_kept()) {
    throw Error("rewind", "sequence", fmt::format("0 to {} tokens", n_kept()),
                fmt::format("{}", n_tokens));
  }
  if (recurrent_) n_tokens = recurrent_->reachable(n_tokens, n_kept());
  const std::span<const CacheGroup> groups = cache_->groups();
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    // Dropped pages are lost for good, and so are the positions stored in them. If too few
    // positions remain before n_tokens, no earlier position works either, except the beginning.
    const int first_slot = tables_[group].first_slot();
    if (first_slot > 0 && first_read(n_tokens, groups[group].window) < first_slot) n_tokens = 0;
  }
  if (recurrent_) recurrent_->rewind(n_tokens, n_kept());
  tree_.rewind(n_tokens);
  drop_unread_pages();
  return n_tokens;
}

std::unique_ptr<Sequence> KvSequence::fork() const {
  auto copy = std::make_unique<KvSequence>(cache_);
  copy->tree_ = tree_.fork();
  copy->tables_.clear();
  for (const PageTable& table : tables_) {
    copy->tables_.push_back(table.fork(fills(table) ? n_kept() : 0));
  }
  copy->recurrent_.reset();
  if (recurrent_) copy->recurrent_.emplace(recurrent_->fork());
  copy->skipped_layers_ = skipped_layers_;
  copy->prompt_length_ = prompt_length_;
  copy->encoder_ = encoder_;
  return copy;
}

// Frees the unused pages after the kept tokens, and those that no query reads from kRewindTokens
// before the end on.
void KvSequence::drop_unread_pages() {
  const std::span<const CacheGroup> groups = cache_->groups();
  for (std::size_t group = 0; group < tables_.size(); ++group) {
    tables_[group].drop_beyond(n_kept());
    if (groups[group].kind != CacheKind::window) continue;
    tables_[group].drop_before(
        first_read(std::max(n_kept() - kRewindTokens, 0), groups[group].window));
  }
}

namespace {

// Precedes the pages in a saved sequence.
struct SavedHead {
  std::int32_t n_kept = 0;
  std::int32_t prompt_length = 0;
};

}  // namespace

// Writes a header; per group with keys the number of dropped pages and then the pages; and the
// state of recurrent layers.
void KvSequence::save(const ByteSink& write) const {
  if (encoder_ != nullptr) {
    throw Error("save sequence", "model", "a decoder", "one with an encoder");
  }
  if (n_pending() > 0 || !skipped_layers_.empty()) {
    throw Error("save sequence", "tokens", "kept ones of the whole model",
                n_pending() > 0 ? "pending ones" : "some without all layers");
  }
  const SavedHead head{n_kept(), prompt_length_};
  write(bytes_of(head));
  const PageStore& store = cache_->store();
  std::vector<std::byte> bytes;
  for (const PageTable& table : tables_) {
    const auto first = static_cast<std::int32_t>(table.first_slot() / kPageTokens);
    write(bytes_of(first));
    bytes.resize(store.page_bytes(table.group()));
    for (auto i = static_cast<std::size_t>(first); i < pages_of(n_kept()); ++i) {
      store.read_first_slots(table.group(), table.page(i), n_slots_in(i), bytes);
      write(bytes);
    }
  }
  if (recurrent_) recurrent_->save(n_kept(), write);
}

void KvSequence::load(int n_tokens, const ByteSource& read) {
  if (cache_->has_encoder()) {
    throw Error("load sequence", "model", "a decoder", "one with an encoder");
  }
  SavedHead head;
  read(bytes_of(head));
  if (head.n_kept != n_tokens || head.prompt_length < 0) {
    throw Error("load sequence", "tokens", fmt::format("{}", n_tokens),
                fmt::format("{} ({} of its prompt)", head.n_kept, head.prompt_length));
  }
  prompt_length_ = head.prompt_length;
  tree_.begin_with(head.n_kept);
  std::vector<std::byte> bytes;
  for (PageTable& table : tables_) {
    const CacheGroup& group = cache_->groups()[static_cast<std::size_t>(table.group())];
    std::int32_t n_gone = 0;
    read(bytes_of(n_gone));
    // At most as many as a window drops; fewer after a rewind.
    const int most =
        group.kind == CacheKind::full ? 0 : first_read(head.n_kept, group.window) / kPageTokens;
    if (n_gone < 0 || n_gone > most) {
      throw Error("load sequence", "pages left behind", fmt::format("0 to {}", most),
                  fmt::format("{}", n_gone));
    }
    table.begin_at(static_cast<std::size_t>(n_gone));
    bytes.resize(cache_->store().page_bytes(table.group()));
    for (auto i = static_cast<std::size_t>(n_gone); i < pages_of(head.n_kept); ++i) {
      read(bytes);
      const SlotRange range{.table = &table,
                            .begin = static_cast<int>(i) * kPageTokens,
                            .end = static_cast<int>(i) * kPageTokens + n_slots_in(i),
                            .n_used = 0};
      cache_->own({&range, 1}, "load sequence");
      cache_->store().write_page(table.group(), table.page(i), bytes);
    }
  }
  if (recurrent_) recurrent_->load(head.n_kept, read);
}

}  // namespace outrider
