// A text as token ids with suffix arrays over it: where does a run of tokens occur, and what comes
// behind it there?
//
// The file, with numbers little-endian but for tokens:
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
//     48   u64      where the table begins
//     56   u64      checksum (base/checksum.h) of the table
//     64   u64      checksum of the 64 bytes before
//   segments, one behind the other
//      n_tokens x 4 bytes     tokens, big-endian, so that bytes compare as tokens do; kNoToken
//      (four
//                             times 0xFF) stands behind every document
//      n_suffixes x u32       the suffix array: places of the segment's tokens, in the order of
//                             what begins there
//   table, to the end of the file, for each segment
//      u32 n_tokens, u32 n_suffixes, u64 checksum of the tokens and, going on from it, the array
//
// A segment holds the tokens of its own part of the text and the kOverlap_tokens behind it, which
// are the next one's first: suffixes begin in its own part only, each where a token stands, and are
// sorted with the overlap before their eyes. So a run of up to kLongestPattern tokens is found, in
// order, wherever a segment ends, and a draft read from behind it is as long as anywhere else.
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

#include "base/mapped_file.h"
#include "base/vocabulary_id.h"
#include "outrider/types.h"

namespace outrider {

// Read-only over mapped bytes. Every field of header and table has been checked by the time it
// exists; the tokens and arrays themselves only against their checksums, and only by check():
// reading them all would take a second a gigabyte. Whatever stands in them, the functions below
// touch nothing outside the file. Thread-safe.
class Datastore {
 public:
  // REST (He et al., 2024, section 4.2) looks for the last 16 tokens, then fewer.
  static constexpr int kLongestPattern = 16;
  // A pattern, and the deepest draft there is behind it (kMostDraftNodes, 255), rounded up.
  static constexpr std::uint32_t kOverlap_tokens = 272;
  // So that the bytes of a segment with its overlap are counted by the sorter's int32.
  static constexpr std::uint32_t kMostSegment_tokens = (1U << 29) - 1 - kOverlap_tokens;

  static constexpr std::size_t kHeader_bytes = 72;
  static constexpr std::size_t kTableEntry_bytes = 16;
  static constexpr std::string_view kMagic = "ORDSTORE";
  static constexpr std::uint32_t kVersion = 1;

  // Throws Error if the file cannot be read or is no whole datastore.
  explicit Datastore(const std::filesystem::path& path);
  // The same over bytes that outlive it, for fuzzing and tests; `description` names them in errors.
  Datastore(std::span<const std::byte> bytes, std::string description);

  const VocabularyId& vocabulary() const { return vocabulary_; }
  std::uint64_t n_tokens() const { return n_tokens_; }  // that can be found
  std::uint64_t n_documents() const { return n_documents_; }
  std::uint64_t n_bytes() const { return bytes_.size(); }
  int n_segments() const { return static_cast<int>(segments_.size()); }

  // Suffixes of one segment by rank.
  struct Ranks {
    std::uint32_t first = 0;
    std::uint32_t last = 0;  // one behind
    std::uint32_t count() const { return last - first; }
  };
  // Those that begin with `pattern`, of 1 to kLongestPattern tokens, none below 0.
  Ranks find(int segment, std::span<const TokenId> pattern) const;
  // Whether any does: the half of find() that most questions need.
  bool contains(int segment, std::span<const TokenId> pattern) const;

  // Where a suffix begins; rank < the segment's number of suffixes.
  std::uint32_t place(int segment, std::uint32_t rank) const;
  // The token at a place, any number; kNoToken behind a document and behind the segment.
  TokenId token(int segment, std::uint64_t place) const {
    const Segment& read = segments_[static_cast<std::size_t>(segment)];
    return place < read.n_tokens ? token_at(read, place) : kNoToken;
  }

  // Throws Error naming the first segment whose bytes are not those that were written.
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
