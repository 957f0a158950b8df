// SPDX-License-Identifier: Apache-2.0
// The attention of a pass: which rows attend together, over which keys, and on which thread.
#ifndef OUTRIDER_MODEL_PASS_ATTENTION_WORK_H_
#define OUTRIDER_MODEL_PASS_ATTENTION_WORK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory/big_memory.h"
#include "kernels/attention/whole_attention.h"
#include "kernels/table.h"
#include "model/cache/kv_sequence.h"
#include "model/pass/blocks.h"
#include "model/pass/pass_plan.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// Work units are blocks of rows that attend together, times groups of at most kMaxAttendQueries
// query heads that share a key-value head. If heads alone do not divide evenly, units are also
// split by positions (kernels::kSplitKeys) and merged after a barrier. Bits do not depend on that.
// Call resize_scratch (one thread, throws), begin (one thread), then attend for each layer.
class AttentionWork {
 public:
  // One layer's attention.
  struct Layer {
    kernels::Attend attend = nullptr;  // the table's, for the cache's type
    int layer = 0;                     // in the cache
    float scale = 0;                   // of the scores
    float softcap = 0;                 // of the scaled scores; 0: none
    int window = 0;                    // tokens that a query reads, including its own; 0: all
    const float* sinks = nullptr;      // (n_heads), Attention::sinks; null: none
    bool reads_whole_block = false;    // Attention::reads_whole_block
    bool reads_encoder = false;        // reads every token of the encoder's sequence
    const PositionBias* position_bias = nullptr;  // null: none
  };

  // The query heads of an attention: `group` for each key-value head, except those of the first and
  // the last one that are on another rank.
  struct Heads {
    int n = 0;
    int group = 0;
    int first_in_group = 0;  // how many of the first group's are missing
    bool operator==(const Heads&) const = default;
  };

  // The table must outlive it.
  AttentionWork(const Heads& heads, const KernelTable& table, const KvShape& shape,
                int max_threads);

  // Whether layers with these heads can use it.
  bool is_for(const Heads& heads, const KvShape& shape) const {
    return heads == heads_ && shape == shape_;
  }
  // Announces a sequence of n_tokens: the next resize_scratch allocates for it.
  void expect(int n_tokens) { longest_expected_ = std::max(longest_expected_, n_tokens); }
  // Allocates for a pass of that plan's size, and for later drafts. Throws std::bad_alloc.
  void resize_scratch(const PassPlan& plan);
  // Called once the plan's rows are pending nodes and the number of threads is known. The plan must
  // not change until they have attended.
  void begin(const PassPlan& plan, int n_threads);

  // softmax(scale * q k^T + bias) v for every row and head, over the window, with scores capped
  // before the softmax. queries: (n_rows, n_heads * head_dim); attended: (n_rows, n_heads *
  // value_dim), complete after a barrier.
  void attend(const Team& team, const Layer& layer, const float* queries, Activations& attended);

 private:
  // A row's keys: the first n_contiguous positions are in the slots of that number, the others in
  // slots_ from first_slot on.
  struct KeyLocations {
    int n_contiguous;
    int first_slot;
    int last_of_block;  // the last row of its sequence in the pass
  };

  // Rows of one sequence that attend in one call.
  struct Block {
    int first_row;
    int n_rows;
  };

  int group() const { return heads_.group; }
  // The heads of a group that attend together: the parts of one group, and of all groups.
  int n_parts() const {
    return (group() + kernels::kMaxAttendQueries - 1) / kernels::kMaxAttendQueries;
  }
  int n_head_units() const { return shape_.n_heads * n_parts(); }
  int query_width() const { return heads_.n * shape_.head_dim; }
  int out_width() const { return heads_.n * shape_.value_dim(); }
  // The query heads of a unit; empty if all are on other ranks.
  Range heads_of_unit(int head_unit) const;
  const PassRow& row(int i) const { return plan_->rows()[static_cast<std::size_t>(i)]; }
  // The row whose ancestors, itself included, row i reads.
  int last_read(int i, const Layer& layer) const {
    return layer.reads_whole_block ? key_locations_[static_cast<std::size_t>(i)].last_of_block : i;
  }
  int n_keys(int i, const Layer& layer) const {
    return layer.reads_encoder ? row(i).sequence->encoder()->n_kept()
                               : row(last_read(i, layer)).n_keys;
  }
  // The most queries of one call.
  std::size_t max_query_states() const;
  std::size_t chunks_per_thread(const PassPlan& plan) const;
  bool heads_share_out_evenly(int n_threads) const { return n_head_units() % n_threads == 0; }

  void resize_split_scratch(const PassPlan& plan);
  void find_key_locations();
  void share_out(int n_threads);
  void attend_split(kernels::Attend attend, const kernels::AttendArgs& args, const Block& block,
                    int first_head, int split, Activations& attended);
  void merge_splits(const Team& team, const Layer& layer, Activations& attended);
  // Row i's results of a head for one split.
  float* split_sums(int i, int head, int split, Activations& attended);
  kernels::AttendState* split_states(int i, int head, int split);

  Heads heads_;
  const KernelTable* table_;
  KvShape shape_;
  int max_threads_;
  bool may_share_splits_ = false;  // for some number of threads
  int longest_expected_ = 0;

  // The current pass.
  const PassPlan* plan_ = nullptr;
  std::vector<Block> blocks_;
  int n_shared_splits_ = 1;  // 1: none
  std::size_t n_chunks_ = 0;
  std::vector<KeyLocations> key_locations_;  // (n_rows)
  std::vector<int> slots_;  // row by row, the slots of positions that are not in place

  // Per thread: the pages of the sequence whose rows attend (n_chunks_), and scratch for
  // kernels::AttendArgs and kernels::attend_whole.
  std::vector<const void*> chunks_;
  BigMemory scratch_;
  std::vector<float> whole_sums_;                   // (max_threads, max_walks, value_dim)
  std::vector<kernels::AttendState> whole_states_;  // (max_threads, 2, max_walks)
  std::vector<float> zeros_;                        // (value_dim), shared
  // If several threads share positions: each split's results. The first split's sums are in
  // attended.
  std::vector<float> split_sums_;                   // (n_splits - 1, n_rows, n_heads, value_dim)
  std::vector<kernels::AttendState> split_states_;  // (n_splits, n_rows, n_heads)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ATTENTION_WORK_H_
