// SPDX-License-Identifier: Apache-2.0
// The byte-level alphabet of GPT-2: a visible character for every byte, so that a vocabulary file
// can hold arbitrary bytes as text. Printable ASCII and Latin-1 bytes stand for themselves; the
// other 68 are U+0100, U+0101, ... in byte order. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_TEXTS_BYTE_LEVEL_H_
#define OUTRIDER_TOKENIZER_TEXTS_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace outrider {

// Appends one character per byte of `bytes`.
void append_byte_level(std::string_view bytes, std::string& out);

// Appends the bytes of `spelling`; returns false, and appends nothing, if some character is outside
// the alphabet.
bool append_bytes_of(std::string_view spelling, std::string& out);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_BYTE_LEVEL_H_
