// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/same_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "outrider/error.h"

namespace outrider {

void require_same_vocabulary(const Tokenizer& expected, const Tokenizer& other,
                             std::string_view operation, std::string_view object,
                             std::string_view advice) {
  const auto piece = [](const Tokenizer& of, TokenId id) {
    return of.has(id) ? fmt::format("\"{}\"", of.piece(id)) : std::string("missing");
  };
  const int n_shared = std::min(expected.vocabulary_size(), other.vocabulary_size());
  for (TokenId id = 0; id < n_shared; ++id) {
    const std::string wanted = piece(expected, id);
    const std::string got = piece(other, id);
    if (wanted != got) {
      throw Error(operation, object,
                  fmt::format("the target's vocabulary (token {} is {})", id, wanted),
                  fmt::format("{}{}", got, advice));
    }
  }
  if (expected.vocabulary_size() != other.vocabulary_size()) {
    throw Error(operation, object,
                fmt::format("the target's vocabulary of {} tokens", expected.vocabulary_size()),
                fmt::format("{}{}", other.vocabulary_size(), advice));
  }
}

VocabularyId vocabulary_id(const Tokenizer& tokenizer) {
  VocabularyId id{.fingerprint = checksum({}), .size = tokenizer.vocabulary_size()};
  for (TokenId token = 0; token < id.size; ++token) {
    // The first byte distinguishes an unused id from a token with an empty spelling.
    std::string spelling(1, tokenizer.has(token) ? '\1' : '\0');
    if (tokenizer.has(token)) spelling += tokenizer.piece(token);
    id.fingerprint = checksum(std::as_bytes(std::span(std::string_view(spelling))), id.fingerprint);
  }
  return id;
}

}  // namespace outrider
