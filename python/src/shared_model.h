// A model as Python holds it: with the turn that passes of its generators take.
#ifndef OUTRIDER_PYTHON_SHARED_MODEL_H_
#define OUTRIDER_PYTHON_SHARED_MODEL_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "bindings.h"
#include "outrider/model.h"

namespace outrider::python {

// Threads take it in the order in which they came, which a mutex does not promise: the one that
// has just given it back and wants it again would mostly get it. Take it without the GIL.
class Turn {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = next_++;
    changed_.wait(lock, [&] { return now_ == mine; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++now_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t now_ = 0;
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

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_SHARED_MODEL_H_
