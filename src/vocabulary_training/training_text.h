// SPDX-License-Identifier: Apache-2.0
// The text from which a vocabulary is learnt: the lines of some files.
#ifndef OUTRIDER_VOCABULARY_TRAINING_TRAINING_TEXT_H_
#define OUTRIDER_VOCABULARY_TRAINING_TRAINING_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"

namespace outrider {

// Memory-mapped files of UTF-8 text. A line ends with "\n" or "\r\n"; empty lines do not count.
// Immutable, thread-safe.
class TrainingText {
 public:
  // Throws Error if a file cannot be read or is not UTF-8 (with the line's number), or if there is
  // no line in any of them.
  explicit TrainingText(const std::vector<std::filesystem::path>& files);

  std::int64_t n_lines() const { return n_lines_; }
  std::int64_t n_bytes() const { return n_bytes_; }  // of the files
  // Returns the next line that is not empty at or after (file, at), and moves both past it; false
  // at the end. Start with two zeros. The view points into the mapped file.
  bool next_line(std::size_t& file, std::size_t& at, std::string_view& line) const;

 private:
  std::vector<MappedFile> files_;
  std::int64_t n_lines_ = 0;
  std::int64_t n_bytes_ = 0;
};

// Iterates over all lines, or over a given number of lines drawn without replacement, in the form
// that SentencePiece's trainer requires. The text must outlive it. Not thread-safe.
class LineSample {
 public:
  // max_lines 0, or at least the number of lines: all lines. The draw depends only on seed and
  // text.
  LineSample(const TrainingText& text, std::int64_t max_lines, std::uint64_t seed);

  // Returns the next part of a line, at most kLongestPart_bytes; false at the end.
  bool next(std::string& part);
  std::int64_t n_lines() const { return n_sampled_; }  // that are drawn in all

  // SentencePiece drops lines longer than its limit, and stores positions within a word in sixteen
  // bits. Longer lines are therefore split into parts.
  static constexpr std::size_t kLongestPart_bytes = std::size_t{1} << 15;

 private:
  const TrainingText* text_;
  std::size_t file_ = 0;
  std::size_t at_ = 0;
  std::string_view rest_;  // of the current line
  std::int64_t n_sampled_;
  std::int64_t n_wanted_;     // still to be drawn
  std::int64_t n_remaining_;  // lines not yet considered
  std::mt19937_64 random_;
};

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_TRAINING_TEXT_H_
