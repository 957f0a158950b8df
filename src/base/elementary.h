// SPDX-License-Identifier: Apache-2.0
// Elementary functions in double precision with the same bits on every machine. libm selects
// variants by processor, which replayable sampling and bit-identical logits cannot use. Built only
// from IEEE operations and explicit fused multiply-adds. The kernel tables have e^x and log x with
// these bits for many numbers at once (kernels/table.h). Errors are below 2 units in the last place
// over the stated ranges (elementary_test.cc measures them). Pure functions, thread-safe. The
// rounding mode must be to nearest, which is the default.
#ifndef OUTRIDER_BASE_ELEMENTARY_H_
#define OUTRIDER_BASE_ELEMENTARY_H_

namespace outrider {

// e^x for every x; underflows to 0 below -745.2, overflows to infinity above 709.8, NaN stays NaN.
double portable_exp(double x);
// Natural logarithm for x > 0 (0 gives -infinity, negative x NaN).
double portable_log(double x);
// log(1 + e^x); from 20 on x, as in PyTorch, since the difference is below half of a float's last
// place there. For large negative x it is 0 where 1 + e^x is 1.
double portable_softplus(double x);

struct SineCosine {
  double sine;
  double cosine;
};
// |x| <= 2^25 radians (positions times frequencies); NaN outside.
SineCosine portable_sincos(double x);

}  // namespace outrider

#endif  // OUTRIDER_BASE_ELEMENTARY_H_
