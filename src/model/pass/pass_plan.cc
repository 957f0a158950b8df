// SPDX-License-Identifier: Apache-2.0
#include "model/pass/pass_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "outrider/error.h"

namespace outrider {
namespace {

[[noreturn]] void fail(int block, std::string_view expected, std::string_view got) {
  throw Error("forward", fmt::format("block {}", block), expected, got);
}

}  // namespace

void PassPlan::prepare(std::span<const TokenBlock> blocks, const RowSet& logits,
                       std::span<const int> skip_layers, const ModelConfig& config,
                       const KvCache& cache) {
  int last_skipped = -1;
  for (const int layer : skip_layers) {
    if (layer <= last_skipped || layer >= config.n_layers) {
      throw Error("forward", "layers to skip",
                  fmt::format("ascending, between 0 and {}", config.n_layers - 1),
                  fmt::format("{} after {}", layer, last_skipped));
    }
    last_skipped = layer;
  }
  rows_.clear();
  asked_.clear();
  reservations_.clear();
  n_slots_ = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    add_block(blocks[i], static_cast<int>(i), skip_layers, config, cache);
  }
  choose_rows(blocks, logits);
  for (const TokenBlock& block : blocks) {
    reservations_.push_back(
        {static_cast<KvSequence*>(block.sequence), static_cast<int>(block.tokens.size())});
  }
  KvSequence::ensure_slots(reservations_);
  for (const auto& [sequence, n_new] : reservations_) {
    if (sequence->empty()) sequence->set_skipped_layers(skip_layers);
  }
}

void PassPlan::prepare_readers(std::span<const KeyReaders> readers, const ModelConfig& config,
                               const KvCache& cache) {
  rows_.clear();
  reservations_.clear();
  n_slots_ = 0;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const auto index = static_cast<int>(i);
    const auto* sequence = dynamic_cast<const KvSequence*>(readers[i].sequence);
    if (sequence == nullptr || sequence->cache() != &cache) {
      fail(index, "a sequence that the target opened",
           readers[i].sequence == nullptr ? "none" : "another model's");
    }
    if (!sequence->skipped_layers().empty()) {
      fail(index, "a sequence run with all layers", "one run without some");
    }
    const int n_kept = sequence->n_kept();
    if (n_kept == 0 || n_kept >= config.context_length || sequence->n_pending() > 0) {
      fail(index,
           fmt::format("1 to {} kept tokens and none that is pending", config.context_length - 1),
           fmt::format("{} and {}", n_kept, sequence->n_pending()));
    }
    rows_.insert(rows_.end(), static_cast<std::size_t>(readers[i].n_rows),
                 {.sequence = sequence, .node = -1, .position = n_kept, .n_keys = n_kept});
    n_slots_ = std::max(n_slots_, n_kept);
  }
  ask_for_all();
}

void PassPlan::prepare_rows(int n_rows) {
  rows_.assign(static_cast<std::size_t>(n_rows), PassRow{});
  reservations_.clear();
  n_slots_ = 0;
  ask_for_all();
}

void PassPlan::ask_for_all() {
  asked_.resize(rows_.size());
  std::iota(asked_.begin(), asked_.end(), 0);
}

void PassPlan::append_nodes() {
  auto row = rows_.begin();
  for (const auto& [sequence, n_new] : reservations_) {
    for (int i = 0; i < n_new; ++i, ++row) sequence->append(row->parent);
  }
}

void PassPlan::add_block(const TokenBlock& block, int index, std::span<const int> skip_layers,
                         const ModelConfig& config, const KvCache& cache) {
  auto* sequence = dynamic_cast<KvSequence*>(block.sequence);
  if (sequence == nullptr || sequence->cache() != &cache) {
    fail(index, "a sequence that this model opened",
         block.sequence == nullptr ? "none" : "another model's");
  }
  for (const PassRow& row : rows_) {
    if (row.node == sequence->n_pending() && row.sequence == sequence) {
      fail(index, "a sequence of its own", "one that an earlier block has");
    }
  }
  if (block.tokens.empty()) fail(index, "at least one token", "none");
  if (!sequence->empty() &&
      !std::equal(skip_layers.begin(), skip_layers.end(), sequence->skipped_layers().begin(),
                  sequence->skipped_layers().end())) {
    fail(index, "a sequence run without the same layers", "one run without others");
  }
  if (!block.parents.empty() && block.parents.size() != block.tokens.size()) {
    fail(index, fmt::format("{} parents (or none: a chain)", block.tokens.size()),
         fmt::format("{}", block.parents.size()));
  }

  const std::size_t first_row = rows_.size();
  const int n_pending = sequence->n_pending();
  for (std::size_t i = 0; i < block.tokens.size(); ++i) {
    PassRow row;
    row.sequence = sequence;
    row.node = n_pending + static_cast<int>(i);
    row.parent = block.parents.empty() ? row.node - 1 : block.parents[i];
    row.token = block.tokens[i];
    if (row.token < 0 || row.token >= config.vocabulary_size) {
      fail(index, fmt::format("tokens 0 to {}", config.vocabulary_size - 1),
           fmt::format("{}", row.token));
    }
    if (row.parent < -1 || row.parent >= row.node) {
      fail(index, fmt::format("a parent of node {} between -1 and {}", row.node, row.node - 1),
           fmt::format("{}", row.parent));
    }
    if (row.parent < 0) {
      row.position = sequence->n_kept();
    } else if (row.parent < n_pending) {
      row.position = sequence->n_kept() + sequence->depth(row.parent) + 1;
    } else {
      row.position =
          rows_[first_row + static_cast<std::size_t>(row.parent - n_pending)].position + 1;
    }
    if (row.position >= config.context_length) {
      fail(index, fmt::format("positions below the context length {}", config.context_length),
           fmt::format("{}", row.position));
    }
    row.n_keys = row.position + 1;
    n_slots_ = std::max(n_slots_, sequence->n_kept() + row.node + 1);
    rows_.push_back(row);
  }
  if (const KvSequence* const encoder = sequence->encoder()) {
    n_slots_ = std::max(n_slots_, encoder->n_kept());
  }
}

void PassPlan::choose_rows(std::span<const TokenBlock> blocks, const RowSet& logits) {
  switch (logits.kind) {
    case RowSet::Kind::none:
      break;
    case RowSet::Kind::all:
      ask_for_all();
      break;
    case RowSet::Kind::last_of_each_block: {
      int row = -1;
      for (const TokenBlock& block : blocks) {
        row += static_cast<int>(block.tokens.size());
        asked_.push_back(row);
      }
      break;
    }
    case RowSet::Kind::listed: {
      int last = -1;
      for (const int row : logits.rows) {
        if (row <= last || row >= n_rows()) {
          throw Error("forward", "rows asked for",
                      fmt::format("ascending, between 0 and {}", n_rows() - 1),
                      fmt::format("{} after {}", row, last));
        }
        asked_.push_back(row);
        last = row;
      }
      break;
    }
  }
}

}  // namespace outrider
