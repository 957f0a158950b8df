#include "tokenizer/same_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "outrider/error.h"

namespace outrider {

void require_same_vocabulary(const Tokenizer& expected, const Tokenizer& other,
                             std::string_view operation, std::string_view object) {
  const auto piece = [](const Tokenizer& of, TokenId id) {
    return of.has(id) ? fmt::format("\"{}\"", of.piece(id)) : std::string("missing");
  };
  const int n_shared = std::min(expected.vocabulary_size(), other.vocabulary_size());
  for (TokenId id = 0; id < n_shared; ++id) {
    const std::string wanted = piece(expected, id);
    const std::string got = piece(other, id);
    if (wanted != got) {
      throw Error(operation, object,
                  fmt::format("the target's vocabulary (token {} is {})", id, wanted), got);
    }
  }
  if (expected.vocabulary_size() != other.vocabulary_size()) {
    throw Error(operation, object,
                fmt::format("the target's vocabulary of {} tokens", expected.vocabulary_size()),
                fmt::format("{}", other.vocabulary_size()));
  }
}

}  // namespace outrider
