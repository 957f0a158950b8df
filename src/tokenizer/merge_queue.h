// What may merge in a long word, best rank first, the leftmost on ties. Of a long word there are as
// many candidates as characters and few ranks, and what a merge makes possible is nearly always of
// a worse rank than its own: so candidates wait in a list for each rank, and only those that are
// not worse than the rank at hand go through a heap. Lists are read from one end to the other,
// where every step of a large heap would miss the cache. Not thread-safe.
#ifndef OUTRIDER_TOKENIZER_MERGE_QUEUE_H_
#define OUTRIDER_TOKENIZER_MERGE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace outrider {

class MergeQueue {
 public:
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t left;  // position of the left one of the two
  };

  // For a word of n_symbols; ranks are below n_ranks. The queue is empty.
  void start(std::size_t n_symbols, std::uint32_t n_ranks);
  void push(Candidate candidate);
  // Takes the first one out; false if there is none.
  bool pop(Candidate& candidate);
  // How many were put in since it was made, for tests.
  std::uint64_t n_pushed() const { return n_pushed_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Waiting {
    std::uint32_t left;
    std::uint32_t earlier;  // index into waiting_ of the one that came before for the same rank
  };
  // Makes the best rank that has a list the one at hand; false if no list is left.
  bool start_round();

  bool has_lists_ = false;
  std::vector<std::uint64_t> heap_;          // rank in the high half, position in the low one
  std::vector<std::uint32_t> last_of_rank_;  // index into waiting_; kNone wherever no list is
  std::vector<Waiting> waiting_;
  std::vector<std::uint32_t> ranks_;  // that have a list: a heap
  std::int64_t rank_ = -1;            // at hand
  std::vector<std::uint32_t> round_;  // its positions, the leftmost last
  std::uint64_t n_pushed_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGE_QUEUE_H_
