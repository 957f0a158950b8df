// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/fiber.h"

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define OUTRIDER_FIBERS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OUTRIDER_FIBERS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define OUTRIDER_FIBERS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OUTRIDER_FIBERS_TSAN 1
#endif
#endif

#if defined(OUTRIDER_FIBERS_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(OUTRIDER_FIBERS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace outrider::device::cuda {
namespace {

// Kernels keep little on their stacks; the sanitizers put gaps between it.
#if defined(OUTRIDER_FIBERS_ASAN) || defined(OUTRIDER_FIBERS_TSAN)
constexpr std::size_t kStackBytes = std::size_t{256} << 10;
#else
constexpr std::size_t kStackBytes = std::size_t{64} << 10;
#endif

}  // namespace

#if defined(__x86_64__)

// Stores the registers that a function must keep and the stack's top, and takes those of the other
// stack. swapcontext does the same with two system calls, some ten times slower.
extern "C" void outrider_switch_stacks(void** from, void* to);
asm(R"(
.pushsection .text
.p2align 4
.globl outrider_switch_stacks
.hidden outrider_switch_stacks
.type outrider_switch_stacks, @function
outrider_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size outrider_switch_stacks, . - outrider_switch_stacks
.popsection
)");

#endif

struct Fiber::Switch {
#if defined(__x86_64__)
  void* own = nullptr;
  void* resumer = nullptr;
#else
  ucontext_t own;
  ucontext_t resumer;
#endif
#if defined(OUTRIDER_FIBERS_ASAN)
  void* own_fake_stack = nullptr;
  void* resumer_fake_stack = nullptr;
  const void* resumer_stack = nullptr;
  std::size_t resumer_bytes = 0;
#endif
#if defined(OUTRIDER_FIBERS_TSAN)
  void* own_record = __tsan_create_fiber(0);
  void* resumer_record = nullptr;
#endif

  void to_fiber([[maybe_unused]] std::byte* stack) {
#if defined(OUTRIDER_FIBERS_ASAN)
    __sanitizer_start_switch_fiber(&resumer_fake_stack, stack, kStackBytes);
#endif
#if defined(OUTRIDER_FIBERS_TSAN)
    resumer_record = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_record, 0);
#endif
#if defined(__x86_64__)
    outrider_switch_stacks(&resumer, own);
#else
    swapcontext(&resumer, &own);
#endif
#if defined(OUTRIDER_FIBERS_ASAN)
    __sanitizer_finish_switch_fiber(resumer_fake_stack, nullptr, nullptr);
#endif
  }

  void to_resumer() {
#if defined(OUTRIDER_FIBERS_ASAN)
    __sanitizer_start_switch_fiber(&own_fake_stack, resumer_stack, resumer_bytes);
#endif
#if defined(OUTRIDER_FIBERS_TSAN)
    __tsan_switch_to_fiber(resumer_record, 0);
#endif
#if defined(__x86_64__)
    outrider_switch_stacks(&own, resumer);
#else
    swapcontext(&own, &resumer);
#endif
    arrived();
  }

  void arrived() {
#if defined(OUTRIDER_FIBERS_ASAN)
    __sanitizer_finish_switch_fiber(own_fake_stack, &resumer_stack, &resumer_bytes);
#endif
  }
};

namespace {
thread_local Fiber* beginning = nullptr;  // whose first resume this is
}

void Fiber::enter(Fiber* fiber) {
  fiber->switch_->arrived();
  fiber->body_(fiber->argument_);
  fiber->ended_ = true;
  fiber->switch_->to_resumer();  // for good
}

Fiber::Fiber() : stack_(new std::byte[kStackBytes]), switch_(std::make_unique<Switch>()) {}

Fiber::~Fiber() {
#if defined(OUTRIDER_FIBERS_ASAN)
  // Frames of a forgotten body have left their marks there.
  __asan_unpoison_memory_region(stack_.get(), kStackBytes);
#endif
#if defined(OUTRIDER_FIBERS_TSAN)
  __tsan_destroy_fiber(switch_->own_record);
#endif
}

void Fiber::begin(Body body, void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
#if defined(OUTRIDER_FIBERS_ASAN)
  __asan_unpoison_memory_region(stack_.get(), kStackBytes);
  switch_->own_fake_stack = nullptr;
#endif
  void (*const first)() = [] { enter(beginning); };
#if defined(__x86_64__)
  // As if `first` had been called, with nowhere to return to, and had stored six registers.
  auto top = reinterpret_cast<std::uintptr_t>(stack_.get() + kStackBytes) / 16 * 16;
  auto* words = reinterpret_cast<std::uint64_t*>(top);
  *--words = 0;
  *--words = reinterpret_cast<std::uint64_t>(first);
  for (int i = 0; i < 6; ++i) *--words = 0;
  switch_->own = words;
#else
  getcontext(&switch_->own);
  switch_->own.uc_stack.ss_sp = stack_.get();
  switch_->own.uc_stack.ss_size = kStackBytes;
  switch_->own.uc_link = nullptr;
  makecontext(&switch_->own, first, 0);
#endif
}

void Fiber::resume() {
  beginning = this;
  switch_->to_fiber(stack_.get());
}

void Fiber::suspend() { switch_->to_resumer(); }

}  // namespace outrider::device::cuda
