// SPDX-License-Identifier: Apache-2.0
// Short vectors for loops that compilers do not vectorise: searches for a maximum, sums in several
// lanes. 16 bytes are in the baseline of every 64-bit processor, so this needs neither intrinsics
// nor dispatch at run time; the notation is GCC's and Clang's. Lanes are independent: each has the
// bits of scalar code.
#ifndef OUTRIDER_BASE_LANES_H_
#define OUTRIDER_BASE_LANES_H_

#include <cstdint>
#include <cstring>

namespace outrider {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));    // the type of comparisons
using Bits4 = std::uint32_t __attribute__((vector_size(16)));  // wraps on overflow

// Any alignment.
template <class Lanes, class Element>
Lanes load_lanes(const Element* values) {
  Lanes lanes;
  std::memcpy(&lanes, values, sizeof lanes);
  return lanes;
}
template <class Lanes, class Element>
void store_lanes(const Lanes& lanes, Element* values) {
  std::memcpy(values, &lanes, sizeof lanes);
}

// Lane by lane, b if it is larger, else a: a NaN in b is never larger.
template <class Lanes>
Lanes larger(const Lanes& a, const Lanes& b) {
  return b > a ? b : a;
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_LANES_H_
