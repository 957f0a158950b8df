// SPDX-License-Identifier: Apache-2.0
// Fixtures for the tests of this layer. Only tests include this file.
#ifndef OUTRIDER_VOCABULARY_TRAINING_TEST_TEXTS_H_
#define OUTRIDER_VOCABULARY_TRAINING_TEST_TEXTS_H_

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "outrider/error.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider::test {

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Lines of made-up words, frequent and rare ones; the same for the same arguments. About 40 bytes a
// line.
inline std::string made_up_text(int n_lines, unsigned seed = 1) {
  constexpr const char* kSyllables[] = {"ba", "den", "fi", "go", "lu", "mer",      "no", "pra",
                                        "si", "th",  "um", "ve", "xo", "\xC3\xBC", "ay", "zi"};
  std::mt19937 random(seed);
  std::vector<std::string> words;
  for (int word = 0; word < 200; ++word) {
    std::string spelling;
    for (unsigned n = 1 + random() % 3; n > 0; --n) spelling += kSyllables[random() % 16];
    words.push_back(spelling);
  }
  std::string text;
  for (int line = 0; line < n_lines; ++line) {
    for (unsigned n = 3 + random() % 10; n > 0; --n) {
      text += words[random() % (1 + random() % words.size())] + (random() % 9 == 0 ? ", " : " ");
    }
    text += std::to_string(random() % 1000) + ".\n";
  }
  return text;
}

// The reason why tests that need SentencePiece cannot run; empty if they can.
inline std::string why_no_sentencepiece() {
  try {
    require_sentencepiece();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_VOCABULARY_TRAINING_TEST_TEXTS_H_
