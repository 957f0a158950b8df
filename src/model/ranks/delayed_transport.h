// SPDX-License-Identifier: Apache-2.0
// A transport that simulates a slower network. Figures measured with it must be labelled as
// simulated.
#ifndef OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_
#define OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_

#include <atomic>
#include <memory>

#include "model/ranks/transport.h"

namespace outrider {

// The simulated network's speed. It may be changed at any time: each exchange reads it once its
// bytes have arrived.
struct SimulatedLink {
  std::atomic<double> latency_seconds{0};   // from sending to receiving; 0: none
  std::atomic<double> bytes_per_second{0};  // what one rank receives from all peers; 0: no limit
};

// Wraps one rank's end; neither argument may be null. An exchange that receives returns later: by
// one latency, since peers send at the same time, and by the time that all received bytes take at
// bytes_per_second. WaitLimit does not count that wait. An exchange that only sends does not wait.
// The waiting thread sleeps, but spins through the last 0.1 ms.
std::unique_ptr<Transport> delay(std::unique_ptr<Transport> transport,
                                 std::shared_ptr<const SimulatedLink> link);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_
