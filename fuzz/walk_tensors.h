// SPDX-License-Identifier: Apache-2.0
// Reads every byte that the views of an accepted file promise, for fuzz targets.
#ifndef OUTRIDER_FUZZ_WALK_TENSORS_H_
#define OUTRIDER_FUZZ_WALK_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "io/tensor_source.h"
#include "outrider/error.h"

namespace outrider::fuzz {

// The sum of the bytes read, so that no compiler removes the reads.
inline volatile unsigned sum_of_bytes = 0;

// Checks the promises of TensorView and decodes the first and the last row of every tensor of a
// known type. Aborts on a broken promise. A type that cannot be decoded is an ordinary Error.
inline void walk_tensors(const TensorSource& source) {
  unsigned sum = 0;
  for (const TensorView& tensor : source.tensors()) {
    if (source.find(tensor.name) != &tensor) std::abort();
    for (const std::byte byte : tensor.data) sum += std::to_integer<unsigned>(byte);
    // The shape of a foreign type may claim any number of elements, and none can be decoded.
    if (tensor.type == ElementType::foreign) continue;
    const std::uint64_t n_blocks =
        static_cast<std::uint64_t>(tensor.n_elements()) / block_elements(tensor.type);
    if (tensor.data.size() != n_blocks * block_bytes(tensor.type)) std::abort();

    const std::int64_t row_elements = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (static_cast<std::uint64_t>(row_elements) % block_elements(tensor.type) != 0) std::abort();
    if (tensor.n_elements() == 0) continue;
    const std::int64_t n_rows = tensor.n_elements() / row_elements;
    std::vector<float> row(static_cast<std::size_t>(row_elements));
    try {
      decode_rows(tensor, 0, 1, row);
      decode_rows(tensor, n_rows - 1, 1, row);
    } catch (const Error&) {
    }
  }
  sum_of_bytes = sum;
}

}  // namespace outrider::fuzz

#endif  // OUTRIDER_FUZZ_WALK_TENSORS_H_
