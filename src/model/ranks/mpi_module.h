// Ranks that are processes: the module that talks MPI, loaded when it is asked for, so that no
// other process needs the library.
#ifndef OUTRIDER_MODEL_RANKS_MPI_MODULE_H_
#define OUTRIDER_MODEL_RANKS_MPI_MODULE_H_

#include <memory>

#include "model/ranks/transport.h"

namespace outrider {

// Starts MPI in this process, once. Looks for outrider_mpi.so beside the program and where it is
// installed. Throws Error where there is none, where it cannot be loaded, and where MPI does not
// start.
std::unique_ptr<Transport> start_mpi();

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_MPI_MODULE_H_
