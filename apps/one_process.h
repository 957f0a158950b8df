// What a program does that mpirun or srun has started several times, where it is for one process.
#ifndef OUTRIDER_APPS_ONE_PROCESS_H_
#define OUTRIDER_APPS_ONE_PROCESS_H_

#include <string_view>

namespace outrider::cli {

// Whether a launcher has started several processes, and this is not the first of them: what all of
// them would say, that one says.
bool is_follower();

// Refuses to do the same work several times over: UsageError in the first process, QuietExit in the
// others. `what`: "outrider train".
void require_one_process(std::string_view what);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_ONE_PROCESS_H_
