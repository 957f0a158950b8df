// One pass before any arithmetic: the blocks checked and laid out as rows.
#ifndef OUTRIDER_MODEL_PASS_PASS_PLAN_H_
#define OUTRIDER_MODEL_PASS_PASS_PLAN_H_

#include <span>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "model/language_model.h"

namespace outrider {

// One new token of the pass.
struct PassRow {
  KvSequence* sequence = nullptr;
  int node = 0;      // among the sequence's pending nodes
  int parent = -1;   // a pending node before it, or -1: the last kept token
  int position = 0;  // n_kept + depth: what RoPE turns by; it attends to position + 1 keys
  TokenId token = 0;
};

// Reused from pass to pass: allocates only while passes grow. Not thread-safe.
class PassPlan {
 public:
  // Checks the blocks against the model, lays out their rows one block after the other and reserves
  // room in the sequences. Throws Error (or std::bad_alloc); no sequence has changed then.
  void lay_out(std::span<const TokenBlock> blocks, const RowSet& logits,
               std::span<const int> skip_layers, const ModelConfig& config, const KvCache& cache);
  // n_rows rows of no sequence and no token, all of them asked for.
  void lay_out_rows(int n_rows);
  // Makes the rows pending nodes of their sequences. Does not throw.
  void append_nodes();

  const std::vector<PassRow>& rows() const { return rows_; }
  int n_rows() const { return static_cast<int>(rows_.size()); }
  const std::vector<int>& asked() const { return asked_; }  // rows that get logits, ascending
  int n_asked() const { return static_cast<int>(asked_.size()); }
  // Of the longest sequence, with the pass's rows, what an encoder read included.
  int n_slots() const { return n_slots_; }

 private:
  void add_block(const TokenBlock& block, int index, std::span<const int> skip_layers,
                 const ModelConfig& config, const KvCache& cache);
  void choose_rows(std::span<const TokenBlock> blocks, const RowSet& logits);

  std::vector<PassRow> rows_;
  std::vector<int> asked_;
  std::vector<KvSequence::Reservation> reservations_;
  int n_slots_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_PASS_PLAN_H_
