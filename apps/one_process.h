// Handles programs that mpirun or srun has started several times but that run in one process only.
#ifndef OUTRIDER_APPS_ONE_PROCESS_H_
#define OUTRIDER_APPS_ONE_PROCESS_H_

#include <string_view>

namespace outrider::cli {

// Whether a launcher started several processes and this is not the first. Only the first prints
// messages.
bool is_follower();

// Refuses to run in several processes: UsageError in the first process, QuietExit in the others.
// `what`: "outrider train".
void require_one_process(std::string_view what);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_ONE_PROCESS_H_
