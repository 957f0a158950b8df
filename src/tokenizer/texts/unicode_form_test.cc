// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/unicode_form.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

struct Case {
  const char* text;
  const char* nfc;
  const char* nfd;
  const char* nfkc;
  const char* nfkd;
};

// As printed by Hugging Face's tokenizers 0.23.
constexpr Case kCases[] = {
    {"e\u0301 \u212B \u1112\u1161\u11AB", "\u00E9 \u00C5 \uD55C",
     "e\u0301 A\u030A \u1112\u1161\u11AB", "\u00E9 \u00C5 \uD55C",
     "e\u0301 A\u030A \u1112\u1161\u11AB"},
    {"q\u0307\u0323", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307"},
    // U+32FF is from Unicode 12.1, its neighbours from 1.1.
    {"\u32FE\u32FF\u3300", "\u32FE\u32FF\u3300", "\u32FE\u32FF\u3300",
     "\u30F2\u32FF\u30A2\u30D1\u30FC\u30C8", "\u30F2\u32FF\u30A2\u30CF\u309A\u30FC\u30C8"},
    // Marks from Unicode 14 keep their places, and older ones are not moved across them.
    {"a\u0301\u08CA\u0323", "\u00E1\u08CA\u0323", "a\u0301\u08CA\u0323", "\u00E1\u08CA\u0323",
     "a\u0301\u08CA\u0323"},
    {"q\u08CA\u0323\u0301", "q\u08CA\u0323\u0301", "q\u08CA\u0323\u0301", "q\u08CA\u0323\u0301",
     "q\u08CA\u0323\u0301"},
    // Two that compose since Unicode 13.
    {"\U00011935\U00011930", "\U00011935\U00011930", "\U00011935\U00011930", "\U00011935\U00011930",
     "\U00011935\U00011930"},
    {"\uA7F2\uFB01\uA7F4\u00BD", "\uA7F2\uFB01\uA7F4\u00BD", "\uA7F2\uFB01\uA7F4\u00BD",
     "\uA7F2fi\uA7F4"
     "1\u20442",
     "\uA7F2fi\uA7F4"
     "1\u20442"},
};

TEST(UnicodeForm, IsThatOfUnicode9) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.text);
    const auto formed = [&](bool compose, bool compatibility) {
      std::string text = one.text;
      bring_to_form({compose, compatibility}, text);
      return text;
    };
    EXPECT_EQ(formed(true, false), one.nfc);
    EXPECT_EQ(formed(false, false), one.nfd);
    EXPECT_EQ(formed(true, true), one.nfkc);
    EXPECT_EQ(formed(false, true), one.nfkd);
  }
}

}  // namespace
}  // namespace outrider
