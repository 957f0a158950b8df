// SPDX-License-Identifier: Apache-2.0
#include "server/engine_loop.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "server/api_error.h"

namespace outrider::server {

void StepTurn::take() {
  std::unique_lock lock(mutex_);
  const std::uint64_t own = next_++;
  changed_.wait(lock, [&] { return served_ == own; });
}

void StepTurn::give() {
  {
    const std::lock_guard lock(mutex_);
    ++served_;
  }
  changed_.notify_all();
}

EngineLoop::State::State(std::shared_ptr<const Model> target, std::span<const std::string> drafters,
                         const ModelOptions& drafter_options, const BatchOptions& options,
                         const LoopOptions& loop)
    : model(std::move(target)), batch(model, drafters, drafter_options, options), turn(loop.turn) {
  if (drafters.empty()) return;
  finish = loop.finish;
  if (turn) turn->take();
  if (loop.prepare) {
    loop.prepare(batch);
  } else {
    batch.measure_passes();
  }
  if (turn) turn->give();
}

EngineLoop::EngineLoop(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
                       const ModelOptions& drafter_options, const BatchOptions& options,
                       const LoopOptions& loop)
    : state_(std::make_shared<State>(std::move(model), drafters, drafter_options, options, loop)),
      max_in_flight_(static_cast<std::size_t>(options.max_running) + loop.max_waiting),
      thread_([state = state_] { state->run(); }) {}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
    for (const RequestId id : state_->in_flight) state_->batch.cancel(id);
  }
  state_->changed.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

std::size_t EngineLoop::State::n_in_flight() const {
  return in_flight.size() + n_submitting + slices.size();
}

// Called with the mutex held.
void EngineLoop::require_room() const {
  if (state_->ends) throw ApiError(503, "the server is shutting down");
  const std::string failure = state_->model->failure();
  if (!failure.empty()) throw ApiError(503, failure, "", "model_lost");
  if (state_->n_in_flight() < max_in_flight_) return;
  throw ApiError(429,
                 fmt::format("{} requests run or wait, as many as this server takes; try again",
                             max_in_flight_),
                 "", "queue_full");
}

void EngineLoop::post(Slice slice) {
  {
    const std::lock_guard lock(state_->mutex);
    require_room();
    state_->slices.push_back(std::move(slice));
  }
  state_->changed.notify_all();
}

RequestId EngineLoop::submit(GenerateRequest request, const SpeculationOptions& speculation,
                             Batch::OnEnd on_end) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    require_room();
    ++state.n_submitting;
  }
  // The id is known when submit() returns, which may be after the text's end.
  struct Place {  // guarded by the mutex
    RequestId id = -1;
    bool ended = false;
  };
  const auto place = std::make_shared<Place>();
  // The state outlives its batch's callbacks.
  auto ended = [&state, place, on_end = std::move(on_end)](GenerateResult result,
                                                           std::exception_ptr error) {
    {
      const std::lock_guard lock(state.mutex);
      place->ended = true;
      state.in_flight.erase(place->id);
    }
    on_end(std::move(result), std::move(error));
  };
  RequestId id = -1;
  try {
    id = state.batch.submit(std::move(request), speculation, std::move(ended));
  } catch (...) {
    const std::lock_guard lock(state.mutex);
    --state.n_submitting;
    throw;
  }
  {
    const std::lock_guard lock(state.mutex);
    --state.n_submitting;
    place->id = id;
    if (!place->ended) state.in_flight.insert(id);
    if (state.ends) state.batch.cancel(id);
  }
  state.changed.notify_all();
  return id;
}

void EngineLoop::cancel(RequestId id) {
  const std::lock_guard lock(state_->mutex);
  if (state_->in_flight.contains(id)) state_->batch.cancel(id);
}

std::size_t EngineLoop::n_in_flight() const {
  const std::lock_guard lock(state_->mutex);
  return state_->n_in_flight();
}

void EngineLoop::wait_until_idle() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->n_in_flight() == 0 && !state_->steps; });
}

// Runs a slice of the work that has waited longest.
void EngineLoop::State::work() {
  Slice slice;
  {
    const std::lock_guard lock(mutex);
    if (slices.empty()) return;
    slice = slices.front();
  }
  if (slice(batch)) return;
  const std::lock_guard lock(mutex);
  slices.pop_front();
}

void EngineLoop::State::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      steps = false;
      if (in_flight.empty() && slices.empty()) changed.notify_all();
      changed.wait(lock, [this] { return ends || !in_flight.empty() || !slices.empty(); });
      if (ends && in_flight.empty() && n_submitting == 0) break;
      steps = true;
    }
    if (turn) turn->take();
    work();
    // This server's on_end and on_token do not throw, and a request's errors end that request
    // alone.
    batch.step();
    if (turn) turn->give();
  }
  if (finish) finish(batch);
}

}  // namespace outrider::server
