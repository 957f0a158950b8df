// SPDX-License-Identifier: Apache-2.0
// The present cost of passes by their rows: measured once, then updated with every pass.
#ifndef OUTRIDER_ENGINE_DRAFTING_PASS_TIMES_H_
#define OUTRIDER_ENGINE_DRAFTING_PASS_TIMES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "model/language_model.h"

namespace outrider {

// A cost that grows with the rows, linear between measured points. Not thread-safe.
class PassTimes {
 public:
  struct Measured {
    int rows = 0;
    double seconds = 0;
    std::int64_t last_pass = 0;  // when such a pass was added last, in passes of any width
  };
  // Without a measurement: learns from add() alone.
  PassTimes() = default;
  // measured: ascending in rows, which are at least 1.
  explicit PassTimes(std::vector<Measured> measured);

  // Adds the time of a pass of that number of rows. Costs drift quickly together (longer texts, a
  // busier machine) and slowly apart; a width not seen for a while is corrected alone. With passes
  // of one width alone the two cannot be told apart: they count as a common drift. Outliers count
  // as at most four times, or at least a quarter of, the expected time.
  void add(int rows, double seconds);
  // Expected seconds: 0 for 0 rows, and before the first add(). Beyond the widest pass seen it
  // grows as between the two widest, and is constant if only one was seen: what looks cheap is
  // tried, and then known. Never below the cost of fewer rows, whatever disturbed measurements
  // said.
  double seconds(int rows) const;
  bool empty() const { return points_.empty(); }
  // The common drift since the measurement, as a factor.
  double scale() const { return scale_; }
  // The present costs, ascending in rows.
  std::vector<Measured> points() const;

 private:
  double base(int rows) const;
  void learn(int rows, double seconds, double expected);
  void rise();

  std::vector<Measured> points_;  // ascending in rows
  std::vector<double> rising_;    // their seconds, made non-decreasing
  double scale_ = 1;              // common factor
  std::int64_t n_passes_ = 0;
  int last_rows_ = 0;           // of the last pass
  std::int64_t n_in_turn_ = 0;  // consecutive passes of this width
};

// Measures passes of 1, 2, 4 .. 64 rows on arbitrary tokens, in turn, at least twice each and short
// ones up to 25 times; takes the median (of two the lesser). Takes about a second and one more pass
// at most, and runs none that exceeds the KV cache's memory. Throws what the model throws.
PassTimes measure_passes(LanguageModel& model);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_PASS_TIMES_H_
