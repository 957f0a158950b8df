// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: for tests and for measurements with a simulated network.
#ifndef OUTRIDER_MODEL_RANKS_IN_PROCESS_RANKS_H_
#define OUTRIDER_MODEL_RANKS_IN_PROCESS_RANKS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "model/ranks/transport.h"

namespace outrider {

// One end for each rank. One thread at a time may use an end; different threads may use different
// ends. Bytes sent are copied, so senders never wait. Pieces have at most max_bytes; a small value
// tests that long messages are cut.
std::vector<std::unique_ptr<Transport>> make_in_process_ranks(int n_ranks,
                                                              std::size_t max_bytes = std::size_t{1}
                                                                                      << 30);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_IN_PROCESS_RANKS_H_
