// SPDX-License-Identifier: Apache-2.0
#include "outrider/tokenizer.h"

namespace outrider {

std::string Tokenizer::decode(std::span<const TokenId> ids, bool keep_special) const {
  const std::unique_ptr<Decoding> decoding = start_decoding(keep_special);
  std::string text;
  for (const TokenId id : ids) decoding->push(id, text);
  decoding->finish(text);
  return text;
}

StreamingDecoder::StreamingDecoder(const Tokenizer& tokenizer, bool keep_special)
    : decoding_(tokenizer.start_decoding(keep_special)) {}

std::string StreamingDecoder::push(TokenId id) {
  std::string text;
  decoding_->push(id, text);
  return text;
}

std::string StreamingDecoder::finish() {
  std::string text;
  decoding_->finish(text);
  return text;
}

}  // namespace outrider
