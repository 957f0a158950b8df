#include "tokenizer/text_map.h"

#include <algorithm>

#include "outrider/error.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

// Starts of characters and the end; a position within a character moves to one side.
std::size_t character_start(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}
std::size_t character_end(std::string_view text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace

void require_ranges(std::span<const TextRange> ranges, std::size_t n_bytes) {
  std::size_t done = 0;
  for (const TextRange& range : ranges) {
    if (range.begin < done || range.end < range.begin || range.end > n_bytes) {
      throw Error("tokenize", "literal ranges",
                  "ranges in order, apart and within " + std::to_string(n_bytes) + " bytes",
                  std::to_string(range.begin) + " to " + std::to_string(range.end) + " behind " +
                      std::to_string(done));
    }
    done = range.end;
  }
}

RepairedText::RepairedText(std::string_view text) {
  text_.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Scan scan = scan_utf8(text.substr(at));
    text_.append(text.substr(at, scan.n_valid));
    at += scan.n_valid;
    if (scan.n_bad == 0) continue;
    const std::size_t begin = text_.size();
    text_.append(kReplacementCharacter);
    bad_.push_back({{at, at + scan.n_bad}, {begin, text_.size()}});
    at += scan.n_bad;
  }
}

TextRange RepairedText::to_repaired(const TextRange& range) const {
  const auto moved = [this](std::size_t at, bool is_end) {
    // The last bad subsequence that begins before `at`.
    const auto behind = std::partition_point(
        bad_.begin(), bad_.end(), [at](const Bad& bad) { return bad.original.begin < at; });
    if (behind == bad_.begin()) return at;
    const Bad& bad = behind[-1];
    if (at < bad.original.end) return is_end ? bad.repaired.end : bad.repaired.begin;
    return at - bad.original.end + bad.repaired.end;
  };
  return {moved(range.begin, false), moved(range.end, true)};
}

TextRange RepairedText::to_original(const TextRange& range) const {
  const auto moved = [this](std::size_t at, bool is_end) {
    const auto behind = std::partition_point(
        bad_.begin(), bad_.end(), [at](const Bad& bad) { return bad.repaired.begin < at; });
    if (behind == bad_.begin()) return at;
    const Bad& bad = behind[-1];
    if (at < bad.repaired.end) return is_end ? bad.original.end : bad.original.begin;
    return at - bad.repaired.end + bad.original.end;
  };
  return {moved(range.begin, false), moved(range.end, true)};
}

std::size_t NormalizedText::settled_by_first(std::size_t n_bytes, MatchScratch& scratch) const {
  std::string first(text_.substr(0, n_bytes));
  normalizer_.apply(first, scratch);
  const std::size_t most = std::min(first.size(), normalized_.size());
  const auto differ = std::mismatch(
      first.begin(), first.begin() + static_cast<std::ptrdiff_t>(most), normalized_.begin());
  return character_start(normalized_, static_cast<std::size_t>(differ.first - first.begin()));
}

std::size_t NormalizedText::settled_by_last(std::size_t n_bytes, MatchScratch& scratch) const {
  std::string last(text_.substr(text_.size() - n_bytes));
  normalizer_.apply(last, scratch);
  const std::size_t most = std::min(last.size(), normalized_.size());
  const auto differ = std::mismatch(
      last.rbegin(), last.rbegin() + static_cast<std::ptrdiff_t>(most), normalized_.rbegin());
  const auto same = static_cast<std::size_t>(differ.first - last.rbegin());
  return normalized_.size() - character_end(normalized_, normalized_.size() - same);
}

TextRange NormalizedText::to_normalized(const TextRange& range, MatchScratch& scratch) const {
  if (normalizer_.empty() || range.begin == range.end) return range;
  const TextRange whole{character_start(text_, range.begin), character_end(text_, range.end)};
  const std::size_t begin = settled_by_first(whole.begin, scratch);
  const std::size_t end = normalized_.size() - settled_by_last(text_.size() - whole.end, scratch);
  return {begin, std::max(begin, end)};
}

TextRange NormalizedText::to_original(const TextRange& range, MatchScratch& scratch) const {
  if (normalizer_.empty()) return range;
  // The last beginning that settles nothing of the range, and the last end that does not.
  std::size_t begin = 0;
  std::size_t behind = text_.size() + 1;
  while (behind - begin > 1) {
    const std::size_t middle = begin + (behind - begin) / 2;
    (settled_by_first(character_start(text_, middle), scratch) <= range.begin ? begin : behind) =
        middle;
  }
  std::size_t n_last = 0;
  behind = text_.size() + 1;
  while (behind - n_last > 1) {
    const std::size_t middle = n_last + (behind - n_last) / 2;
    const std::size_t start = character_end(text_, text_.size() - middle);
    (settled_by_last(text_.size() - start, scratch) <= normalized_.size() - range.end ? n_last
                                                                                      : behind) =
        middle;
  }
  begin = character_start(text_, begin);
  return {begin, std::max(begin, character_end(text_, text_.size() - n_last))};
}

}  // namespace outrider
