#include "tokenizer/translate_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace outrider {
namespace {

// The tokens of a side by what they say. Special ones go by their spelling, behind a byte that no
// text begins with.
constexpr char kSpecial = '\xff';

std::string meaning_of(const Tokenizer& tokenizer, TokenId id) {
  if (!tokenizer.is_special(id)) return tokenizer.bytes(id);
  return kSpecial + std::string(tokenizer.piece(id));
}

bool spells_a_byte(std::string_view piece) { return piece.size() == 6 && piece.starts_with("<0x"); }

class Tokens {
 public:
  explicit Tokens(const VocabularySide& side) {
    const int n_tokens = std::min(side.tokenizer->vocabulary_size(), side.n_rows);
    // Twice: pieces first, then spellings of single bytes where no piece says the same.
    for (const bool bytes_now : {false, true}) {
      for (TokenId id = 0; id < n_tokens; ++id) {
        if (!side.tokenizer->has(id)) continue;
        if (spells_a_byte(side.tokenizer->piece(id)) != bytes_now) continue;
        const std::string meaning = meaning_of(*side.tokenizer, id);
        if (meaning.empty()) continue;
        const bool is_new = ids_.try_emplace(meaning, id).second;
        if (bytes_now && !is_new) spare_bytes_.try_emplace(meaning, id);
        longest_ = std::max(longest_, meaning.size());
      }
    }
  }
  TokenId find(const std::string& meaning) const {
    const auto at = ids_.find(meaning);
    return at == ids_.end() ? kNoToken : at->second;
  }
  // Left to right, the longest each time; bytes that nothing spells are left out.
  std::vector<TokenId> spell(std::string_view bytes) const {
    std::vector<TokenId> spelled;
    while (!bytes.empty()) {
      std::size_t n = std::min(bytes.size(), longest_);
      TokenId id = kNoToken;
      for (; n > 0; --n) {
        id = find(std::string(bytes.substr(0, n)));
        if (id != kNoToken) break;
      }
      if (id != kNoToken) spelled.push_back(id);
      bytes.remove_prefix(std::max<std::size_t>(n, 1));
    }
    return spelled;
  }
  const std::unordered_map<std::string, TokenId>& ids() const { return ids_; }
  // Spellings of single bytes that a piece says as well.
  const std::unordered_map<std::string, TokenId>& spare_bytes() const { return spare_bytes_; }

 private:
  std::unordered_map<std::string, TokenId> ids_;
  std::unordered_map<std::string, TokenId> spare_bytes_;
  std::size_t longest_ = 0;
};

// Reads a prompt as the drafter's tokenizer cuts it.
class Reader {
 public:
  Reader(std::shared_ptr<const Tokenizer> target, std::shared_ptr<const Tokenizer> drafter,
         int n_rows)
      : target_(std::move(target)), drafter_(std::move(drafter)), n_rows_(n_rows) {
    const std::vector<TokenId> letter = drafter_->encode("x", false);
    puts_blank_ = !letter.empty() && drafter_->has(letter.front()) &&
                  drafter_->bytes(letter.front()).starts_with(' ');
  }

  // Empty where the tokens are better read one by one: what begins within a word, and what the
  // drafter's tokenizer knows and its matrices do not.
  std::vector<TokenId> operator()(std::span<const TokenId> tokens, bool at_start) const {
    if (!std::all_of(tokens.begin(), tokens.end(),
                     [this](TokenId token) { return target_->has(token); })) {
      return {};
    }
    std::string text;
    if (at_start) {
      text = target_->decode(tokens);
    } else {
      for (const TokenId token : tokens) text += target_->bytes(token);
      if (!text.starts_with(' ')) return {};
      if (puts_blank_) text.erase(0, 1);
    }
    std::vector<TokenId> read = drafter_->encode(text, at_start);
    if (at_start && !read.empty() && read.back() == drafter_->eos_token()) read.pop_back();
    if (std::any_of(read.begin(), read.end(), [this](TokenId token) { return token >= n_rows_; })) {
      return {};
    }
    return read;
  }

 private:
  std::shared_ptr<const Tokenizer> target_;
  std::shared_ptr<const Tokenizer> drafter_;
  int n_rows_;
  bool puts_blank_ = false;  // before a text, so that its first word is like any other
};

}  // namespace

VocabularyTranslation translate_vocabulary(const VocabularySide& target,
                                           const VocabularySide& drafter) {
  const Tokens said(target);
  const Tokens read(drafter);
  VocabularyTranslation translation;
  translation.shared.assign(static_cast<std::size_t>(drafter.n_rows), kNoToken);
  translation.spelled.resize(static_cast<std::size_t>(target.n_rows));
  const auto share = [&](TokenId of_target, TokenId of_drafter) {
    translation.spelled[static_cast<std::size_t>(of_target)] = {of_drafter};
    translation.shared[static_cast<std::size_t>(of_drafter)] = of_target;
  };
  const auto is_end = [](const VocabularySide& side, TokenId id) {
    return std::find(side.ends.begin(), side.ends.end(), id) != side.ends.end();
  };
  for (const auto& [meaning, id] : said.ids()) {
    const TokenId other = read.find(meaning);
    if (other != kNoToken && is_end(target, id) == is_end(drafter, other)) share(id, other);
  }
  for (const auto& [meaning, id] : said.spare_bytes()) {
    const auto other = read.spare_bytes().find(meaning);
    if (other != read.spare_bytes().end()) share(id, other->second);
  }
  if (!target.ends.empty() && !drafter.ends.empty()) {
    const TokenId end = target.ends.front();
    const TokenId other = drafter.ends.front();
    if (end < target.n_rows && other < drafter.n_rows &&
        translation.shared[static_cast<std::size_t>(other)] == kNoToken &&
        translation.spelled[static_cast<std::size_t>(end)].empty()) {
      share(end, other);
    }
  }
  const TokenId blank = std::max(read.find(" "), TokenId{0});
  for (TokenId id = 0; id < target.n_rows; ++id) {
    std::vector<TokenId>& spelled = translation.spelled[static_cast<std::size_t>(id)];
    if (!spelled.empty()) continue;
    if (target.tokenizer->has(id)) spelled = read.spell(target.tokenizer->bytes(id));
    if (spelled.empty()) spelled = {blank};
  }
  translation.read = Reader(target.tokenizer, drafter.tokenizer, drafter.n_rows);
  return translation;
}

int n_shared(const VocabularyTranslation& translation) {
  return static_cast<int>(std::count_if(translation.shared.begin(), translation.shared.end(),
                                        [](TokenId token) { return token != kNoToken; }));
}

}  // namespace outrider
