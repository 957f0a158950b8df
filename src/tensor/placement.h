// Where the threads of a team run. Left to the system, two of them sometimes share a processor
// while another one idles: each then waits at every barrier until the other's time is up, tens of
// milliseconds in a pass of one.
#ifndef OUTRIDER_TENSOR_PLACEMENT_H_
#define OUTRIDER_TENSOR_PLACEMENT_H_

#include <vector>

namespace outrider {

// The processor of each thread of a team of n_threads, if the team takes every processor the
// process may run on: then nothing is lost by staying there. Empty, which leaves it to the system,
// for smaller teams, since the system knows what else is running; for all teams where the user says
// where threads run (any of OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY, KMP_AFFINITY is set); and
// on systems other than Linux. What the process may run on is asked once, by the first caller.
// Thread-safe.
const std::vector<int>& placement(int n_threads);

// Moves the calling thread, number `index` of a team with this placement, to its processor: to stay
// there if it is one of the team's own (index > 0), while thread 0, which is the caller's, may be
// moved by the system again. Next to nothing is spent on a thread that is already there, and where
// the system refuses it runs where it is.
void settle(const std::vector<int>& placement, int index);

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_PLACEMENT_H_
