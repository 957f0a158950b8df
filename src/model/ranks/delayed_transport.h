// SPDX-License-Identifier: Apache-2.0
// Simulates a slower network. Figures measured with it must be labelled as simulated.
#ifndef OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_
#define OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_

#include <atomic>
#include <memory>

#include "model/ranks/transport.h"

namespace outrider {

// May be changed between two passes.
struct SimulatedLink {
  std::atomic<double> latency_seconds{0};   // of every message
  std::atomic<double> bytes_per_second{0};  // into each rank, over all its peers; 0: no limit
};

// Delays reception: by the latency once, since peers send at the same time, and by the time of all
// bytes on the rank's own link. Senders do not wait. The rank's threads are idle meanwhile.
std::unique_ptr<Transport> delay(std::unique_ptr<Transport> transport,
                                 std::shared_ptr<const SimulatedLink> link);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_
