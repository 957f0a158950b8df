// A few numbers side by side, for loops that compilers do not turn into vectors by themselves:
// searches for a maximum, sums in several lanes. 16 bytes are in the baseline of every 64-bit
// processor, so that this needs neither intrinsics nor a choice at run time; the notation is GCC's
// and Clang's own. Lanes never meet: each computes what a scalar would, with the same bits.
#ifndef OUTRIDER_BASE_LANES_H_
#define OUTRIDER_BASE_LANES_H_

#include <cstdint>
#include <cstring>

namespace outrider {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));    // what comparisons give
using Bits4 = std::uint32_t __attribute__((vector_size(16)));  // what may overflow

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

// Lane by lane, b where that is larger, else a: NaN in b is never larger.
template <class Lanes>
Lanes larger(const Lanes& a, const Lanes& b) {
  return b > a ? b : a;
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_LANES_H_
