// The text a vocabulary is learnt from: the lines of some files.
#ifndef OUTRIDER_VOCABULARY_TRAINING_TRAINING_TEXT_H_
#define OUTRIDER_VOCABULARY_TRAINING_TRAINING_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace outrider {

// Files of UTF-8 text, mapped. A line ends with "\n" or "\r\n"; empty ones do not count. Immutable,
// thread-safe.
class TrainingText {
 public:
  // Throws Error if a file cannot be read or is not UTF-8 (naming the line), or if all of them
  // together have no line.
  explicit TrainingText(const std::vector<std::filesystem::path>& files);

  std::int64_t n_lines() const { return n_lines_; }
  std::int64_t n_bytes() const { return n_bytes_; }  // of the files
  // The next line that is not empty at or behind (file, at), which move behind it; false at the
  // end. Start with two zeros. The view is into the mapped file.
  bool next_line(std::size_t& file, std::size_t& at, std::string_view& line) const;

 private:
  std::vector<MappedFile> files_;
  std::int64_t n_lines_ = 0;
  std::int64_t n_bytes_ = 0;
};

// A walk over the lines, or over as many of them, drawn without replacement, as are asked for, in
// the form SentencePiece's trainer wants them. The text must outlive it. Not thread-safe.
class LineSample {
 public:
  // max_lines 0, or not below the number there is: all. The draw is a function of seed and text.
  LineSample(const TrainingText& text, std::int64_t max_lines, std::uint64_t seed);

  // The next part of a line, at most kLongestPart_bytes of it; false at the end.
  bool next(std::string& part);
  std::int64_t n_lines() const { return n_sampled_; }  // that will be walked over in all

  // SentencePiece drops longer lines than it is told to, and gives positions within a word sixteen
  // bits: of a longer line it must be shown parts.
  static constexpr std::size_t kLongestPart_bytes = std::size_t{1} << 15;

 private:
  const TrainingText* text_;
  std::size_t file_ = 0;
  std::size_t at_ = 0;
  std::string_view rest_;  // of the line under way
  std::int64_t n_sampled_;
  std::int64_t n_wanted_;     // still to be drawn
  std::int64_t n_remaining_;  // lines still to be looked at
  std::mt19937_64 random_;
};

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_TRAINING_TEXT_H_
