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

EngineLoop::EngineLoop(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
                       const ModelOptions& drafter_options, const BatchOptions& options,
                       std::size_t most_waiting, std::shared_ptr<StepTurn> turn)
    : model_(std::move(model)),
      batch_(model_, drafters, drafter_options, options),
      most_in_flight_(static_cast<std::size_t>(options.most_running) + most_waiting),
      turn_(std::move(turn)) {
  if (!drafters.empty()) {
    if (turn_) turn_->take();
    batch_.measure_passes();
    if (turn_) turn_->give();
  }
  thread_ = std::thread([this] { run(); });
}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    for (const RequestId id : in_flight_) batch_.cancel(id);
  }
  changed_.notify_all();
  thread_.join();
}

// With the mutex held.
void EngineLoop::require_room() const {
  if (ends_) throw ApiError(503, "the server is shutting down");
  if (in_flight_.size() + n_submitting_ + work_.size() < most_in_flight_) return;
  throw ApiError(429,
                 fmt::format("{} requests run or wait, as many as this server takes; try again",
                             most_in_flight_),
                 "", "queue_full");
}

void EngineLoop::post(std::function<bool()> slice) {
  {
    const std::lock_guard lock(mutex_);
    require_room();
    work_.push_back(std::move(slice));
  }
  changed_.notify_all();
}

RequestId EngineLoop::submit(GenerateRequest request, const SpeculationOptions& speculation,
                             Batch::OnEnd on_end) {
  {
    const std::lock_guard lock(mutex_);
    require_room();
    ++n_submitting_;
  }
  // The id is known when submit() returns, which may be after the text has ended.
  struct Place {  // guarded by mutex_
    RequestId id = -1;
    bool ended = false;
  };
  const auto place = std::make_shared<Place>();
  const auto ended = [this, place, on_end = std::move(on_end)](GenerateResult result,
                                                               std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      place->ended = true;
      in_flight_.erase(place->id);
    }
    on_end(std::move(result), std::move(error));
  };
  RequestId id = -1;
  try {
    id = batch_.submit(std::move(request), speculation, ended);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --n_submitting_;
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    --n_submitting_;
    place->id = id;
    if (!place->ended) in_flight_.insert(id);
    if (ends_) batch_.cancel(id);
  }
  changed_.notify_all();
  return id;
}

void EngineLoop::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (in_flight_.contains(id)) batch_.cancel(id);
}

std::size_t EngineLoop::n_in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_.size() + n_submitting_ + work_.size();
}

// A slice of what waits longest.
void EngineLoop::work() {
  std::function<bool()> slice;
  {
    const std::lock_guard lock(mutex_);
    if (work_.empty()) return;
    slice = work_.front();
  }
  if (slice()) return;
  const std::lock_guard lock(mutex_);
  work_.pop_front();
}

void EngineLoop::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !in_flight_.empty() || !work_.empty(); });
      if (ends_ && in_flight_.empty() && n_submitting_ == 0) return;
    }
    if (turn_) turn_->take();
    work();
    // on_end and on_token of this server throw nothing, and what a request does wrong ends with it.
    batch_.step();
    if (turn_) turn_->give();
  }
}

}  // namespace outrider::server
