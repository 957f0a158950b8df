// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace outrider::python {
namespace {

// How long the end of Python waits for passes of daemon threads, after which their calls end. The
// longest passes are those of prompts, of 256 rows. 64 rows of a model of 1.5 billion weights take
// 0.36 s on two processors (docs/performance.md: 10.7 times 34 ms). Four times as many rows take
// four times as long: 1.5 s. A thread that takes longer stays blocked.
constexpr std::chrono::seconds kLongestWait(2);
// The time between reads of a counter.
constexpr std::chrono::milliseconds kPause(1);

std::atomic<int> n_calls{0};   // objects of CallInProgress
std::atomic<int> n_taking{0};  // threads that wait for the GIL and will take it next
std::atomic<bool> ends{false};
std::atomic<bool> ended{false};
std::atomic<std::thread::id> last_thread{};  // the thread that ends Python

bool is_last() { return last_thread.load() == std::this_thread::get_id(); }

[[noreturn]] void stay() {
  while (true) ::pause();
}

// Called before the GIL is taken. Either the hook sees this thread in n_taking and waits, or the
// thread sees that Python has ended: each writes its own variable before it reads the other's.
void announce() {
  ++n_taking;
  if (!ended || is_last()) return;
  --n_taking;
  stay();
}

void leave() {
  last_thread = std::this_thread::get_id();
  ends = true;
  const auto latest = std::chrono::steady_clock::now() + kLongestWait;
  const auto is_late = [&] { return std::chrono::steady_clock::now() >= latest; };
  // Read while the GIL is held: a thread that ends one call and begins another holds it in between.
  while (n_calls != 0 && !is_late()) {
    PyThreadState* const thread = PyEval_SaveThread();
    while (n_calls != 0 && !is_late()) std::this_thread::sleep_for(kPause);
    PyEval_RestoreThread(thread);
  }
  ended = true;
  PyThreadState* const thread = PyEval_SaveThread();
  while (n_taking != 0) std::this_thread::sleep_for(kPause);
  PyEval_RestoreThread(thread);
}

}  // namespace

CallInProgress::CallInProgress() { ++n_calls; }

CallInProgress::~CallInProgress() { --n_calls; }

ReleasedGil::ReleasedGil() : thread_(PyEval_SaveThread()) {}

ReleasedGil::~ReleasedGil() {
  announce();
  PyEval_RestoreThread(thread_);
  --n_taking;
}

TakenGil::TakenGil() {
  const bool has_it = PyGILState_Check() != 0;
  if (!has_it) announce();
  before_ = PyGILState_Ensure();
  if (!has_it) --n_taking;
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  if (ends && !is_last()) {
    PyErr_SetNone(PyExc_SystemExit);  // threading prints nothing about it
    throw py::error_already_set();
  }
}

bool has_ended() { return ended; }

// A forced unwinding is no C++ object: the handler's reference is null, which UBSan would report.
[[gnu::no_sanitize("null")]] py::object call_with(const py::handle& callable,
                                                  const py::tuple& arguments) {
  PyObject* result = nullptr;
  try {
    result = PyObject_CallObject(callable.ptr(), arguments.ptr());
  } catch (abi::__forced_unwind&) {
    stay();
  }
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

void leave_at_exit() {
  // A forked child has none of the counted threads.
  const auto hook = [process = ::getpid()] {
    if (::getpid() == process) leave();
  };
  py::module_::import("atexit").attr("register")(py::cpp_function(hook));
}

}  // namespace outrider::python
