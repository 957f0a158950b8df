// SPDX-License-Identifier: Apache-2.0
// The candidate merges of a long word, best rank first, the leftmost on ties. A long word has as
// many candidates as characters and few ranks, and a merge nearly always creates candidates of a
// worse rank than its own. So candidates wait in a list for each rank, and only those that are not
// worse than the current rank go through a heap. Lists are read sequentially, where every step of a
// large heap would miss the cache. Not thread-safe.
#ifndef OUTRIDER_TOKENIZER_MERGING_MERGE_QUEUE_H_
#define OUTRIDER_TOKENIZER_MERGING_MERGE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace outrider {

class MergeQueue {
 public:
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t left;  // position of the left symbol
  };

  // Empties the queue for a word of n_symbols; ranks are below n_ranks.
  void start(std::size_t n_symbols, std::uint32_t n_ranks);
  void push(Candidate candidate);
  // Removes the first candidate; false if there is none.
  bool pop(Candidate& candidate);
  // Candidates added in the queue's lifetime, for tests.
  std::uint64_t n_pushed() const { return n_pushed_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Waiting {
    std::uint32_t left;
    std::uint32_t earlier;  // index into waiting_ of the previous candidate of the same rank
  };
  // Makes the best rank with a list the current one; false if no list is left.
  bool start_round();

  bool has_lists_ = false;
  std::vector<std::uint64_t> heap_;          // rank in the high half, position in the low one
  std::vector<std::uint32_t> last_of_rank_;  // index into waiting_; kNone: no list
  std::vector<Waiting> waiting_;
  std::vector<std::uint32_t> ranks_;  // ranks that have a list: a heap
  std::int64_t rank_ = -1;            // the current rank
  std::vector<std::uint32_t> round_;  // its positions, the leftmost last
  std::uint64_t n_pushed_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGING_MERGE_QUEUE_H_
