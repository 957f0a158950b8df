// SPDX-License-Identifier: Apache-2.0
// Handles the signal that is raised when a mapped file becomes shorter.
#ifndef OUTRIDER_APPS_CLI_BUS_ERROR_H_
#define OUTRIDER_APPS_CLI_BUS_ERROR_H_

#include <string_view>

namespace outrider::cli {

// A model's file stays memory-mapped as long as the model exists. If the file is truncated or its
// disk fails, reading the missing part raises SIGBUS in the reading thread. After this call such a
// SIGBUS prints one line on standard error, which begins with the program's name, and exits with
// status 1. A SIGBUS of any other cause still kills the program.
void explain_bus_errors(std::string_view program);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_BUS_ERROR_H_
