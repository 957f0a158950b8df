// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/vocabulary.h"

#include <bit>
#include <functional>
#include <utility>

#include "outrider/error.h"

namespace outrider {

namespace {

std::uint32_t hash_of(std::string_view piece) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(piece));
}

}  // namespace

Vocabulary::Vocabulary(std::vector<TokenEntry> entries, std::string_view object)
    : entries_(std::move(entries)), slots_(std::bit_ceil(2 * entries_.size() + 1)) {
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    const TokenEntry& entry = entries_[id];
    if (!entry.present) continue;
    const std::uint32_t hash = hash_of(entry.piece);
    Slot& slot = slots_[find_slot(entry.piece, hash)];
    if (slot.id != kNoToken) {
      throw Error("load tokenizer", object, "every token once",
                  "\"" + entry.piece + "\" with ids " + std::to_string(slot.id) + " and " +
                      std::to_string(id));
    }
    slot = {hash, static_cast<TokenId>(id)};
  }
}

std::size_t Vocabulary::find_slot(std::string_view piece, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id != kNoToken &&
         (slots_[at].hash != hash || (*this)[slots_[at].id].piece != piece)) {
    at = (at + 1) & mask;
  }
  return at;
}

TokenId Vocabulary::find(std::string_view piece) const {
  return slots_[find_slot(piece, hash_of(piece))].id;
}

TokenId Vocabulary::find_in_model(std::string_view piece) const {
  const TokenId id = find(piece);
  return id != kNoToken && (*this)[id].in_model ? id : kNoToken;
}

}  // namespace outrider
