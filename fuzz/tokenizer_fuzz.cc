// Any bytes as a tokenizer.json: either an outrider::Error, or a tokenizer that turns text into ids
// of its vocabulary and ids into well-formed text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace {

void use(const outrider::Tokenizer& tokenizer) {
  using outrider::TokenId;
  constexpr std::string_view kTexts[] = {"", "a", " The river's  1234 caf\xC3\xA9s\r\n<s> ",
                                         "\xE2\x96\x81\xF0\x9F\x91\x8D\xFF\xE3\x81",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  for (const std::string_view text : kTexts) {
    try {
      for (const TokenId id : tokenizer.encode(text, true)) {
        if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
      }
    } catch (const outrider::Error&) {  // a pattern may give up
    }
  }
  outrider::StreamingDecoder stream(tokenizer, true);
  std::vector<TokenId> ids;
  std::string text;
  try {
    for (TokenId id = 0; id < tokenizer.vocabulary_size() && ids.size() < 300; ++id) {
      try {
        static_cast<void>(tokenizer.piece(id));
      } catch (const outrider::Error&) {  // a hole
        continue;
      }
      ids.push_back(id);
      const std::string piece = stream.push(id);
      if (!outrider::is_valid_utf8(piece)) std::abort();
      text += piece;
    }
    text += stream.finish();
    if (text != tokenizer.decode(ids, true)) std::abort();
  } catch (const outrider::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    use(outrider::PipelineTokenizer(outrider::parse_tokenizer_json(bytes, "fuzz")));
  } catch (const outrider::Error&) {
  }
  return 0;
}
