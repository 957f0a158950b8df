// SPDX-License-Identifier: Apache-2.0
// The GIL, given away and taken, until the process ends.
//
// Python ends daemon threads where they come to take the GIL: up to 3.13 by unwinding their stacks
// (pthread_exit), and where C++ has frames on them, std::terminate ends the process. A hook of
// atexit therefore lets the threads come out of the engine first, and whoever has not come out when
// it returns never takes the GIL again. All files take and release it by the classes here, not by
// pybind11's.
#ifndef OUTRIDER_PYTHON_GIL_H_
#define OUTRIDER_PYTHON_GIL_H_

#include <pybind11/pybind11.h>

#include <utility>

namespace outrider::python {

namespace py = pybind11;

// A call of the engine, which ends soon once Python ends (check_signals): the hook waits for it.
// Made and dropped with the GIL.
class CallInProgress {
 public:
  CallInProgress();
  ~CallInProgress();
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;
};

// While it lives, this thread, which had the GIL, has it no more.
class ReleasedGil {
 public:
  ReleasedGil();
  // Does not return where Python has ended meanwhile.
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  CallInProgress call_;
  PyThreadState* thread_;
};

// While it lives, this thread has the GIL; it may have had it before.
class TakenGil {
 public:
  // Does not return where Python has ended.
  TakenGil();
  ~TakenGil() { PyGILState_Release(before_); }
  TakenGil(const TakenGil&) = delete;
  TakenGil& operator=(const TakenGil&) = delete;

 private:
  PyGILState_STATE before_;
};

// Between passes, with the GIL: throws what a signal's handler raises, and SystemExit once Python
// ends, in all threads but the one that ends it.
void check_signals();

// Whether Python has ended for all threads but one. What other threads had in use stays so.
bool has_ended();

// Calls with the GIL, as `callable(arguments...)`. Does not return where Python ends the thread
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
