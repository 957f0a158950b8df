// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/delayed_transport.h"

#include <chrono>
#include <thread>
#include <utility>

#include "model/ranks/forwarding_transport.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// A sleep may last this much too long, so the rest is waited for actively.
constexpr std::chrono::microseconds kSleepSlack(100);

void wait_until(Clock::time_point end) {
  if (end - Clock::now() > kSleepSlack) std::this_thread::sleep_until(end - kSleepSlack);
  while (Clock::now() < end) std::this_thread::yield();
}

class DelayedTransport final : public ForwardingTransport {
 public:
  DelayedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<const SimulatedLink> link)
      : ForwardingTransport(std::move(inner)), link_(std::move(link)) {}

  Status exchange(const Exchange& exchange, const WaitLimit& limit) noexcept override {
    const Status status = ForwardingTransport::exchange(exchange, limit);
    if (status != Status::done || exchange.from == Exchange::Peers::none) return status;
    double seconds = link_->latency_seconds;
    const double bytes_per_second = link_->bytes_per_second;
    if (bytes_per_second > 0) {
      seconds += static_cast<double>(n_received(exchange)) / bytes_per_second;
    }
    wait_until(Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
    return status;
  }

 private:
  std::size_t n_received(const Exchange& exchange) const {
    const int end = exchange.from == Exchange::Peers::first ? 1 : n_ranks();
    std::size_t n_bytes = 0;
    for (int peer = 0; peer < end; ++peer) {
      if (peer != rank()) n_bytes += exchange.received[peer].n_bytes;
    }
    return n_bytes;
  }

  std::shared_ptr<const SimulatedLink> link_;
};

}  // namespace

std::unique_ptr<Transport> delay(std::unique_ptr<Transport> transport,
                                 std::shared_ptr<const SimulatedLink> link) {
  return std::make_unique<DelayedTransport>(std::move(transport), std::move(link));
}

}  // namespace outrider
