// SPDX-License-Identifier: Apache-2.0
// Checks of a tokenizer for fuzz targets. Texts must encode to ids of its vocabulary, and ids
// decode to well-formed text, piecewise as at once. Aborts otherwise.
#ifndef OUTRIDER_FUZZ_USE_TOKENIZER_H_
#define OUTRIDER_FUZZ_USE_TOKENIZER_H_

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tokenizer/texts/utf8.h"

namespace outrider::fuzz {

inline void use_tokenizer(const Tokenizer& tokenizer) {
  constexpr std::string_view kTexts[] = {"", "a", " The river's  1234 caf\xC3\xA9s\r\n<s> ",
                                         "\xE2\x96\x81\xF0\x9F\x91\x8D\xFF\xE3\x81",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  for (const std::string_view text : kTexts) {
    try {
      for (const TokenId id : tokenizer.encode(text, true)) {
        if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
      }
    } catch (const Error&) {  // the pattern may hit its limit
    }
  }
  StreamingDecoder stream(tokenizer, true);
  std::vector<TokenId> ids;
  std::string text;
  try {
    for (TokenId id = 0; id < tokenizer.vocabulary_size() && ids.size() < 300; ++id) {
      try {
        static_cast<void>(tokenizer.piece(id));
      } catch (const Error&) {  // an id without a token
        continue;
      }
      ids.push_back(id);
      const std::string piece = stream.push(id);
      if (!is_valid_utf8(piece)) std::abort();
      text += piece;
    }
    text += stream.finish();
    if (text != tokenizer.decode(ids, true)) std::abort();
  } catch (const Error&) {
  }
}

}  // namespace outrider::fuzz

#endif  // OUTRIDER_FUZZ_USE_TOKENIZER_H_
