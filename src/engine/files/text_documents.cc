// SPDX-License-Identifier: Apache-2.0
#include "engine/files/text_documents.h"

#include <algorithm>
#include <utility>

#include "base/files/files_below.h"
#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "read text";

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The length of the next piece of a text of more than n_bytes.
std::size_t piece_end(std::string_view text, std::size_t n_bytes) {
  const std::string_view piece = text.substr(0, n_bytes);
  const std::size_t line = piece.rfind('\n');
  if (line != std::string_view::npos) return line + 1;
  const std::size_t blank = piece.rfind(' ');
  if (blank != std::string_view::npos && blank > 0) return blank;
  std::size_t end = piece.size();
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

}  // namespace

TextDocuments::TextDocuments(std::span<const fs::path> texts, std::string separator,
                             std::size_t piece_bytes)
    : separator_(std::move(separator)), piece_bytes_(piece_bytes) {
  for (const fs::path& text : texts) {
    if (fs::is_directory(text)) {
      const std::vector<fs::path> files = files_below(text);
      if (files.empty()) throw Error(kOperation, text.string(), "a folder with text files", "none");
      files_.insert(files_.end(), files.begin(), files.end());
    } else {
      files_.push_back(text);
    }
  }
  for (const fs::path& path : files_) {
    const MappedFile file(path);
    require_utf8(text_of(file), kOperation, path.string());
    n_bytes_ += file.bytes().size();
  }
}

// Moves to the next document with more than blanks; false at the end.
bool TextDocuments::start_document() {
  for (;;) {
    if (at_ == text_.size()) {
      n_bytes_before_ += text_.size();
      at_ = 0;
      text_ = {};
      if (next_file_ == files_.size()) return false;
      text_ = text_of(open_.emplace(files_[next_file_++]));
      continue;
    }
    const std::size_t end =
        separator_.empty() ? text_.size() : std::min(text_.find(separator_, at_), text_.size());
    rest_ = text_.substr(at_, end - at_);
    at_ = std::min(end + separator_.size(), text_.size());
    const std::size_t first = rest_.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) continue;
    rest_.remove_prefix(first);
    return true;
  }
}

std::optional<TextDocuments::Piece> TextDocuments::next() {
  const bool first = rest_.empty();
  if (first && !start_document()) return std::nullopt;
  const std::size_t end =
      rest_.size() <= piece_bytes_ ? rest_.size() : piece_end(rest_, piece_bytes_);
  const Piece piece{.text = rest_.substr(0, end), .first = first, .last = end == rest_.size()};
  rest_.remove_prefix(end);
  return piece;
}

}  // namespace outrider
