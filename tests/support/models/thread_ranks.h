// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads, and a test body that runs on each.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_THREAD_RANKS_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_THREAD_RANKS_H_

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "model/ranks/communicator.h"
#include "model/ranks/delayed_transport.h"
#include "model/ranks/in_process_ranks.h"

namespace outrider::test {

struct ThreadRanks {
  std::size_t max_bytes = std::size_t{1} << 30;  // of a message, before it is split
  double timeout_seconds = 60;
  // Of a simulated link; 0: this machine's memory, without a limit.
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// Runs body(communicator) on a thread for each rank, and waits for all of them. An exception of one
// rank is sent to the others and rethrown to the caller; of several, the lowest rank's.
inline void run_ranks(int n_ranks, const ThreadRanks& form,
                      const std::function<void(Communicator&)>& body) {
  std::vector<std::unique_ptr<Transport>> ends = make_in_process_ranks(n_ranks, form.max_bytes);
  std::vector<std::exception_ptr> failures(ends.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<Transport> end = std::move(ends[rank]);
      if (form.latency_seconds > 0 || form.bytes_per_second > 0) {
        const auto link = std::make_shared<SimulatedLink>();
        link->latency_seconds = form.latency_seconds;
        link->bytes_per_second = form.bytes_per_second;
        end = delay(std::move(end), link);
      }
      Communicator communicator(std::move(end), form.timeout_seconds);
      try {
        body(communicator);
      } catch (const std::exception& error) {
        failures[rank] = std::current_exception();
        communicator.give_up(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_THREAD_RANKS_H_
