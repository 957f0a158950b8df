// SPDX-License-Identifier: Apache-2.0
// Releasing and taking the GIL until the process ends.
//
// Python ends daemon threads when they try to take the GIL. Up to 3.13 it unwinds their stacks
// (pthread_exit); if these have C++ frames, std::terminate ends the process. A hook of atexit
// therefore lets threads leave the engine first. Threads that are still inside when the hook
// returns never take the GIL again. All files take and release the GIL by the classes here, not by
// pybind11's.
#ifndef OUTRIDER_PYTHON_GIL_H_
#define OUTRIDER_PYTHON_GIL_H_

#include <pybind11/pybind11.h>

#include <utility>

namespace outrider::python {

namespace py = pybind11;

// A call of the engine, which ends soon once Python ends (check_signals): the hook waits for it.
// Constructed and destroyed while the GIL is held.
class CallInProgress {
 public:
  CallInProgress();
  ~CallInProgress();
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;
};

// During its life this thread, which held the GIL, does not hold it.
class ReleasedGil {
 public:
  ReleasedGil();
  // Does not return if Python has ended meanwhile.
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  CallInProgress call_;
  PyThreadState* thread_;
};

// During its life this thread holds the GIL; it may have held it before.
class TakenGil {
 public:
  // Does not return if Python has ended.
  TakenGil();
  ~TakenGil() { PyGILState_Release(before_); }
  TakenGil(const TakenGil&) = delete;
  TakenGil& operator=(const TakenGil&) = delete;

 private:
  PyGILState_STATE before_;
};

// Called between passes with the GIL held: throws the exception of a signal handler, and SystemExit
// once Python ends, in all threads except the one that ends it.
void check_signals();

// Whether Python has ended for all threads but one. Objects in use by the other threads stay in
// use.
bool has_ended();

// Calls `callable(arguments...)` with the GIL held. Does not return if Python ends the thread
// within the call: nothing below it on the stack is unwound.
py::object call_with(const py::handle& callable, const py::tuple& arguments);
template <typename... Arguments>
py::object call(const py::handle& callable, Arguments&&... arguments) {
  return call_with(callable, py::make_tuple(std::forward<Arguments>(arguments)...));
}

// Registers the hook.
void leave_at_exit();

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_GIL_H_
