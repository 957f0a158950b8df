// SPDX-License-Identifier: Apache-2.0
// Text files as documents, in pieces small enough for a tokenizer.
#ifndef OUTRIDER_ENGINE_FILES_TEXT_DOCUMENTS_H_
#define OUTRIDER_ENGINE_FILES_TEXT_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"

namespace outrider {

// Iterates over the documents of some files, one file mapped at a time. Skips blanks at the start
// of a document, and documents of blanks alone. Not thread-safe.
class TextDocuments {
 public:
  // Default size of pieces. A piece ends after a line, or else before a blank, or else between
  // characters. A tokenizer may split words at the boundary differently than in running text: at
  // most once in this many bytes.
  static constexpr std::size_t kPiece_bytes = std::size_t{1} << 16;

  // `texts`: files and folders; a folder stands for all files in it and its sub-folders, in the
  // order of their paths, without names that begin with a dot. Documents end at `separator` (empty:
  // a file is one). Pieces have at most piece_bytes, at least a character's 4. Throws Error if
  // there is no file, or one cannot be read or is not UTF-8.
  TextDocuments(std::span<const std::filesystem::path> texts, std::string separator,
                std::size_t piece_bytes = kPiece_bytes);

  struct Piece {
    std::string_view text;  // never empty; valid until the next call
    bool first = false;     // of its document
    bool last = false;
  };
  // The next piece; nullopt at the end.
  std::optional<Piece> next();

  std::uint64_t n_bytes() const { return n_bytes_; }  // of all files
  std::uint64_t n_bytes_read() const { return n_bytes_before_ + at_; }

 private:
  bool start_document();

  std::string separator_;
  std::size_t piece_bytes_;
  std::vector<std::filesystem::path> files_;
  std::uint64_t n_bytes_ = 0;
  std::size_t next_file_ = 0;
  std::uint64_t n_bytes_before_ = 0;  // in the files before the open one
  std::optional<MappedFile> open_;
  std::string_view text_;  // of the open file
  std::size_t at_ = 0;     // in text_
  std::string_view rest_;  // of the current document
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_FILES_TEXT_DOCUMENTS_H_
