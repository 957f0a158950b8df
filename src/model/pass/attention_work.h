// The attention of a pass: which rows attend together, over which keys, and on which thread.
#ifndef OUTRIDER_MODEL_PASS_ATTENTION_WORK_H_
#define OUTRIDER_MODEL_PASS_ATTENTION_WORK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/big_memory.h"
#include "kernels/table.h"
#include "kernels/whole_attention.h"
#include "model/cache/kv_sequence.h"
#include "model/pass/blocks.h"
#include "model/pass/pass_plan.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// Work is shared out by (rows that attend together, key-value head), each with the query heads that
// share it, kMostAttendQueries of them at most; where heads alone do not share out evenly, also by
// splits of the positions (kernels::kSplitKeys), whose parts are merged behind a barrier. Bits do
// not depend on that. Used as layers are: make_room (one thread, throws), begin (one thread), then
// attend layer by layer.
class AttentionWork {
 public:
  // One layer's attention.
  struct Layer {
    kernels::Attend attend = nullptr;  // of the table, for the cache's kind
    int layer = 0;                     // in the cache
    float scale = 0;                   // of the scores
    float softcap = 0;                 // of the scaled scores; 0: none
    int window = 0;                    // tokens that a query reads, its own included; 0: all
    const float* sinks = nullptr;      // (n_heads), Attention::sinks; null: none
    bool reads_whole_block = false;    // Attention::reads_whole_block
    bool reads_encoder = false;        // every token of the encoder's sequence
    const PositionBias* position_bias = nullptr;  // null: none
  };

  // The query heads of an attention: of each key-value head `group`, but for those of the first and
  // the last one that another rank has.
  struct Heads {
    int n = 0;
    int group = 0;
    int first_in_group = 0;  // how many of the first one's are missing
    bool operator==(const Heads&) const = default;
  };

  // The table outlives it.
  AttentionWork(const Heads& heads, const KernelTable& table, const KvShape& shape,
                int most_threads);

  // Whether layers of such heads can attend with it.
  bool is_for(const Heads& heads, const KvShape& shape) const {
    return heads == heads_ && shape == shape_;
  }
  // A sequence of at most so many tokens will attend: the next make_room has room for it.
  void expect(int n_tokens) { longest_expected_ = std::max(longest_expected_, n_tokens); }
  // Room for a pass of that plan's size, and for drafts behind it. Throws std::bad_alloc.
  void make_room(const PassPlan& plan);
  // The plan's rows are pending nodes now, and so many threads will attend. The plan stays as it is
  // until they have.
  void begin(const PassPlan& plan, int n_threads);

  // softmax(scale * q k^T + bias) v for every row and head, over the window, scores capped before
  // the softmax. queries: (n_rows, n_heads * head_dim); attended: (n_rows, n_heads * value_dim),
  // complete after a barrier.
  void attend(const Team& team, const Layer& layer, const float* queries, Activations& attended);

 private:
  // Of what a row attends to: so many positions are slots of that number, the others' slots are
  // slots_ from there on.
  struct Whereabouts {
    int n_in_place;
    int first_slot;
    int last_of_block;  // the last row of its sequence in the pass
  };

  // Rows of one sequence that attend in one call.
  struct Block {
    int first_row;
    int n_rows;
  };

  int group() const { return heads_.group; }
  // Of a group's heads, those that attend together: the parts of one group, and all of them.
  int n_parts() const {
    return (group() + kernels::kMostAttendQueries - 1) / kernels::kMostAttendQueries;
  }
  int n_head_units() const { return shape_.n_heads * n_parts(); }
  int query_width() const { return heads_.n * shape_.head_dim; }
  int out_width() const { return heads_.n * shape_.value_dim(); }
  // The query heads of a unit; none where other ranks have all of them.
  Range heads_of_unit(int head_unit) const;
  const PassRow& row(int i) const { return plan_->rows()[static_cast<std::size_t>(i)]; }
  // The row whose ancestors, itself included, row i reads.
  int last_read(int i, const Layer& layer) const {
    return layer.reads_whole_block ? whereabouts_[static_cast<std::size_t>(i)].last_of_block : i;
  }
  int n_keys(int i, const Layer& layer) const {
    return layer.reads_encoder ? row(i).sequence->encoder()->n_kept()
                               : row(last_read(i, layer)).n_keys;
  }
  // Queries that one call takes at most.
  std::size_t most_walks() const;
  std::size_t chunks_per_thread(const PassPlan& plan) const;
  bool heads_share_out_evenly(int n_threads) const { return n_head_units() % n_threads == 0; }

  void make_room_for_splits(const PassPlan& plan);
  void find_whereabouts();
  void share_out(int n_threads);
  void attend_split(kernels::Attend attend, const kernels::AttendArgs& args, const Block& block,
                    int first_head, int split, Activations& attended);
  void merge_splits(const Team& team, const Layer& layer, Activations& attended);
  // Of row i's head, what it took of a split.
  float* split_sums(int i, int head, int split, Activations& attended);
  kernels::AttendState* split_states(int i, int head, int split);

  Heads heads_;
  const KernelTable* table_;
  KvShape shape_;
  int most_threads_;
  bool may_share_splits_ = false;  // on some number of threads
  int longest_expected_ = 0;

  // Of this pass.
  const PassPlan* plan_ = nullptr;
  std::vector<Block> blocks_;
  int n_shared_splits_ = 1;  // 1: none
  std::size_t n_chunks_ = 0;
  std::vector<Whereabouts> whereabouts_;  // (n_rows)
  std::vector<int> slots_;  // row by row, of those that have some: of what is not in place

  // Each thread's own: of the sequence whose rows attend, its pages (n_chunks_); room for what
  // kernels::AttendArgs asks it for, and kernels::attend_whole.
  std::vector<const void*> chunks_;
  BigMemory room_;
  std::vector<float> whole_sums_;                   // (most_threads, most_walks, value_dim)
  std::vector<kernels::AttendState> whole_states_;  // (most_threads, 2, most_walks)
  std::vector<float> zeros_;                        // (value_dim), everyone's
  // Of positions that several threads share, what attention takes of each split: the first one's
  // sums stand in attended.
  std::vector<float> split_sums_;                   // (n_splits - 1, n_rows, n_heads, value_dim)
  std::vector<kernels::AttendState> split_states_;  // (n_splits, n_rows, n_heads)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ATTENTION_WORK_H_
