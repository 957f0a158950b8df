// SPDX-License-Identifier: Apache-2.0
// Types shared by all public headers.
#ifndef OUTRIDER_TYPES_H_
#define OUTRIDER_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace outrider {

// An index into a model's vocabulary, 0 <= id < vocabulary size. Negative values mean "no token".
using TokenId = std::int32_t;
inline constexpr TokenId kNoToken = -1;

struct TextRange {  // bytes [begin, end) of some text
  std::size_t begin;
  std::size_t end;
  bool operator==(const TextRange&) const = default;
};

}  // namespace outrider

#endif  // OUTRIDER_TYPES_H_
