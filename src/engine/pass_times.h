// What passes cost lately, by their rows: measured once, and followed from pass to pass.
#ifndef OUTRIDER_ENGINE_PASS_TIMES_H_
#define OUTRIDER_ENGINE_PASS_TIMES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "model/language_model.h"

namespace outrider {

// A cost that grows with the rows, linear between measured ones. Not thread-safe.
class PassTimes {
 public:
  struct Measured {
    int rows = 0;
    double seconds = 0;
    std::int64_t last_pass = 0;  // when such a pass was added last, in passes of any width
  };
  // Without a measurement: what comes by add() alone.
  PassTimes() = default;
  // measured: ascending in rows, which are at least 1.
  explicit PassTimes(std::vector<Measured> measured);

  // A pass of so many rows took so long. Costs drift together and soon (longer texts, a busier
  // machine), and slowly each for itself; one that has not been seen for a while is corrected by
  // itself. Of passes of one width alone nobody knows which of the two it was: they count as the
  // drift of all. Outliers count at most four times, or a quarter of, what was expected.
  void add(int rows, double seconds);
  // 0 for 0 rows, and before anything was added. Beyond the widest pass that was seen it grows as
  // between the two widest, and not at all where one alone was: what looks cheap is tried, and
  // then known. No cheaper than fewer rows, whatever was seen of either in a disturbed moment.
  double seconds(int rows) const;
  bool empty() const { return points_.empty(); }
  // By how much all of them have drifted since they were measured.
  double scale() const { return scale_; }
  // As they are now, ascending in rows.
  std::vector<Measured> points() const;

 private:
  double base(int rows) const;
  void learn(int rows, double seconds, double expected);
  void rise();

  std::vector<Measured> points_;  // ascending in rows
  std::vector<double> rising_;    // their seconds, none below one before it
  double scale_ = 1;              // of all of them
  std::int64_t n_passes_ = 0;
  int last_rows_ = 0;           // of the last pass
  std::int64_t n_in_turn_ = 0;  // passes of this width since another one
};

// Measures passes of 1, 2, 4 .. 64 rows on a text of its own, in turn, at least twice each and
// short ones up to 25 times, and takes the median (of two the lesser); some second and its last
// pass at most, and none that the KV cache's memory does not hold. Throws what the model throws.
PassTimes measure_passes(LanguageModel& model);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_PASS_TIMES_H_
