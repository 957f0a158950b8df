// Writer for GGUF version 3: metadata and the table of tensors first, then the tensors' bytes,
// which the caller gives part by part, so that no tensor need be in memory as a whole.
#ifndef OUTRIDER_IO_GGUF_WRITER_H_
#define OUTRIDER_IO_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "io/tensor_source.h"

namespace outrider {

using GgufEntry = std::span<const std::byte>;  // as in GgufFile::entries()

// The bytes of an entry: an integer of 32 bits.
std::string gguf_entry(std::string_view key, std::uint32_t value);

// A tensor on its way into a file.
struct GgufTensor {
  std::string name;
  ElementType type = ElementType::f32;  // not foreign
  std::vector<std::int64_t> shape;      // outermost first; 1 to 4 sizes of at least 1, and the last
                                        // one is of whole blocks
  std::uint64_t n_bytes() const;
};

// Entries and tensors stand in the order given. Each tensor begins at a multiple of the alignment,
// and zeros fill what is between, also behind the last. The file appears whole or not at all. Not
// thread-safe.
class GgufWriter {
 public:
  // `alignment`: a power of two from 8 on; other values than 32 are what the file's entry
  // "general.alignment" says. The tensors outlive the writer. Throws Error("write GGUF", ...) for
  // tensors that are none (above), and what AtomicFile throws, also where the disk has no room
  // for all of it.
  GgufWriter(const std::filesystem::path& path, std::span<const GgufEntry> entries,
             std::span<const GgufTensor> tensors, std::uint64_t alignment);

  // The next bytes, of one tensor, in the order of the tensors. Throws Error if they are more than
  // the tensor has left, and what AtomicFile throws.
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
  std::size_t next_ = 0;      // the tensor behind the one being written
  std::uint64_t n_left_ = 0;  // bytes of the one being written
  std::uint64_t n_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_IO_GGUF_WRITER_H_
