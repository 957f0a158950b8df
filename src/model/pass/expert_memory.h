// Experts that stay in their file: memory for some of their matrices, those that were used last.
#ifndef OUTRIDER_MODEL_PASS_EXPERT_MEMORY_H_
#define OUTRIDER_MODEL_PASS_EXPERT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/pooled_memory.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// Places for packed matrices, in pools of places of one size. A matrix is packed into a place when
// a product wants it, and stays until the place is needed by another; of the places that no product
// is using, that whose matrix was used longest ago is taken.
//
// One op over the experts that rows use goes
//
//   begin()                       one thread
//   while there are some left:
//     claim()                     one thread
//     -- barrier --
//     pack()                      all threads: those of the claimed ones that were not there
//     -- barrier --
//     ... products with claimed() matrices
//     -- barrier --
//
// One op at a time. Packed bits do not depend on when they are packed, nor on the place.
class ExpertMemory {
 public:
  // The matrices of all experts of a layer that are of one kind: its gates, for example, by id.
  using Matrices = std::vector<Matrix>;
  // Matrices of one op.
  static constexpr std::size_t kMostTogether = 2;

  // For at most most_bytes, shared out over sizes as the bytes of `all` are; all of them, in their
  // file (Matrix::in_file), outlive it and do not move. A pool has no more places than matrices.
  // Throws UsageError where one op's matrices have no room.
  ExpertMemory(std::span<const Matrices* const> all, std::uint64_t most_bytes, int n_threads);
  ExpertMemory(const ExpertMemory&) = delete;
  ExpertMemory& operator=(const ExpertMemory&) = delete;

  // ids, each once, of experts whose matrices in each of `kinds` (kMostTogether at most) are
  // wanted. Allocates nothing once as many have been asked for.
  void begin(std::span<const Matrices* const> kinds, std::span<const int> ids);
  // The next of them, as many as there are places for; those that are there come first. No fewer
  // than one.
  void claim();
  // This thread's share of the tiles that are to be packed.
  void pack(const Team& team);
  // Ids of what claim() took, and whether it took the last ones.
  std::span<const int> claimed() const {
    return {ids_.data() + n_done_, static_cast<std::size_t>(n_claimed_ - n_done_)};
  }
  bool is_last() const { return n_claimed_ == static_cast<int>(ids_.size()); }
  // A claimed one: valid until the next claim() or begin().
  const Matrix& matrix(const Matrices& kind, int id) const;

  std::uint64_t n_bytes() const { return n_bytes_; }  // of all places

 private:
  struct Shelf;
  struct Place {
    PooledMemory memory;
    Matrix matrix;           // what is packed here, or empty
    Shelf* shelf = nullptr;  // of that
    int id = 0;              // likewise
    std::int64_t used = 0;   // the claim that wanted it last
  };
  struct Pool {
    std::size_t place_bytes = 0;
    std::vector<Place> places;
    int n_claimed = 0;
  };
  // Where the matrices of one kind and layer are.
  struct Shelf {
    const Matrices* matrices = nullptr;
    Pool* pool = nullptr;
    std::vector<int> places;  // of the pool, or -1; by id
  };

  bool is_here(int id) const;
  bool has_room() const;
  void claim_one(Shelf& shelf, int id);

  std::vector<Pool> pools_;  // does not grow once shelves point into it
  std::unordered_map<const Matrices*, Shelf> shelves_;
  std::vector<Shelf*> kinds_;  // of this op
  std::vector<int> ids_;       // in the order in which they are claimed
  int n_done_ = 0;             // of ids_, before this claim
  int n_claimed_ = 0;
  std::int64_t n_claims_ = 0;
  std::vector<const Matrix*> to_pack_;
  std::vector<WeightRows> rows_;  // each thread's
  std::uint64_t n_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_EXPERT_MEMORY_H_
