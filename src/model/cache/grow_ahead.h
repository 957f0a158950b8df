// SPDX-License-Identifier: Apache-2.0
// Reserving memory in vectors that grow by a little at a time.
#ifndef OUTRIDER_MODEL_CACHE_GROW_AHEAD_H_
#define OUTRIDER_MODEL_CACHE_GROW_AHEAD_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace outrider {

// Reserves memory for n entries in all, at least doubling the capacity if it grows: later appends
// allocate nothing until then. (reserve() alone would grow by single entries.) May throw
// std::bad_alloc.
template <typename T>
void reserve_ahead(std::vector<T>& vector, std::size_t n) {
  if (vector.capacity() < n) vector.reserve(std::max(n, 2 * vector.capacity()));
}

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_GROW_AHEAD_H_
