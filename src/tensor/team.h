// The threads of one pass. A pass is written once, as a function that every thread of the team runs
// (single program, multiple data): each op does this thread's share, and the author places barriers
// between an op and those that read what all threads wrote.
#ifndef OUTRIDER_TENSOR_TEAM_H_
#define OUTRIDER_TENSOR_TEAM_H_

#include <cstdint>
#include <functional>

namespace outrider {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// One thread's view of the team it runs in. Valid only inside run_team.
class Team {
 public:
  Team(int index, int size) : index_(index), size_(size) {}
  int index() const { return index_; }
  int size() const { return size_; }

  // This thread's share of [0, n): contiguous, in order of index, sizes differing by one at most.
  Range share(std::int64_t n) const { return {n * index_ / size_, n * (index_ + 1) / size_}; }

  // Waits for all threads; what they wrote before is seen after. All threads must call it.
  void barrier() const;

 private:
  int index_;
  int size_;
};

// Runs body on n_threads threads (this one included) and waits. Every thread runs with the default
// float environment (MXCSR: round to nearest, subnormals kept), the caller's own restored
// afterwards. body must not throw.
void run_team(int n_threads, const std::function<void(const Team&)>& body);

// The number of threads to use where nobody says: the processors this process may run on, or
// OMP_NUM_THREADS if that is fewer.
int default_threads();

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_TEAM_H_
