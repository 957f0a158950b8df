// Which experts the rows of a pass use, and where each row stands among those gathered by expert.
#ifndef OUTRIDER_MODEL_PASS_ROUTING_H_
#define OUTRIDER_MODEL_PASS_ROUTING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/pass/blocks.h"
#include "tensor/team.h"

namespace outrider {

// One layer after the other goes
//
//   choose()   of every row, whoever has the row
//   -- barrier --
//   place()    by all threads, the slots shared out
//   -- barrier --
//   the rest
//
// What a row uses depends on its scores alone; slots on all rows. Slots are in the order of
// experts, those of one expert in the order of rows.
class Routing {
 public:
  // Room for so many rows of one layer; for any of its layers, called with the largest numbers.
  // Allocates only while passes grow.
  void resize(int n_rows, int n_experts, int n_used);

  // scores (experts.n()). Of equal scores the lowest ids count; where a score is no number, neither
  // are the weights (of sigmoids that are not divided by their sum: that expert's).
  void choose(const Experts& experts, int row, const float* scores);
  // This thread's slots of all n_rows rows.
  void place(const Team& team, const Experts& experts, const Range& slots);

  int row_of(std::int64_t slot) const { return rows_[static_cast<std::size_t>(slot)]; }
  int expert_of(std::int64_t slot) const { return experts_[static_cast<std::size_t>(slot)]; }
  // Of one row's experts in the order of their ids.
  int id_of(const Experts& experts, int row, int place) const {
    return ids_[index(experts, row, place)];
  }
  int slot_of(const Experts& experts, int row, int place) const {
    return slots_[index(experts, row, place)];
  }
  float weight_of(const Experts& experts, int row, int place) const {
    return weights_[index(experts, row, place)];
  }
  // Experts that some row uses, ascending; and those of them that this rank has.
  std::span<const int> touched() const {
    return {touched_.data(), static_cast<std::size_t>(n_touched_)};
  }
  std::span<const int> touched_of(const Experts& experts) const;
  // The slots of one of them, or of some that follow one another.
  Range slots_of(const Range& ids) const {
    return {first_slots_[static_cast<std::size_t>(ids.begin)],
            first_slots_[static_cast<std::size_t>(ids.end)]};
  }
  Range slots_of(int expert) const {
    return {first_slots_[static_cast<std::size_t>(expert)],
            first_slots_[static_cast<std::size_t>(expert) + 1]};
  }

  // Since start_pass(): touched experts of a layer on average; 0 where no layer has experts.
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
  std::vector<int> ids_;          // (n_rows, n_used), of each row ascending
  std::vector<float> weights_;    // likewise
  std::vector<int> slots_;        // likewise
  std::vector<int> rows_;         // (n_rows * n_used): of each slot
  std::vector<int> experts_;      // likewise
  std::vector<int> first_slots_;  // (n_experts + 1)
  std::vector<int> touched_;      // (n_experts), n_touched_ of them
  int n_touched_ = 0;
  std::int64_t n_touched_in_all_ = 0;
  int n_layers_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ROUTING_H_
