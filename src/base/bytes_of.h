// SPDX-License-Identifier: Apache-2.0
// A plain value as its bytes in memory, for files in this machine's byte order.
#ifndef OUTRIDER_BASE_BYTES_OF_H_
#define OUTRIDER_BASE_BYTES_OF_H_

#include <cstddef>
#include <span>

namespace outrider {

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_BYTES_OF_H_
