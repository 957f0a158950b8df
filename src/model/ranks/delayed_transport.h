// A network that is slower than the one there is: a simulation, and called that wherever figures
// made with it are shown.
#ifndef OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_
#define OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_

#include <atomic>
#include <memory>

#include "model/ranks/transport.h"

namespace outrider {

// May change while it is in use, between two passes.
struct SimulatedLink {
  std::atomic<double> latency_seconds{0};   // of every message
  std::atomic<double> bytes_per_second{0};  // into each rank, over all its peers; 0: no bound
};

// Whoever receives gets it so much later: the latency once, since peers send at the same time, and
// the time that all the bytes take on the rank's own link. Senders do not wait. The rank's threads
// do nothing meanwhile.
std::unique_ptr<Transport> delay(std::unique_ptr<Transport> transport,
                                 std::shared_ptr<const SimulatedLink> link);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_DELAYED_TRANSPORT_H_
