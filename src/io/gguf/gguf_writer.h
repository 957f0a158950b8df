// SPDX-License-Identifier: Apache-2.0
// Writer for GGUF version 3: metadata and the table of tensors first, then the tensors' bytes. The
// caller provides the bytes in parts, so no tensor has to be in memory as a whole.
#ifndef OUTRIDER_IO_GGUF_GGUF_WRITER_H_
#define OUTRIDER_IO_GGUF_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/atomic_file.h"
#include "io/tensor_source.h"

namespace outrider {

using GgufEntry = std::span<const std::byte>;  // as in GgufFile::entries()

// The bytes of an entry with a 32-bit integer.
std::string gguf_entry(std::string_view key, std::uint32_t value);

// A tensor to be written.
struct GgufTensor {
  std::string name;
  ElementType type = ElementType::f32;  // not foreign
  std::vector<std::int64_t> shape;      // outermost first; 1 to 4 sizes of at least 1, the last one
                                        // of whole blocks
  std::uint64_t n_bytes() const;
};

// Entries and tensors are written in the given order. Each tensor begins at a multiple of the
// alignment, with zeros between them and after the last. The file appears whole or not at all. Not
// thread-safe.
class GgufWriter {
 public:
  // `alignment`: a power of two >= 8; a value other than 32 must agree with the entry
  // "general.alignment". The tensors must outlive the writer. Throws Error("write GGUF", ...) for
  // invalid tensors (above), and what AtomicFile throws, also if the disk has no room for all of
  // it.
  GgufWriter(const std::filesystem::path& path, std::span<const GgufEntry> entries,
             std::span<const GgufTensor> tensors, std::uint64_t alignment);

  // Writes the next bytes, of one tensor, in the order of the tensors. Throws Error if they are
  // more than the tensor's remaining bytes, and what AtomicFile throws.
  void write(std::span<const std::byte> bytes);
  // Throws Error if bytes are missing.
  void commit();

  std::uint64_t n_bytes() const { return n_bytes_; }  // of the file, so far

 private:
  void append(std::span<const std::byte> bytes);
  void pad();
  void start_tensor();

  AtomicFile file_;
  std::string description_;
  std::span<const GgufTensor> tensors_;
  std::uint64_t alignment_;
  std::size_t next_ = 0;      // the tensor after the current one
  std::uint64_t n_left_ = 0;  // bytes of the current one
  std::uint64_t n_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_IO_GGUF_GGUF_WRITER_H_
