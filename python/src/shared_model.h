// SPDX-License-Identifier: Apache-2.0
// A model as Python holds it: with the turn that passes of its generators take.
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

// Threads take it in the order in which they came, which a mutex does not promise: the one that
// has just given it back and wants it again would mostly get it. Take it without the GIL.
class Turn {
 public:
  // Throws UsageError where this thread has it: a callback of a pass wants another pass. Throws
  // Error where a thread has it that may never come back.
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
    // What is left to do may leave more.
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

  // Whether this thread is within a turn.
  bool is_mine() const { return holder_.load() == std::this_thread::get_id(); }
  void refuse_holder() const {
    if (!is_mine()) return;
    throw UsageError("use model", "model", "a call behind the pass",
                     "one within a pass of the same model (by a mask or a drafter)");
  }
  // Where it is mine: what this thread does before it gives the turn back. It must not throw.
  void leave(std::function<void()> work) { left_.push_back(std::move(work)); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t now_ = 0;
  std::atomic<std::thread::id> holder_{};
  std::vector<std::function<void()>> left_;  // the holder's
};

struct SharedModel {
  std::shared_ptr<const Model> model;
  ModelOptions options = {};  // it was loaded with; drafters' models are loaded with the same
  // Whoever runs a pass of the model, or makes or drops what has a sequence in it, has the turn.
  Turn turn;
};

// Adds logits() and features().
void bind_score(py::class_<SharedModel, std::shared_ptr<SharedModel>>& model);

// The options that Model's keywords say, from a dict of these. Throws UsageError for other keys.
ModelOptions read_model_options(const py::dict& keywords);

// Loads by `load`, without the GIL, and has it call `progress`, unless that is None, with the share
// that is loaded. Ctrl-C, or the end of Python, ends the load.
std::shared_ptr<SharedModel> load_shared(
    ModelOptions options, const py::object& progress,
    const std::function<std::shared_ptr<const Model>(const ModelOptions&)>& load);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_SHARED_MODEL_H_
