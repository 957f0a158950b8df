// SPDX-License-Identifier: Apache-2.0
// Tensor sources in memory: tensors of a program, and those that a model keeps.
#ifndef OUTRIDER_IO_MEMORY_TENSORS_H_
#define OUTRIDER_IO_MEMORY_TENSORS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/tensor_source.h"
#include "io/tensor_table.h"

namespace outrider {

// The type of that name, "f32", "bf16", "i64", ...; empty for other names and for GGUF's blocks.
std::optional<ElementType> plain_type_named(std::string_view name);

// Borrowed bytes, which must outlive it.
class MemoryTensors final : public TensorSource {
 public:
  // description: used instead of a path in messages. Throws Error for invalid tensors: a duplicate
  // name, negative sizes, and a number of bytes that does not fit type and shape (any number is
  // accepted for a foreign type).
  MemoryTensors(std::vector<TensorView> tensors, std::string description);

  std::span<const TensorView> tensors() const override { return table_.tensors(); }
  const TensorView* find(std::string_view name) const override { return table_.find(name); }
  std::string description() const override { return description_; }
  void release(const TensorView& /*tensor*/) const override {}

 private:
  std::string description_;
  TensorTable table_;
};

// Owned bytes of tensors that cannot be found by name.
class KeptTensors final : public TensorSource {
 public:
  explicit KeptTensors(std::string description) : description_(std::move(description)) {}

  // Copies the bytes of a view and makes it refer to the copy; equal bytes are copied once. Not for
  // concurrent use.
  void keep(TensorView& view);

  std::span<const TensorView> tensors() const override { return {}; }
  const TensorView* find(std::string_view /*name*/) const override { return nullptr; }
  std::string description() const override { return description_; }
  void release(const TensorView& /*tensor*/) const override {}

 private:
  struct Copy {
    std::span<const std::byte> from;
    std::vector<std::byte> bytes;
  };

  std::string description_;
  std::deque<Copy> copies_;
};

}  // namespace outrider

#endif  // OUTRIDER_IO_MEMORY_TENSORS_H_
