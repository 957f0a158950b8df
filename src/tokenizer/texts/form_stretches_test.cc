// SPDX-License-Identifier: Apache-2.0
// Compares normal forms computed stretch by stretch with those of whole texts, and checks the
// reported edits.
#include "tokenizer/texts/form_stretches.h"

#include <gtest/gtest.h>

#include <random>

#include "tokenizer/texts/unicode_form.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr UnicodeForm kForms[] = {{true, false}, {false, false}, {true, true}, {false, true}};

std::string as_a_whole(const UnicodeForm& form, std::string text) {
  bring_to_form(form, text);
  return text;
}

void append(char32_t value, std::string& text) {
  if (value < 0xD800 || value > 0xDFFF) append_utf8(value, text);
}

// Alone, and between characters that it might join.
TEST(FormStretches, EveryCharacter) {
  for (const UnicodeForm& form : kForms) {
    for (char32_t value = 0x80; value < 0x110000; value += value < 0x31000 ? 1 : 257) {
      std::string alone;
      append(value, alone);
      const std::string between = "e" + alone + "\u0323\u0301" + alone + "\u1161\u11a8";
      for (const std::string& text : {alone, between}) {
        std::string formed = text;
        bring_stretches_to_form(form, formed, nullptr);
        ASSERT_EQ(formed, as_a_whole(form, text)) << static_cast<std::uint32_t>(value);
      }
    }
  }
}

// Characters that are known to change, among others.
char32_t random_character(std::mt19937& random) {
  constexpr char32_t kJoining[] = {'e',     'A',    0x301,  0x323,   0x327,  0x1100, 0x1161,
                                   0x11A8,  0xAC00, 0xAC01, 0x9BE,   0x9C7,  0x93C,  0x915,
                                   0xE48,   0x5B4,  0x344,  0x1E9B,  0x212B, 0xFB2C, 0xFDFA,
                                   0x1D15E, 0x8CA,  0x32FF, 0x11935, 0x11930};
  switch (random() % 4) {
    case 0:
      return 0x20 + random() % 0x5F;
    case 1:
      return 0x80 + random() % 0x2F80;
    default:
      return kJoining[random() % std::size(kJoining)];
  }
}

TEST(FormStretches, StretchByStretchAsAWhole) {
  std::mt19937 random(6);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random() % 20; i > 0; --i) append(random_character(random), text);
    for (const UnicodeForm& form : kForms) {
      std::string formed = text;
      bring_stretches_to_form(form, formed, nullptr);
      ASSERT_EQ(formed, as_a_whole(form, text)) << text;
      TextEdits edits;
      std::string told = text;
      bring_stretches_to_form(form, told, &edits);
      ASSERT_EQ(told, formed) << text;
      // Characters reported as unchanged are unchanged.
      for (std::size_t at = 0; at < text.size();) {
        const auto n_bytes = static_cast<std::size_t>(code_point_at(text, at).n_bytes);
        const TextRange after = edits.to_after({at, at + n_bytes});
        const TextRange back = after.begin < after.end ? edits.to_before(after) : after;
        if (after.end - after.begin == n_bytes && back == TextRange{at, at + n_bytes}) {
          const std::string before = text.substr(at, n_bytes);
          const std::string became = told.substr(after.begin, n_bytes);
          EXPECT_TRUE(before == became || as_a_whole(form, before) == became) << text;
        }
        at += n_bytes;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
