// e^x and log x of many numbers at once, by the fastest kernels this machine has. All tables give
// the bits of portable_exp and portable_log (base/elementary.h), so that which one it is shows in
// the time alone, and it need not be the one that a model was told to use. Thread-safe.
#ifndef OUTRIDER_SAMPLING_ELEMENTARY_ROWS_H_
#define OUTRIDER_SAMPLING_ELEMENTARY_ROWS_H_

#include <span>

namespace outrider {

// In place; any values.
void exponentials(std::span<double> values);
void logarithms(std::span<double> values);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_ELEMENTARY_ROWS_H_
