// SPDX-License-Identifier: Apache-2.0
// A text as token ids with suffix arrays: finds where a run of tokens occurs, and what follows it
// there.
//
// The file, with little-endian numbers except for tokens:
//
//   header, kHeader_bytes
//      0   8 bytes  "ORDSTORE"
//      8   u32      version, 1
//     12   u32      number of segments, at least 1
//     16   u64      fingerprint of the vocabulary (tokenizer/same_vocabulary.h)
//     24   u32      its size, 1 to 2^31 - 1
//     28   u32      0
//     32   u64      number of suffixes in all segments
//     40   u64      number of documents
//     48   u64      offset of the table
//     56   u64      checksum (base/checksum.h) of the table
//     64   u64      checksum of the 64 bytes before
//   segments, contiguous
//      n_tokens x 4 bytes   tokens, big-endian, so that bytes compare as tokens do; kNoToken (four
//                           times 0xFF) follows every document
//      n_suffixes x u32     the suffix array: positions of the segment's tokens, sorted by the
//                           suffixes that begin there
//   table, to the end of the file, for each segment
//      u32 n_tokens, u32 n_suffixes, u64 checksum of the tokens continued over the array
//
// A segment holds the tokens of its part of the text and the kOverlap_tokens after it, which are
// the next segment's first. Suffixes begin in its own part only, each at a token, and are sorted
// including the overlap. So a run of up to kLongestPattern tokens is found, in order, wherever a
// segment ends, and a draft read after it is as long as anywhere else.
#ifndef OUTRIDER_IO_DATASTORE_H_
#define OUTRIDER_IO_DATASTORE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/vocabulary_id.h"
#include "outrider/types.h"

namespace outrider {

// Read-only over mapped bytes. The constructor checks every field of header and table. Only check()
// verifies the tokens and arrays, by their checksums: reading them all would take a second a
// gigabyte. Whatever they contain, the functions below access nothing outside the file.
// Thread-safe.
class Datastore {
 public:
  // REST (He et al., 2024, section 4.2) searches the last 16 tokens, then fewer.
  static constexpr int kLongestPattern = 16;
  // A pattern and the deepest draft after it (kMaxDraftNodes, 255), rounded up.
  static constexpr std::uint32_t kOverlap_tokens = 272;
  // Keeps the bytes of a segment with its overlap within the sorter's int32.
  static constexpr std::uint32_t kMaxSegment_tokens = (1U << 29) - 1 - kOverlap_tokens;

  static constexpr std::size_t kHeader_bytes = 72;
  static constexpr std::size_t kTableEntry_bytes = 16;
  static constexpr std::string_view kMagic = "ORDSTORE";
  static constexpr std::uint32_t kVersion = 1;

  // Throws Error if the file cannot be read or is not a whole datastore.
  explicit Datastore(const std::filesystem::path& path);
  // The same over bytes in memory, which must outlive it, for fuzzing and tests; `description`
  // names them in errors.
  Datastore(std::span<const std::byte> bytes, std::string description);

  const VocabularyId& vocabulary() const { return vocabulary_; }
  std::uint64_t n_tokens() const { return n_tokens_; }  // that can be found
  std::uint64_t n_documents() const { return n_documents_; }
  std::uint64_t n_bytes() const { return bytes_.size(); }
  int n_segments() const { return static_cast<int>(segments_.size()); }

  // Suffixes of one segment by rank.
  struct Ranks {
    std::uint32_t first = 0;
    std::uint32_t last = 0;  // exclusive
    std::uint32_t count() const { return last - first; }
  };
  // The suffixes that begin with `pattern`, of 1 to kLongestPattern tokens, none below 0.
  Ranks find(int segment, std::span<const TokenId> pattern) const;
  // Whether there are any, in half the time of find().
  bool contains(int segment, std::span<const TokenId> pattern) const;

  // The position of a suffix; rank < the segment's number of suffixes.
  std::uint32_t place(int segment, std::uint32_t rank) const;
  // The token at any position; kNoToken after a document and after the segment.
  TokenId token(int segment, std::uint64_t place) const {
    const Segment& read = segments_[static_cast<std::size_t>(segment)];
    return place < read.n_tokens ? token_at(read, place) : kNoToken;
  }

  // Throws Error with the first segment whose bytes have changed.
  void check() const;

 private:
  struct Segment {
    const std::byte* tokens = nullptr;    // (n_tokens, 4)
    const std::byte* suffixes = nullptr;  // (n_suffixes) u32
    std::uint32_t n_tokens = 0;
    std::uint32_t n_suffixes = 0;
    std::uint64_t sum = 0;
  };
  class Key;

  void parse();
  std::size_t parse_header(std::size_t& table_offset);
  static TokenId token_at(const Segment& segment, std::uint64_t place);
  static std::uint32_t place_at(const Segment& segment, std::uint32_t rank);
  static std::uint32_t lower_bound(const Segment& segment, const Key& key);

  std::optional<MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::string description_;
  VocabularyId vocabulary_;
  std::uint64_t n_tokens_ = 0;
  std::uint64_t n_documents_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace outrider

#endif  // OUTRIDER_IO_DATASTORE_H_
