// The C library's heap while a run trains.
#ifndef OUTRIDER_APPS_TRAINER_HEAP_H_
#define OUTRIDER_APPS_TRAINER_HEAP_H_

#include <cstdint>

namespace outrider::cli {

// Tensors of tens of megabytes come and go many times a step. The C library would give each back to
// the system and get it again page by page, cleared: a twentieth of a step's time. From here on it
// keeps them. Before anything large is allocated.
void keep_heap();

// Kept memory falls into pieces that the next step's tensors do not fit, as texts differ in length,
// and the heap grows: a DSpark head for SmolLM2 135M reached 22 GB after 700 steps, of which 2 were
// in use. So what is free goes back to the system when the process is twice as large as it was
// after a step. Not thread-safe.
class HeapTrimmer {
 public:
  void after_step();

 private:
  std::int64_t limit_ = 0;    // bytes; 0: no step yet
  bool has_trimmed_ = false;  // the step that has just ended was the first since
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_HEAP_H_
