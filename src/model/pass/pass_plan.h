// SPDX-License-Identifier: Apache-2.0
// A pass before any arithmetic: its blocks, checked and laid out as rows.
#ifndef OUTRIDER_MODEL_PASS_PASS_PLAN_H_
#define OUTRIDER_MODEL_PASS_PASS_PLAN_H_

#include <span>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "model/language_model.h"

namespace outrider {

// One new token of the pass; or a reader (PassPlan::prepare_readers).
struct PassRow {
  const KvSequence* sequence = nullptr;
  int node = 0;      // among the sequence's pending nodes; -1: a reader
  int parent = -1;   // a pending node before it, or -1: the last kept token
  int position = 0;  // n_kept + depth: the position for RoPE
  int n_keys = 0;    // the keys that it attends to: position + 1, its own last; for a reader n_kept
  TokenId token = 0;
};

// n_rows rows of a head without keys of its own, which read this sequence's kept tokens.
struct KeyReaders {
  const Sequence* sequence = nullptr;
  int n_rows = 0;
};

// Reused between passes: allocates only while passes grow. Not thread-safe.
class PassPlan {
 public:
  // Checks the blocks against the model, lays out their rows in order and reserves pages in the
  // sequences. Throws Error (or std::bad_alloc); no sequence has changed then.
  void prepare(std::span<const TokenBlock> blocks, const RowSet& logits,
               std::span<const int> skip_layers, const ModelConfig& config, const KvCache& cache);
  // Lays out rows that store nothing and do not see each other: each attends to the kept tokens, at
  // the position after them. All get logits. Throws Error if a sequence belongs to another model,
  // has no kept tokens, has pending nodes, was run with skipped layers, or is at the end of the
  // context.
  void prepare_readers(std::span<const KeyReaders> readers, const ModelConfig& config,
                       const KvCache& cache);
  // n_rows rows without sequence and token, all with logits.
  void prepare_rows(int n_rows);
  // Makes the rows, except readers, pending nodes of their sequences. Does not throw.
  void append_nodes();

  const std::vector<PassRow>& rows() const { return rows_; }
  int n_rows() const { return static_cast<int>(rows_.size()); }
  const std::vector<int>& asked() const { return asked_; }  // rows that get logits, ascending
  int n_asked() const { return static_cast<int>(asked_.size()); }
  // Slots of the longest sequence including the pass's rows, and of encoders.
  int n_slots() const { return n_slots_; }

 private:
  void add_block(const TokenBlock& block, int index, std::span<const int> skip_layers,
                 const ModelConfig& config, const KvCache& cache);
  void choose_rows(std::span<const TokenBlock> blocks, const RowSet& logits);
  void ask_for_all();

  std::vector<PassRow> rows_;
  std::vector<int> asked_;
  std::vector<KvSequence::Reservation> reservations_;  // for the rows' sequences, in their order
  int n_slots_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_PASS_PLAN_H_
