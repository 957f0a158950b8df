// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a segment of a verdict log whose texts match its header, or give an Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "io/verdict_log.h"
#include "outrider/error.h"

namespace {

constexpr std::size_t kRecordHeadBytes = 16;

// Sets the checksums that a writer would have written: without them hardly any record would be
// read.
void seal(std::vector<std::byte>& bytes) {
  std::size_t at = outrider::kVerdictSegmentHeaderBytes;
  while (at + kRecordHeadBytes <= bytes.size()) {
    const std::size_t left = bytes.size() - at - kRecordHeadBytes;
    std::uint64_t n_bytes = 0;
    std::memcpy(&n_bytes, bytes.data() + at, sizeof(n_bytes));
    if (n_bytes > left) return;
    const auto payload = std::span(bytes).subspan(at + kRecordHeadBytes, n_bytes);
    const std::uint64_t sum = outrider::checksum(payload);
    std::memcpy(bytes.data() + at + sizeof(n_bytes), &sum, sizeof(sum));
    at += kRecordHeadBytes + n_bytes;
  }
}

void require(bool condition) {
  if (!condition) std::abort();
}

// In sealed bytes no record may be reported as damaged.
void read(std::span<const std::byte> bytes, bool is_sealed) {
  outrider::VerdictSegment segment;
  try {
    segment = outrider::parse_verdict_segment(bytes, "input");
  } catch (const outrider::Error&) {
    return;
  }
  require(segment.n_bytes <= static_cast<std::int64_t>(bytes.size()));
  std::int64_t n_bytes = outrider::kVerdictSegmentHeaderBytes;
  for (const outrider::LoggedText& text : segment.texts) {
    const auto n_kept = static_cast<std::size_t>(segment.format.n_kept);
    const auto n_generated = static_cast<std::size_t>(text.n_generated());
    require(text.n_prompt > 0 && n_generated > 0);
    require(text.tokens.size() == static_cast<std::size_t>(text.n_prompt) + n_generated);
    require(text.kept_ids.size() == n_generated * n_kept);
    require(text.kept_logprobs.size() == n_generated * n_kept);
    for (const auto& ids : {text.tokens, text.kept_ids}) {
      require(std::all_of(ids.begin(), ids.end(), [&](outrider::TokenId id) {
        return id >= 0 && id < segment.format.n_vocabulary;
      }));
    }
    n_bytes += outrider::record_bytes(segment.format, static_cast<std::int64_t>(text.tokens.size()),
                                      text.n_generated());
  }
  require(is_sealed ? n_bytes == segment.n_bytes : n_bytes <= segment.n_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(bytes, false);
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  seal(sealed);
  read(sealed, true);
  return 0;
}
