#include "vocabulary_training/derive_merges.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace outrider {
namespace {

bool has_period(std::string_view text, std::size_t period) {
  return text.substr(period) == text.substr(0, text.size() - period);
}

// Where the split of `piece` behind `at` bytes stands among its splits: ascending, but for the two
// at i and size - i in the order of the header's argument.
std::size_t place_of_split(std::string_view piece, std::size_t at) {
  const std::size_t shorter = std::min(at, piece.size() - at);
  return has_period(piece, piece.size() - shorter) ? piece.size() - at : at;
}

}  // namespace

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

  struct Split {
    std::size_t place;
    MergeRule rule;
  };
  std::vector<MergeRule> merges;
  std::vector<Split> splits;
  for (const TokenId id : by_score) {
    const std::string_view text = piece(id).text;
    splits.clear();
    for (std::size_t at = 0;;) {
      at += static_cast<std::size_t>(code_point_at(text, at).n_bytes);
      if (at >= text.size()) break;
      const auto left = ids.find(text.substr(0, at));
      const auto right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      splits.push_back({place_of_split(text, at), {left->second, right->second, id}});
    }
    std::sort(splits.begin(), splits.end(),
              [](const Split& a, const Split& b) { return a.place < b.place; });
    for (const Split& split : splits) merges.push_back(split.rule);
  }
  return merges;
}

}  // namespace outrider
