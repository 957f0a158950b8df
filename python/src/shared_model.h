// SPDX-License-Identifier: Apache-2.0
// A model as Python holds it, with the turn that each pass of its generators takes: one pass of the
// model runs at a time.
#ifndef OUTRIDER_PYTHON_SHARED_MODEL_H_
#define OUTRIDER_PYTHON_SHARED_MODEL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bindings.h"
#include "outrider/error.h"
#include "outrider/model.h"

namespace outrider::python {

// Threads get the turn in the order of their requests. A mutex does not promise this: a thread that
// releases and requests it again would mostly get it. Take it without the GIL.
class Turn {
 public:
  // Throws UsageError if this thread has the turn: a callback within a pass asks for another pass.
  // Throws Error at the end of Python if another thread has it, which may never give it back.
  void lock() {
    refuse_holder();
    std::unique_lock lock(mutex_);
    if (has_ended() && now_ != next_) {
      throw Error("use model", "model", "none in use at the end of Python", "one within a pass");
    }
    const std::uint64_t mine = next_++;
    changed_.wait(lock, [&] { return now_ == mine; });
    holder_ = std::this_thread::get_id();
  }
  void unlock() {
    // The work may add more of it.
    while (!left_.empty()) {
      for (const auto& work : std::exchange(left_, {})) work();
    }
    holder_ = std::thread::id();
    {
      const std::lock_guard lock(mutex_);
      ++now_;
    }
    changed_.notify_all();
  }

  // Whether this thread has the turn.
  bool is_mine() const { return holder_.load() == std::this_thread::get_id(); }
  void refuse_holder() const {
    if (!is_mine()) return;
    throw UsageError("use model", "model", "a call behind the pass",
                     "one within a pass of the same model (by a mask or a drafter)");
  }
  // If is_mine(): work that this thread does before it gives the turn back. It must not throw.
  void leave(std::function<void()> work) { left_.push_back(std::move(work)); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t now_ = 0;
  std::atomic<std::thread::id> holder_{};
  std::vector<std::function<void()>> left_;  // used by the thread with the turn
};

struct SharedModel {
  std::shared_ptr<const Model> model;
  ModelOptions options = {};  // it was loaded with; by default also those of drafters' models
  // Required for passes of the model, and for creating or destroying objects with sequences in it.
  Turn turn;
};

// Adds logits() and features().
void bind_score(py::class_<SharedModel, std::shared_ptr<SharedModel>>& model);

// The options given by Model's keywords, from a dict of these. Throws UsageError for other keys.
ModelOptions read_model_options(const py::dict& keywords);

// Calls `load` without the GIL; it calls `progress`, unless that is None, with the share that is
// loaded. Ctrl-C, or the end of Python, ends the load.
std::shared_ptr<SharedModel> load_shared(
    ModelOptions options, const py::object& progress,
    const std::function<std::shared_ptr<const Model>(const ModelOptions&)>& load);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_SHARED_MODEL_H_
