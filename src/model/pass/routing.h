// SPDX-License-Identifier: Apache-2.0
// Which experts a pass's rows use, and each row's slots among rows gathered by expert.
#ifndef OUTRIDER_MODEL_PASS_ROUTING_H_
#define OUTRIDER_MODEL_PASS_ROUTING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/pass/blocks.h"
#include "tensor/team.h"

namespace outrider {

// For one layer after the other:
//
//   choose()   for every row, by the thread that has the row
//   -- barrier --
//   place()    by all threads, with the slots divided among them
//   -- barrier --
//   the rest
//
// A row's experts depend on its scores alone; slots depend on all rows. Slots are in the order of
// experts, and for each expert in the order of rows.
class Routing {
 public:
  // Allocates for any layer, called with the largest numbers. Allocates only while passes grow.
  void resize(int n_rows, int n_experts, int n_used);

  // scores (experts.n()). Ties go to the lowest ids. If a score is NaN, so are the weights (with
  // sigmoids that are not divided by their sum: that expert's).
  void choose(const Experts& experts, int row, const float* scores);
  // Writes this thread's slots of all n_rows rows.
  void place(const Team& team, const Experts& experts, const Range& slots);

  int row_of(std::int64_t slot) const { return rows_[static_cast<std::size_t>(slot)]; }
  int expert_of(std::int64_t slot) const { return experts_[static_cast<std::size_t>(slot)]; }
  // A row's experts in the order of their ids.
  int id_of(const Experts& experts, int row, int place) const {
    return ids_[index(experts, row, place)];
  }
  int slot_of(const Experts& experts, int row, int place) const {
    return slots_[index(experts, row, place)];
  }
  float weight_of(const Experts& experts, int row, int place) const {
    return weights_[index(experts, row, place)];
  }
  // The experts in use, ascending; and those of them on this rank.
  std::span<const int> touched() const {
    return {touched_.data(), static_cast<std::size_t>(n_touched_)};
  }
  std::span<const int> touched_of(const Experts& experts) const;
  // The slots of one expert, or of consecutive ones.
  Range slots_of(const Range& ids) const {
    return {first_slots_[static_cast<std::size_t>(ids.begin)],
            first_slots_[static_cast<std::size_t>(ids.end)]};
  }
  Range slots_of(int expert) const {
    return {first_slots_[static_cast<std::size_t>(expert)],
            first_slots_[static_cast<std::size_t>(expert) + 1]};
  }

  // Since start_pass(): the average number of experts in use per layer; 0 without layers with
  // experts.
  void start_pass() { n_layers_ = n_touched_in_all_ = 0; }
  double touched_a_layer() const {
    return n_layers_ == 0 ? 0 : static_cast<double>(n_touched_in_all_) / n_layers_;
  }

 private:
  static std::size_t index(const Experts& experts, int row, int place) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(experts.n_used) +
           static_cast<std::size_t>(place);
  }

  int n_rows_ = 0;
  std::vector<int> ids_;          // (n_rows, n_used), ascending in each row
  std::vector<float> weights_;    // (n_rows, n_used)
  std::vector<int> slots_;        // (n_rows, n_used)
  std::vector<int> rows_;         // (n_rows * n_used): for each slot
  std::vector<int> experts_;      // (n_rows * n_used): for each slot
  std::vector<int> first_slots_;  // (n_experts + 1)
  std::vector<int> touched_;      // (n_experts), n_touched_ of them
  int n_touched_ = 0;
  std::int64_t n_touched_in_all_ = 0;
  int n_layers_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ROUTING_H_
