// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes: loads the module that uses MPI on demand, so that other processes do
// not need the library.
#ifndef OUTRIDER_MODEL_RANKS_MPI_MODULE_H_
#define OUTRIDER_MODEL_RANKS_MPI_MODULE_H_

#include <memory>

#include "model/ranks/transport.h"

namespace outrider {

// Starts MPI in this process, once. Looks for outrider_mpi.so beside the program and in its place
// of installation. Throws Error if it is missing or cannot be loaded, and if MPI does not start.
std::unique_ptr<Transport> start_mpi();

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_MPI_MODULE_H_
