// Which file of a directory holds the tokenizer. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_TOKENIZER_FILE_H_
#define OUTRIDER_TOKENIZER_TOKENIZER_FILE_H_

#include <filesystem>
#include <optional>

namespace outrider {

// tokenizer.json, or without one a SentencePiece model; none if there is neither. A link that leads
// nowhere is a file: whoever opens it says what is wrong.
std::optional<std::filesystem::path> find_tokenizer_file(const std::filesystem::path& directory);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TOKENIZER_FILE_H_
