// SPDX-License-Identifier: Apache-2.0
// Handles programs that mpirun or srun has started several times but that run in one process only.
#ifndef OUTRIDER_APPS_CLI_ONE_PROCESS_H_
#define OUTRIDER_APPS_CLI_ONE_PROCESS_H_

#include <string_view>

namespace outrider::cli {

// Where a launcher has started several processes, all but the first one speak after it (entry.h).
void take_place_among_ranks();

// Refuses to do the same work several times over: UsageError, in every process. `what`: "outrider
// train".
void require_one_process(std::string_view what);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_ONE_PROCESS_H_
