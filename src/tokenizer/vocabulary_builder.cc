// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/vocabulary_builder.h"

#include <fmt/format.h>

#include "outrider/error.h"

namespace outrider {

TokenEntry& VocabularyBuilder::add(TokenId id, std::string_view piece) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= entries_.size()) entries_.resize(index + 1);
  TokenEntry& entry = entries_[index];
  if (entry.present && entry.piece != piece) {
    throw Error("load tokenizer", place_, "every id once",
                fmt::format("id {} for \"{}\" and \"{}\"", id, entry.piece, piece));
  }
  entry.present = true;
  entry.piece = piece;
  return entry;
}

std::optional<TokenId> VocabularyBuilder::find(std::string_view piece) {
  if (ids_.empty()) {
    for (std::size_t id = 0; id < entries_.size(); ++id) {
      if (entries_[id].present) ids_.emplace(entries_[id].piece, static_cast<TokenId>(id));
    }
  }
  const auto found = ids_.find(std::string(piece));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace outrider
