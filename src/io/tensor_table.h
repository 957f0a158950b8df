// SPDX-License-Identifier: Apache-2.0
// The tensors of one opened file, found by name: part of every TensorSource.
//
// Invariants: names are unique; the list never changes after construction, so views and pointers
// into it are valid as long as the table. Immutable, hence thread-safe.
#ifndef OUTRIDER_IO_TENSOR_TABLE_H_
#define OUTRIDER_IO_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/tensor_source.h"

namespace outrider {

class TensorTable {
 public:
  // Throws Error(operation, description, ...) when two tensors share a name.
  TensorTable(std::vector<TensorView> tensors, std::string_view operation,
              std::string_view description);
  // The index holds string_views of the names, which would dangle in a copy.
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;

  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;

 private:
  const std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

// Sizes from headers, in checked arithmetic. Every dimension must be >= 0. Number of elements of
// `shape` (1 for a scalar, 0 if any dimension is 0); nullopt if the product of the non-zero
// dimensions overflows int64, so that even a part of the shape would overflow.
std::optional<std::int64_t> checked_n_elements(std::span<const std::int64_t> shape);
// Bytes of that many elements, which must be whole blocks; 0 for a foreign type; nullopt on
// overflow.
std::optional<std::uint64_t> checked_n_bytes(ElementType type, std::int64_t n_elements);

}  // namespace outrider

#endif  // OUTRIDER_IO_TENSOR_TABLE_H_
