// One batch and the thread that steps it.
#ifndef OUTRIDER_SERVER_ENGINE_LOOP_H_
#define OUTRIDER_SERVER_ENGINE_LOOP_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "outrider/batch.h"

namespace outrider::server {

// All functions are thread-safe.
class EngineLoop {
 public:
  // most_waiting: requests beyond those that run (BatchOptions::most_running).
  EngineLoop(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
             const ModelOptions& drafter_options, const BatchOptions& options,
             std::size_t most_waiting);
  // Cancels what runs and waits for it. On the loop's own thread (whoever holds the loop last may
  // be a callback) it does not wait: the thread ends behind the pass in progress.
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Batch::submit(); callbacks are called on the loop's thread, on_end exactly once. Throws
  // ApiError with status 429 where the queue is full, or 503 after the loop's end, besides what
  // submit() throws.
  RequestId submit(GenerateRequest request, const SpeculationOptions& speculation,
                   Batch::OnEnd on_end);
  void cancel(RequestId id);

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
          const ModelOptions& drafter_options, const BatchOptions& options);
    void run();

    std::shared_ptr<const Model> model;
    Batch batch;
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    std::set<RequestId> in_flight;
    std::size_t n_submitting = 0;
    bool steps = false;
    bool ends = false;
  };

  std::shared_ptr<State> state_;
  std::size_t most_in_flight_;
  std::thread thread_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENGINE_LOOP_H_
