// SPDX-License-Identifier: Apache-2.0
// Verdict logs on disk: texts, and what a target said at each of their generated tokens.
//
// A log is a directory of segments, 00000001.verdicts and so on. Texts are appended to the last
// one; the oldest segments are removed when the log would exceed its bound. Numbers are
// little-endian.
//
//   segment  "OUTRVLOG", u32 version (1), i32 n_vocabulary, i32 n_kept, i32 size and u64
//            fingerprint of the vocabulary; then records
//   record   u64 payload bytes, u64 checksum of the payload (base/checksum.h), payload
//   payload  u32 n_prompt, u32 n_generated, i32 tokens[n_prompt + n_generated];
//            for each generated token: f32 rest_logprob, i32 kept_ids[n_kept],
//            f32 kept_logprobs[n_kept]
//
// A segment appears with a whole header. If its program died, an unfinished record has a wrong
// length or checksum: readers stop before it, and the next writer cuts it off. A record damaged
// later is skipped. If its length is damaged, the rest of its segment is skipped, and the next
// writer begins another segment.
#ifndef OUTRIDER_IO_VERDICT_LOG_H_
#define OUTRIDER_IO_VERDICT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/vocabulary_id.h"
#include "outrider/types.h"

namespace outrider {

// Properties shared by all texts of a log.
struct VerdictLogFormat {
  int n_vocabulary = 0;     // width of the target's rows of logits
  int n_kept = 0;           // tokens listed at each position: 1 .. n_vocabulary
  VocabularyId vocabulary;  // of the target's tokenizer

  bool operator==(const VerdictLogFormat&) const = default;
};

// One text. Generated token i is tokens[n_prompt + i]; its row is the target's distribution there,
// given all tokens before it: softmax of the model's logits, without bias, penalties, temperature
// or truncation.
struct LoggedText {
  std::vector<TokenId> tokens;       // prompt (at least one token), then the generated tokens
  int n_prompt = 0;                  // tokens
  std::vector<TokenId> kept_ids;     // (n_generated, n_kept): the likeliest tokens, best first
  std::vector<float> kept_logprobs;  // (n_generated, n_kept), natural; -infinity: impossible
  std::vector<float> rest_logprobs;  // (n_generated): of all other tokens together
  std::int64_t segment = 0;          // where a reader found it; ignored by writers

  int n_generated() const { return static_cast<int>(rest_logprobs.size()); }
};

// Bytes of a text's record in a segment, and of a segment before its first record.
std::int64_t record_bytes(const VerdictLogFormat& format, std::int64_t n_tokens,
                          std::int64_t n_generated);
inline constexpr std::int64_t kVerdictSegmentHeaderBytes = 32;

// The number of segments of a full log, so that the texts kept then take at least seven eighths of
// its bound.
inline constexpr int kVerdictSegments = 8;

// Appends to a log. One writer at a time over all processes, by a lock on the directory. Not
// thread-safe.
class VerdictLogWriter {
 public:
  // Creates the directory (readable by its owner only) if needed, and cuts off an incomplete record
  // of a writer that died. Throws Error if another program is writing, the log has another
  // vocabulary or n_kept, or files are not of a log or cannot be written.
  VerdictLogWriter(std::filesystem::path directory, const VerdictLogFormat& format,
                   std::int64_t max_bytes);
  ~VerdictLogWriter();
  VerdictLogWriter(const VerdictLogWriter&) = delete;
  VerdictLogWriter& operator=(const VerdictLogWriter&) = delete;

  // Appends the text without an end that would not fit into a segment; all files of the log
  // together stay within max_bytes. Throws Error if it cannot be written; the log is then
  // unchanged, except that older segments may have been removed.
  void append(const LoggedText& text);

  const VerdictLogFormat& format() const { return format_; }
  // The maximum number of generated tokens kept for a text with this prompt.
  std::int64_t max_generated(std::int64_t n_prompt) const;

 private:
  struct Segment {
    std::int64_t number;
    std::int64_t n_bytes;
  };
  std::int64_t segment_bytes() const;  // at most
  std::int64_t total_bytes() const;
  void take_up_last();
  void begin_segment();
  void make_room(std::int64_t n_bytes);

  std::filesystem::path directory_;
  VerdictLogFormat format_;
  std::int64_t max_bytes_;
  std::vector<Segment> segments_;  // oldest first
  int lock_ = -1;
  int last_ = -1;  // of the last segment, for appending
  std::vector<std::byte> record_;
};

// The contents of a segment.
struct VerdictSegment {
  VerdictLogFormat format;
  std::vector<LoggedText> texts;  // of the complete records
  std::int64_t n_bytes = 0;       // up to the end of the last one; the rest is incomplete
};
// `path` names it in errors. Throws Error on bytes that are not a segment, and on complete records
// that this format's writer cannot have made.
VerdictSegment parse_verdict_segment(std::span<const std::byte> bytes,
                                     const std::filesystem::path& path);

// Reads a log, also while it is being written. Not thread-safe.
class VerdictLogReader {
 public:
  // Throws Error if there is no such directory.
  explicit VerdictLogReader(std::filesystem::path directory);

  // The complete texts added since the last call, oldest first. Skips incomplete and damaged
  // records. Throws Error on files that are not of a log, or of different targets.
  std::vector<LoggedText> read_new();

  // Known once a segment has been read.
  const std::optional<VerdictLogFormat>& format() const { return format_; }
  // Texts of segments below this have been removed. 0 before there are any.
  std::int64_t oldest_segment() const { return oldest_; }

 private:
  void read_segment(std::int64_t number, std::vector<LoggedText>& texts);

  std::filesystem::path directory_;
  std::optional<VerdictLogFormat> format_;
  std::int64_t oldest_ = 0;
  std::int64_t segment_ = 0;  // where to continue
  std::int64_t offset_ = 0;   // in bytes; 0: before the header
};

}  // namespace outrider

#endif  // OUTRIDER_IO_VERDICT_LOG_H_
