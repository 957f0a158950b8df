// The byte-level alphabet of GPT-2: every byte has a visible character to stand for it, so that a
// vocabulary file can hold arbitrary bytes as text. Printable ASCII and Latin-1 bytes stand for
// themselves; the other 68 are U+0100, U+0101, ... in byte order. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_BYTE_LEVEL_H_
#define OUTRIDER_TOKENIZER_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace outrider {

// Appends one character per byte of `bytes`.
void append_byte_level(std::string_view bytes, std::string& out);

// Appends the bytes that `spelling` stands for; false (and nothing appended) if some character of
// it is outside the alphabet.
bool append_bytes_of(std::string_view spelling, std::string& out);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_BYTE_LEVEL_H_
