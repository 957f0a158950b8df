// SPDX-License-Identifier: Apache-2.0
// Long proofs run all of their cases if OUTRIDER_NIGHTLY is set, and some of them otherwise. Set it
// for ctest, too, which lists the programs' tests.
#ifndef OUTRIDER_TESTS_SUPPORT_NIGHTLY_H_
#define OUTRIDER_TESTS_SUPPORT_NIGHTLY_H_

#include <cstdlib>

namespace outrider::test {

inline bool nightly() { return std::getenv("OUTRIDER_NIGHTLY") != nullptr; }

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_NIGHTLY_H_
