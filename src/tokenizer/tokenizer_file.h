// Which file of a directory holds the tokenizer, and the tokenizer of such files in memory.
// Thread-safe.
#ifndef OUTRIDER_TOKENIZER_TOKENIZER_FILE_H_
#define OUTRIDER_TOKENIZER_TOKENIZER_FILE_H_

#include <filesystem>
#include <memory>
#include <optional>

#include "base/file_folder.h"
#include "outrider/tokenizer.h"

namespace outrider {

// tokenizer.json, or without one a SentencePiece model; none if there is neither. A link that leads
// nowhere is a file: whoever opens it says what is wrong.
std::optional<std::filesystem::path> find_tokenizer_file(const std::filesystem::path& directory);

// Tokenizer::load() of a folder that has these files. Throws as that does.
std::shared_ptr<const Tokenizer> load_tokenizer(const FileFolder& folder);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TOKENIZER_FILE_H_
