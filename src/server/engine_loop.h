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

// Lets one of several loops step at a time, in the order in which they asked: the threads of two
// models' passes would wait for each other's processors.
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
  std::size_t most_waiting = 256;  // requests beyond those that run (BatchOptions::most_running)
  // What loops of one process share; null: there is no other.
  std::shared_ptr<StepTurn> turn = nullptr;
  // Where there are drafters: makes the batch know what passes cost, before the first request, and
  // keeps what it knows, behind the last one, on the loop's thread. Neither may throw. Null:
  // passes are measured, and nothing is kept.
  std::function<void(Batch&)> prepare = {};
  std::function<void(const Batch&)> finish = {};
};

// All functions are thread-safe.
class EngineLoop {
 public:
  EngineLoop(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
             const ModelOptions& drafter_options, const BatchOptions& options,
             const LoopOptions& loop);
  // Cancels what runs and waits for it. On the loop's own thread (whoever holds the loop last may
  // be a callback) it does not wait: the thread ends behind the pass in progress.
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Batch::submit(); callbacks are called on the loop's thread, on_end exactly once. Throws
  // ApiError with status 429 where the queue is full, or 503 after the loop's end and where the
  // model is of no use any more (Model::failure), besides what submit() throws.
  RequestId submit(GenerateRequest request, const SpeculationOptions& speculation,
                   Batch::OnEnd on_end);
  void cancel(RequestId id);

  // Work with the batch or its model that is no text: its slices are called on the loop's thread,
  // one between two steps of the batch, until one says that there is no more. Throws ApiError as
  // submit() does. What a slice throws is its end: catch it there.
  using Slice = std::function<bool(Batch&)>;
  void post(Slice slice);
  // Waits until no request is in flight and the callbacks of all have been let go. Not to be called
  // in one.
  void wait_until_idle() const;

  BatchLoad load() const { return state_->batch.load(); }
  // Of requests that were submitted and have not ended.
  std::size_t n_in_flight() const;
  const std::shared_ptr<const Model>& model() const { return state_->model; }

 private:
  struct State {  // the thread's, too
    State(std::shared_ptr<const Model> target, std::span<const std::string> drafters,
          const ModelOptions& drafter_options, const BatchOptions& options,
          const LoopOptions& loop);
    std::size_t n_in_flight() const;  // with the mutex held
    void work();
    void run();

    std::shared_ptr<const Model> model;
    Batch batch;
    std::shared_ptr<StepTurn> turn;
    std::function<void(const Batch&)> finish;
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    std::set<RequestId> in_flight;
    std::size_t n_submitting = 0;
    std::deque<Slice> slices;
    bool steps = false;
    bool ends = false;
  };
  void require_room() const;

  std::shared_ptr<State> state_;
  std::size_t most_in_flight_;
  std::thread thread_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENGINE_LOOP_H_
