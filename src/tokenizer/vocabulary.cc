#include "tokenizer/vocabulary.h"

#include <utility>

#include "outrider/error.h"

namespace outrider {

Vocabulary::Vocabulary(std::vector<TokenEntry> entries, std::string_view object)
    : entries_(std::move(entries)) {
  ids_.reserve(entries_.size());
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    const TokenEntry& entry = entries_[id];
    if (!entry.present) continue;
    const auto [found, is_new] = ids_.emplace(entry.piece, static_cast<TokenId>(id));
    if (!is_new) {
      throw Error("load tokenizer", object, "every token once",
                  "\"" + entry.piece + "\" with ids " + std::to_string(found->second) + " and " +
                      std::to_string(id));
    }
  }
}

TokenId Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? kNoToken : found->second;
}

TokenId Vocabulary::find_in_model(std::string_view piece) const {
  const TokenId id = find(piece);
  return id != kNoToken && (*this)[id].in_model ? id : kNoToken;
}

}  // namespace outrider
