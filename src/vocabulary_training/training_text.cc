// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/training_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "train tokenizer";

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Takes a part of at most LineSample::kLongestPart_bytes from the front of `rest`. A cut at the
// beginning of a run of blanks takes the first blank with it: SentencePiece prepends a blank to
// every line, so words are those of the whole line.
std::string_view take_part(std::string_view& rest) {
  std::size_t end = std::min(rest.size(), LineSample::kLongestPart_bytes);
  std::size_t next = end;
  if (end < rest.size()) {
    for (std::size_t at = end; at > 0; --at) {
      if (rest[at] == ' ' && rest[at - 1] != ' ') {
        end = at;
        next = at + 1;
        break;
      }
    }
    if (next == end) {  // one word
      while ((static_cast<unsigned char>(rest[end]) & 0xC0) == 0x80) --end;
      next = end;
    }
  }
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(next);
  return part;
}

}  // namespace

TrainingText::TrainingText(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    const std::string_view text = text_of(files_.emplace_back(file));
    require_utf8(text, kOperation, file.string());
    n_bytes_ += static_cast<std::int64_t>(text.size());
  }
  std::size_t file = 0;
  std::size_t at = 0;
  for (std::string_view line; next_line(file, at, line);) ++n_lines_;
  if (n_lines_ > 0) return;
  throw Error(kOperation, files.size() == 1 ? files.front().string() : "text",
              "at least one line of text", n_bytes_ == 0 ? "none" : "empty lines only");
}

bool TrainingText::next_line(std::size_t& file, std::size_t& at, std::string_view& line) const {
  for (; file < files_.size(); ++file, at = 0) {
    const std::string_view text = text_of(files_[file]);
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      line = text.substr(at, end - at);
      at = end + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) return true;
    }
  }
  return false;
}

LineSample::LineSample(const TrainingText& text, std::int64_t max_lines, std::uint64_t seed)
    : text_(&text),
      n_sampled_(max_lines <= 0 ? text.n_lines() : std::min(max_lines, text.n_lines())),
      n_wanted_(n_sampled_),
      n_remaining_(text.n_lines()),
      random_(seed) {}

// Selection sampling (Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S): a line
// is taken with probability wanted / remaining. The remainder of a 64-bit number deviates from that
// by less than one in 2^64 / n_lines.
bool LineSample::next(std::string& part) {
  while (rest_.empty()) {
    if (n_wanted_ == 0 || !text_->next_line(file_, at_, rest_)) return false;
    const auto remaining = static_cast<std::uint64_t>(n_remaining_--);
    if (random_() % remaining < static_cast<std::uint64_t>(n_wanted_)) {
      --n_wanted_;
    } else {
      rest_ = {};
    }
  }
  part = take_part(rest_);
  return true;
}

}  // namespace outrider
