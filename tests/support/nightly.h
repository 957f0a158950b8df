// Long proofs go over all of their cases where OUTRIDER_NIGHTLY is set (for ctest, too, which asks
// the programs for their tests), and over a part of them elsewhere.
#ifndef OUTRIDER_TESTS_SUPPORT_NIGHTLY_H_
#define OUTRIDER_TESTS_SUPPORT_NIGHTLY_H_

#include <cstdlib>

namespace outrider::testing {

inline bool nightly() { return std::getenv("OUTRIDER_NIGHTLY") != nullptr; }

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_NIGHTLY_H_
