// SPDX-License-Identifier: Apache-2.0
// One batch and the thread that steps it.
#ifndef OUTRIDER_SERVER_ENGINE_LOOP_H_
#define OUTRIDER_SERVER_ENGINE_LOOP_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "outrider/batch.h"

namespace outrider::server {

// Lets one of several loops step at a time, in order of request: threads of two models' passes
// would compete for processors.
class StepTurn {
 public:
  void take();
  void give();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t served_ = 0;
};

struct LoopOptions {
  std::size_t max_waiting = 256;  // requests besides the running ones (BatchOptions::max_running)
  // Shared by the loops of one process; null: this is the only one.
  std::shared_ptr<StepTurn> turn = nullptr;
  // With drafters: `prepare` provides the costs of passes before the first request; `finish` saves
  // what the batch has learnt after the last one. Both run on the loop's thread and must not throw.
  // Null: passes are measured, and nothing is saved.
  std::function<void(Batch&)> prepare = {};
  std::function<void(const Batch&)> finish = {};
};

// All functions are thread-safe.
class EngineLoop {
 public:
  EngineLoop(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
             const ModelOptions& drafter_options, const BatchOptions& options,
             const LoopOptions& loop);
  // Cancels running requests and waits for them. On the loop's own thread (a callback may hold the
  // last reference) it does not wait: the thread ends after the pass in progress.
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Batch::submit(). Callbacks are called on the loop's thread, on_end exactly once. Throws
  // ApiError with status 429 if the queue is full, and with 503 after the loop's end or if the
  // model has failed (Model::failure). It also throws the errors of submit().
  RequestId submit(GenerateRequest request, const SpeculationOptions& speculation,
                   Batch::OnEnd on_end);
  void cancel(RequestId id);

  // Other work with the batch or its model. Slices run on the loop's thread, one between two steps
  // of the batch, until one returns false. Throws ApiError as submit() does. An exception from a
  // slice ends the work, so catch errors within it.
  using Slice = std::function<bool(Batch&)>;
  void post(Slice slice);
  // Waits until no request is in flight and all callbacks have been released. Must not be called
  // from a callback.
  void wait_until_idle() const;

  BatchLoad load() const { return state_->batch.load(); }
  // Of requests that were submitted and have not ended.
  std::size_t n_in_flight() const;
  const std::shared_ptr<const Model>& model() const { return state_->model; }

 private:
  struct State {  // shared with the thread
    State(std::shared_ptr<const Model> target, std::span<const std::string> drafters,
          const ModelOptions& drafter_options, const BatchOptions& options,
          const LoopOptions& loop);
    std::size_t n_in_flight() const;  // call it with the mutex held
    void work();
    void run();

    std::shared_ptr<const Model> model;
    Batch batch;
    std::shared_ptr<StepTurn> turn;
    std::function<void(const Batch&)> finish;
    std::mutex mutex;  // guards the members after it
    std::condition_variable changed;
    std::set<RequestId> in_flight;
    std::size_t n_submitting = 0;
    std::deque<Slice> slices;
    bool steps = false;
    bool ends = false;
  };
  void require_room() const;

  std::shared_ptr<State> state_;
  std::size_t max_in_flight_;
  std::thread thread_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENGINE_LOOP_H_
