// Elementary functions in double precision with the same bits on every machine. libm picks variants
// by processor; replayable sampling and bit-identical logits cannot. Built from IEEE operations and
// explicit fused multiply-adds only. Errors are below 2 units in the last place over the stated
// ranges (elementary_test.cc measures them). Pure functions, thread-safe. Round to nearest must be
// in force, as it is unless somebody changed it.
#ifndef OUTRIDER_BASE_ELEMENTARY_H_
#define OUTRIDER_BASE_ELEMENTARY_H_

#include <span>

namespace outrider {

// e^x for every x; underflows to 0 below -745.2, overflows to infinity above 709.8, NaN stays.
double portable_exp(double x);
// The same for every element, in place and with the same bits: a loop compilers vectorise.
void portable_exp_each(std::span<double> values);
// Natural logarithm for x > 0 (0 gives -infinity, below it NaN).
double portable_log(double x);
// The same for every element, in place and with the same bits: a loop compilers vectorise.
void portable_log_each(std::span<double> values);

struct SineCosine {
  double sine;
  double cosine;
};
// |x| <= 2^25 radians (positions times frequencies); NaN outside.
SineCosine portable_sincos(double x);

}  // namespace outrider

#endif  // OUTRIDER_BASE_ELEMENTARY_H_
