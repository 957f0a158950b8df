// SPDX-License-Identifier: Apache-2.0
// Finds the tokenizer's file in a directory, and loads a tokenizer from such files in memory.
// Thread-safe.
#ifndef OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_FILE_H_
#define OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_FILE_H_

#include <filesystem>
#include <memory>
#include <optional>

#include "base/files/file_folder.h"
#include "outrider/tokenizer.h"

namespace outrider {

// tokenizer.json, or else a SentencePiece model; empty if there is neither. A dangling link counts
// as a file, so that opening it reports the problem.
std::optional<std::filesystem::path> find_tokenizer_file(const std::filesystem::path& directory);

// As Tokenizer::load(), for a folder with these files, with the same errors.
std::shared_ptr<const Tokenizer> load_tokenizer(const FileFolder& folder);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_FILE_H_
