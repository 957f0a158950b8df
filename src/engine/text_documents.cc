#include "engine/text_documents.h"

#include <algorithm>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "read text";

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path())) {
      if (entry->is_directory()) entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// How much of a text of more than kPiece_bytes the next piece takes.
std::size_t piece_end(std::string_view text) {
  const std::string_view piece = text.substr(0, TextDocuments::kPiece_bytes);
  const std::size_t line = piece.rfind('\n');
  if (line != std::string_view::npos) return line + 1;
  const std::size_t blank = piece.rfind(' ');
  if (blank != std::string_view::npos && blank > 0) return blank;
  std::size_t end = piece.size();
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

}  // namespace

TextDocuments::TextDocuments(std::span<const fs::path> texts, std::string separator)
    : separator_(std::move(separator)) {
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

// Moves on to the next document that has more than blanks; false at the end.
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
  const std::size_t end = rest_.size() <= kPiece_bytes ? rest_.size() : piece_end(rest_);
  const Piece piece{.text = rest_.substr(0, end), .first = first, .last = end == rest_.size()};
  rest_.remove_prefix(end);
  return piece;
}

}  // namespace outrider
