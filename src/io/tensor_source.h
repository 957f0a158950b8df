// SPDX-License-Identifier: Apache-2.0
// Named tensors in files of any format: the interface of the safetensors and GGUF readers.
#ifndef OUTRIDER_IO_TENSOR_SOURCE_H_
#define OUTRIDER_IO_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The encoding of a stored tensor's elements. From q8_0 on they are GGUF's quantised blocks along
// the last dimension, of 32 or 256 elements (io/blocks/block_formats.h).
enum class ElementType {
  f32,
  f16,
  bf16,
  f64,
  i8,
  i16,
  i32,
  i64,
  u8,
  boolean,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  foreign  // any other type: it may be in a file, but is never read
};

std::string_view name_of(ElementType type);    // "f32", "q4_0", ...
std::size_t block_elements(ElementType type);  // elements in one block; 1 for plain types
std::size_t block_bytes(ElementType type);     // bytes of one block; 0 for a foreign type

struct TensorView {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;  // row-major, outermost first (GGUF's order reversed)
  std::span<const std::byte> data;  // exactly the bytes of type and shape (for a foreign type:
                                    // those up to the next tensor); little-endian; NOT necessarily
                                    // aligned to the element
  std::string foreign_type = {};    // the file's name for a foreign type

  std::int64_t n_elements() const;
  // The name of its type, foreign or not.
  std::string type_name() const;
};

// Opening a source checks every header field, so views are safe to read. Immutable and thread-safe
// afterwards; views live as long as the source.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual std::span<const TensorView> tensors() const = 0;          // in file order
  virtual const TensorView* find(std::string_view name) const = 0;  // null if absent; O(1)
  virtual std::string description() const = 0;                      // the path, for error messages
  // Announces that the bytes of one of these tensors will not be read soon. A mapped file returns
  // their memory, and fetches them again from the file if they are read after all; bytes in memory
  // stay.
  virtual void release(const TensorView& tensor) const = 0;
};

// Decodes a row range of a float-like tensor (f32, f16, bf16 or quantised blocks) to float; rows
// count the flattened outer dimensions. out holds n_rows * shape.back() floats. Throws Error for a
// type that is not a float.
void decode_rows(const TensorView& tensor, std::int64_t first_row, std::int64_t n_rows,
                 std::span<float> out);

}  // namespace outrider

#endif  // OUTRIDER_IO_TENSOR_SOURCE_H_
