// SPDX-License-Identifier: Apache-2.0
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

// The tokens of a side by their text. Special ones are found by spelling, after a byte that begins
// no text.
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
    // Twice: pieces first, then single bytes for which there is no piece.
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
  // From left to right, the longest each time; bytes without a token are left out.
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
  // Byte tokens for which there is also a piece.
  const std::unordered_map<std::string, TokenId>& spare_bytes() const { return spare_bytes_; }

 private:
  std::unordered_map<std::string, TokenId> ids_;
  std::unordered_map<std::string, TokenId> spare_bytes_;
  std::size_t longest_ = 0;
};

// Translates a part of a text, split as by the drafter's tokenizer.
class Reader {
 public:
  // special: the drafter's counterparts of the target's special tokens, if any.
  Reader(const VocabularySide& target, const VocabularySide& drafter, Tokens pieces,
         std::vector<std::string> bytes, std::unordered_map<TokenId, TokenId> special)
      : target_(target.tokenizer),
        drafter_(drafter.tokenizer),
        n_rows_(drafter.n_rows),
        pieces_(std::move(pieces)),
        bytes_(std::move(bytes)),
        special_(std::move(special)),
        target_begin_(begin_of(*target_)),
        drafter_begin_(begin_of(*drafter_)) {
    const std::vector<TokenId> letter = drafter_->encode("x", false);
    puts_blank_ = !letter.empty() && drafter_->has(letter.front()) &&
                  drafter_->bytes(letter.front()).starts_with(' ');
  }

  // Empty if the drafter's tokenizer has tokens that its matrices lack.
  std::vector<TokenId> operator()(std::span<const TokenId> tokens, bool at_start) const {
    std::vector<TokenId> read;
    std::size_t begin = 0;
    if (at_start) {  // each side has its own tokens at a text's start
      read = drafter_begin_;
      if (tokens.size() >= target_begin_.size() &&
          std::equal(target_begin_.begin(), target_begin_.end(), tokens.begin())) {
        begin = target_begin_.size();
      }
    }
    bool begins_text = at_start;
    while (begin < tokens.size()) {
      const auto rest = tokens.subspan(begin);
      if (is_special(rest.front())) {
        const auto own = special_.find(rest.front());
        if (own != special_.end()) read.push_back(own->second);
        begins_text = false;
        ++begin;
        continue;
      }
      const auto end = std::find_if(rest.begin(), rest.end(),
                                    [this](TokenId token) { return is_special(token); });
      const auto part = rest.first(static_cast<std::size_t>(end - rest.begin()));
      add(begins_text ? target_->decode(part) : bytes_of(part), begins_text, read);
      begins_text = false;
      begin += part.size();
    }
    const bool fits =
        std::all_of(read.begin(), read.end(), [this](TokenId token) { return token < n_rows_; });
    return fits ? read : std::vector<TokenId>();
  }

 private:
  // The tokens that a tokenizer prepends to a text.
  static std::vector<TokenId> begin_of(const Tokenizer& tokenizer) {
    std::vector<TokenId> around = tokenizer.encode("", true);
    if (!around.empty() && around.back() == tokenizer.eos_token()) around.pop_back();
    return around;
  }
  bool is_special(TokenId token) const {
    return !target_->has(token) || target_->is_special(token);
  }
  std::string bytes_of(std::span<const TokenId> tokens) const {
    std::string text;
    for (const TokenId token : tokens) text += bytes_[static_cast<std::size_t>(token)];
    return text;
  }
  void add(std::string_view text, bool begins_text, std::vector<TokenId>& read) const {
    if (puts_blank_ && !begins_text) {
      // The tokenizer would treat this part as a separate word. So the rest of a word is spelled,
      // and the blank after it is the one that the tokenizer prepends.
      const std::size_t blank = std::min(text.find(' '), text.size());
      const std::vector<TokenId> spelled = pieces_.spell(text.substr(0, blank));
      read.insert(read.end(), spelled.begin(), spelled.end());
      if (blank == text.size()) return;
      text.remove_prefix(blank + 1);
    }
    const std::vector<TokenId> ids = drafter_->encode(text, false);
    read.insert(read.end(), ids.begin(), ids.end());
  }

  std::shared_ptr<const Tokenizer> target_;
  std::shared_ptr<const Tokenizer> drafter_;
  int n_rows_;
  Tokens pieces_;                   // of the drafter
  std::vector<std::string> bytes_;  // (target's rows)
  std::unordered_map<TokenId, TokenId> special_;
  std::vector<TokenId> target_begin_;
  std::vector<TokenId> drafter_begin_;
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
  std::vector<std::string> bytes(static_cast<std::size_t>(target.n_rows));
  std::unordered_map<TokenId, TokenId> special;
  translation.begins_word.resize(static_cast<std::size_t>(target.n_rows));
  for (TokenId id = 0; id < target.n_rows; ++id) {
    const auto row = static_cast<std::size_t>(id);
    std::vector<TokenId>& spelled = translation.spelled[row];
    if (target.tokenizer->has(id)) {
      bytes[row] = target.tokenizer->bytes(id);
      if (target.tokenizer->is_special(id) && !spelled.empty()) special[id] = spelled.front();
    }
    translation.begins_word[row] = bytes[row].starts_with(' ');
    if (spelled.empty()) spelled = read.spell(bytes[row]);
    if (spelled.empty()) spelled = {blank};
  }
  // Shared, since copies of a function copy its contents.
  const auto reader =
      std::make_shared<const Reader>(target, drafter, read, std::move(bytes), std::move(special));
  translation.read = [reader](std::span<const TokenId> tokens, bool at_start) {
    return (*reader)(tokens, at_start);
  };
  return translation;
}

int n_shared(const VocabularyTranslation& translation) {
  return static_cast<int>(std::count_if(translation.shared.begin(), translation.shared.end(),
                                        [](TokenId token) { return token != kNoToken; }));
}

}  // namespace outrider
