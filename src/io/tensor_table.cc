// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_table.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "outrider/error.h"

namespace outrider {

TensorTable::TensorTable(std::vector<TensorView> tensors, std::string_view operation,
                         std::string_view description)
    : tensors_(std::move(tensors)) {
  index_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second) {
      throw Error(operation, fmt::format("{}: tensor '{}'", description, tensors_[i].name),
                  "tensor names to be unique", "a duplicate");
    }
  }
}

const TensorView* TensorTable::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::optional<std::int64_t> checked_n_elements(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size == 0) {
      empty = true;
    } else if (product > std::numeric_limits<std::int64_t>::max() / size) {
      return std::nullopt;
    } else {
      product *= size;
    }
  }
  return empty ? 0 : product;
}

std::optional<std::uint64_t> checked_n_bytes(ElementType type, std::int64_t n_elements) {
  if (type == ElementType::foreign) return 0;  // unknown
  const std::uint64_t n_blocks = static_cast<std::uint64_t>(n_elements) / block_elements(type);
  if (n_blocks > std::numeric_limits<std::uint64_t>::max() / block_bytes(type)) return std::nullopt;
  return n_blocks * block_bytes(type);
}

}  // namespace outrider
