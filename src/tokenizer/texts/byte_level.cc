// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/byte_level.h"

#include <array>
#include <cstdint>

#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr int kFirstSubstitute = 0x100;
constexpr int kAlphabetEnd = kFirstSubstitute + 68;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  struct Spelling {
    std::array<char, 2> text;
    std::uint8_t n_bytes;
  };
  std::array<Spelling, 256> character_of{};          // as UTF-8; all are below U+0800
  std::array<std::int16_t, kAlphabetEnd> byte_of{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte_of) byte = -1;
  int next = kFirstSubstitute;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = stands_for_itself(byte) ? byte : next++;
    alphabet.byte_of[character] = static_cast<std::int16_t>(byte);
    if (character < 0x80) {
      alphabet.character_of[byte] = {{static_cast<char>(character), 0}, 1};
    } else {
      alphabet.character_of[byte] = {
          {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))},
          2};
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

void append_byte_level(std::string_view bytes, std::string& out) {
  const std::size_t before = out.size();
  out.resize(before + 2 * bytes.size());
  char* to = out.data() + before;
  for (const char byte : bytes) {
    const auto& spelling = kAlphabet.character_of[static_cast<unsigned char>(byte)];
    to[0] = spelling.text[0];
    to[1] = spelling.text[1];
    to += spelling.n_bytes;
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
}

bool append_bytes_of(std::string_view spelling, std::string& out) {
  const std::size_t before = out.size();
  for (std::size_t at = 0; at < spelling.size();) {
    const CodePoint character = code_point_at(spelling, at);
    at += static_cast<std::size_t>(character.n_bytes);
    const int byte = character.value < kAlphabetEnd ? kAlphabet.byte_of[character.value] : -1;
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out.push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace outrider
