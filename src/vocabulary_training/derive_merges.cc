// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/derive_merges.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "tokenizer/texts/utf8.h"

namespace outrider {

std::vector<MergeRule> derive_merges(std::span<const LearntPiece> pieces) {
  std::unordered_map<std::string_view, TokenId> ids;
  std::vector<TokenId> by_score;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    if (pieces[index].kind != PieceKind::kText) continue;
    const auto id = static_cast<TokenId>(index);
    ids.emplace(pieces[index].text, id);
    by_score.push_back(id);
  }
  const auto piece = [pieces](TokenId id) -> const LearntPiece& {
    return pieces[static_cast<std::size_t>(id)];
  };
  std::stable_sort(by_score.begin(), by_score.end(),
                   [&](TokenId a, TokenId b) { return piece(a).score > piece(b).score; });

  std::vector<MergeRule> merges;
  for (const TokenId id : by_score) {
    const std::string_view text = piece(id).text;
    for (std::size_t at = 0;;) {
      at += static_cast<std::size_t>(code_point_at(text, at).n_bytes);
      if (at >= text.size()) break;
      const auto left = ids.find(text.substr(0, at));
      const auto right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({left->second, right->second, id});
    }
  }
  return merges;
}

}  // namespace outrider
