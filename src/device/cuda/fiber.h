// SPDX-License-Identifier: Apache-2.0
// A function on a stack of its own, which gives the processor back where it likes and goes on from
// there: a thread of an emulated block (emulated_block.h). The sanitizers are told of it.
#ifndef OUTRIDER_DEVICE_CUDA_FIBER_H_
#define OUTRIDER_DEVICE_CUDA_FIBER_H_

#include <cstddef>
#include <memory>

namespace outrider::device::cuda {

class Fiber {
 public:
  using Body = void (*)(void* argument);

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // What the next resume begins. A body that has not ended is forgotten: it must own nothing.
  void begin(Body body, void* argument);
  // Runs the body until it suspends or ends. Always from the same thread, and from no fiber.
  void resume();
  // From within the body: back to resume.
  void suspend();
  bool ended() const { return ended_; }

 private:
  struct Switch;  // what a change of stacks needs, by the processor

  static void enter(Fiber* fiber);

  std::unique_ptr<std::byte[]> stack_;
  std::unique_ptr<Switch> switch_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_FIBER_H_
