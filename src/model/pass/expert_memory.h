// SPDX-License-Identifier: Apache-2.0
// Experts that stay in their file: memory for some of their matrices, the most recently used ones.
#ifndef OUTRIDER_MODEL_PASS_EXPERT_MEMORY_H_
#define OUTRIDER_MODEL_PASS_EXPERT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/memory/pooled_memory.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// Places for packed matrices, in pools of places of one size. A matrix is packed into a place when
// a product needs it, and stays until another one needs the place. Among places that no product is
// using, the least recently used one is taken.
//
// An op over the experts in use calls
//
//   begin()                       one thread
//   while there are some left:
//     claim()                     one thread
//     -- barrier --
//     pack()                      all threads: the claimed ones that were not in memory
//     -- barrier --
//     ... products with claimed() matrices
//     -- barrier --
//
// for one op at a time. Packed bits depend neither on the time of packing nor on the place.
class ExpertMemory {
 public:
  // The matrices of one kind of all experts of a layer, by id: its gates, for example.
  using Matrices = std::vector<Matrix>;
  // The most matrices of one op.
  static constexpr std::size_t kMaxTogether = 2;

  // Uses at most max_bytes, divided among sizes like the bytes of `all`. All matrices are in their
  // file (Matrix::in_file), must outlive it and must not move. A pool has no more places than
  // matrices. Throws UsageError if one op's matrices do not fit.
  ExpertMemory(std::span<const Matrices* const> all, std::uint64_t max_bytes, int n_threads);
  ExpertMemory(const ExpertMemory&) = delete;
  ExpertMemory& operator=(const ExpertMemory&) = delete;

  // ids: the experts whose matrices of each of `kinds` (at most kMaxTogether) are needed, each
  // once. Allocates nothing once it has had as many.
  void begin(std::span<const Matrices* const> kinds, std::span<const int> ids);
  // Claims the next of them, at least one and as many as there are places; those in memory come
  // first.
  void claim();
  // Packs this thread's share of the tiles.
  void pack(const Team& team);
  // The ids that claim() took, and whether it took the last ones.
  std::span<const int> claimed() const {
    return {ids_.data() + n_done_, static_cast<std::size_t>(n_claimed_ - n_done_)};
  }
  bool is_last() const { return n_claimed_ == static_cast<int>(ids_.size()); }
  // A claimed matrix: valid until the next claim() or begin().
  const Matrix& matrix(const Matrices& kind, int id) const;

  std::uint64_t n_bytes() const { return n_bytes_; }  // of all places

 private:
  struct Shelf;
  struct Place {
    PooledMemory memory;
    Matrix matrix;           // the matrix packed here, or empty
    Shelf* shelf = nullptr;  // whose matrix it is
    int id = 0;              // its id there
    std::int64_t used = 0;   // the last claim that used it
  };
  struct Pool {
    std::size_t place_bytes = 0;
    std::vector<Place> places;
    int n_claimed = 0;
  };
  // The places of the matrices of one kind and layer.
  struct Shelf {
    const Matrices* matrices = nullptr;
    Pool* pool = nullptr;
    std::vector<int> places;  // places in the pool, or -1; by id
  };

  bool is_here(int id) const;
  bool has_room() const;
  void claim_one(Shelf& shelf, int id);

  std::vector<Pool> pools_;  // must not grow once shelves point into it
  std::unordered_map<const Matrices*, Shelf> shelves_;
  std::vector<Shelf*> kinds_;  // of this op
  std::vector<int> ids_;       // in order of claiming
  int n_done_ = 0;             // the number of ids_ before this claim
  int n_claimed_ = 0;
  std::int64_t n_claims_ = 0;
  std::vector<const Matrix*> to_pack_;
  std::vector<WeightRows> rows_;  // per thread
  std::uint64_t n_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_EXPERT_MEMORY_H_
