// SPDX-License-Identifier: Apache-2.0
// Writes a datastore (io/datastore.h) from a stream of tokens, in bounded memory.
#ifndef OUTRIDER_IO_DATASTORE_WRITER_H_
#define OUTRIDER_IO_DATASTORE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/vocabulary_id.h"
#include "io/datastore.h"
#include "outrider/types.h"

namespace outrider {

// Sorts and writes a segment whenever there are enough tokens for one. Memory for each token of a
// segment: 4 bytes, and 16 for the suffix array over bytes from libdivsufsort, of which the quarter
// that begins tokens is kept. The file appears on commit(), whole (AtomicFile). Not thread-safe.
class DatastoreWriter {
 public:
  // 320 MiB while a segment is sorted. A gigabyte of English has about fifteen segments, and a
  // query searches each.
  static constexpr std::uint32_t kDefaultSegment_tokens = 1U << 24;

  // segment_tokens: 1 to Datastore::kMaxSegment_tokens. Throws Error if the file cannot be
  // created.
  DatastoreWriter(std::filesystem::path path, const VocabularyId& vocabulary,
                  std::uint32_t segment_tokens = kDefaultSegment_tokens);

  // Adds the next tokens of the current document; throws Error for ids outside the vocabulary.
  void add(std::span<const TokenId> tokens);
  void end_document();
  // Ends the current document, if any. Throws Error if there were no tokens.
  void commit();

  std::uint64_t n_tokens() const { return n_added_; }
  std::uint64_t n_documents() const { return n_documents_; }
  // Tokens sorted and written so far, separators included.
  std::uint64_t n_written() const { return n_written_; }
  int n_segments() const { return static_cast<int>(table_.size() / Datastore::kTableEntry_bytes); }

 private:
  void push(TokenId token);
  void write_segment(std::size_t n_own);
  std::size_t sort_segment(std::size_t n_own, std::size_t n_stored);

  std::filesystem::path path_;
  AtomicFile file_;
  VocabularyId vocabulary_;
  std::size_t segment_tokens_;
  std::vector<std::byte> tokens_;  // of the current segment, in the file's format
  std::vector<std::int32_t> suffixes_;
  std::vector<std::byte> table_;
  std::uint64_t offset_ = Datastore::kHeader_bytes;
  std::uint64_t n_added_ = 0;
  std::uint64_t n_written_ = 0;
  std::uint64_t n_documents_ = 0;
  bool in_document_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_IO_DATASTORE_WRITER_H_
