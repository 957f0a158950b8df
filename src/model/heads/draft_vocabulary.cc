// SPDX-License-Identifier: Apache-2.0
#include "model/heads/draft_vocabulary.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "outrider/error.h"

namespace outrider {

std::vector<TokenId> read_draft_vocabulary(const TensorSource& source, int n_tokens,
                                           std::string_view operation) {
  std::vector<TokenId> ids;
  const TensorView* offsets = source.find("d2t");
  if (offsets == nullptr) {
    for (TokenId id = 0; id < n_tokens; ++id) ids.push_back(id);
    return ids;
  }
  if (offsets->type != ElementType::i64 || offsets->shape.size() != 1 || offsets->shape[0] < 1 ||
      offsets->shape[0] > n_tokens) {
    throw Error(operation, source.description(),
                fmt::format("tensor d2t of 1 to {} i64 numbers", n_tokens),
                fmt::format("{} of {}", offsets->n_elements(), name_of(offsets->type)));
  }
  std::vector<bool> said(static_cast<std::size_t>(n_tokens));
  for (std::int64_t i = 0; i < offsets->shape[0]; ++i) {
    std::int64_t offset = 0;
    std::memcpy(&offset, offsets->data.data() + static_cast<std::size_t>(i) * sizeof offset,
                sizeof offset);
    // Compared before adding: the sum of the file's numbers may overflow.
    if (offset < -i || offset >= n_tokens - i || said[static_cast<std::size_t>(i + offset)]) {
      throw Error(operation, source.description(),
                  fmt::format("d2t to give each draft id another token below {}", n_tokens),
                  fmt::format("{} at {}", offset, i));
    }
    said[static_cast<std::size_t>(i + offset)] = true;
    ids.push_back(static_cast<TokenId>(i + offset));
  }
  return ids;
}

}  // namespace outrider
