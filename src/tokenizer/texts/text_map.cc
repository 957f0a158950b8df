// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/text_map.h"

#include <algorithm>

#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// Beginnings of characters, and the end; a position within a character moves to one side.
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

NormalizedText::NormalizedText(const Normalizer& normalizer, std::string_view text,
                               MatchScratch& scratch)
    : text_(text) {
  std::string normalized(text);
  normalizer.apply(normalized, scratch, steps_);
}

TextRange NormalizedText::to_normalized(const TextRange& range) const {
  TextRange moved{character_start(text_, range.begin), character_end(text_, range.end)};
  for (const TextEdits& step : steps_) {
    moved = step.to_after(moved);
    if (moved.begin == moved.end) break;
  }
  return moved;
}

TextRange NormalizedText::to_original(const TextRange& range) const {
  TextRange moved = range;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    moved = step->to_before(moved);
  }
  if (moved.begin < moved.end || text_.empty()) return moved;
  if (moved.begin == text_.size()) moved.begin = last_character(text_);
  moved.end = moved.begin + static_cast<std::size_t>(code_point_at(text_, moved.begin).n_bytes);
  return moved;
}

}  // namespace outrider
