// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr char32_t kLowEnd = 0x800;

// Up to this length, searching all pairs for the best is faster than the queue; words of ordinary
// text are nearly always shorter. (Both give the same result.)
constexpr std::size_t kShortWord = 24;  // symbols

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

}  // namespace

std::string byte_token_piece(int byte) { return fmt::format("<0x{:02X}>", byte); }

Bpe::Bpe(const Vocabulary& vocabulary)
    : n_tokens_(vocabulary.size()), low_characters_(kLowEnd, kUnmergeable) {
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[static_cast<std::size_t>(byte)] = vocabulary.find_in_model(byte_token_piece(byte));
  }
  const auto is_character = [&](TokenId id) {
    const TokenEntry& entry = vocabulary[id];
    return entry.in_model && !entry.piece.empty() && last_character(entry.piece) == 0;
  };
  std::size_t n_characters = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) n_characters += is_character(id);
  high_characters_ = IntegerMap<std::int32_t>(n_characters);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (is_character(id)) set_character(code_point_at(vocabulary[id].piece, 0).value, id);
  }
}

void Bpe::set_character(char32_t value, std::int32_t symbol) {
  if (value < kLowEnd) {
    low_characters_[value] = symbol;
  } else {
    high_characters_.set(value, symbol);
  }
}

std::int32_t Bpe::symbol_of(char32_t value) const {
  if (value < kLowEnd) return low_characters_[value];
  const std::int32_t* const found = high_characters_.find(value);
  return found == nullptr ? kUnmergeable : *found;
}

Bpe Bpe::by_rank(const Vocabulary& vocabulary, std::span<const MergeRule> merges,
                 BpeOptions options) {
  Bpe bpe(vocabulary);
  bpe.options_ = std::move(options);
  std::vector<NamedMerge> named;
  named.reserve(merges.size());
  for (const MergeRule& rule : merges) {
    const auto rank = static_cast<std::uint32_t>(named.size());
    named.push_back({pair_key(rule.left, rule.right), {rank, rule.result}});
  }
  bpe.set_merges(vocabulary, named);
  bpe.set_byte_symbols();
  return bpe;
}

void Bpe::set_byte_symbols() {
  has_byte_symbols_ = options_.continuing_prefix.empty() && options_.end_suffix.empty();
  std::string spelled;
  for (std::size_t byte = 0; byte < byte_symbols_.size(); ++byte) {
    spelled.clear();
    append_byte_level(std::string(1, static_cast<char>(byte)), spelled);
    byte_symbols_[byte] = symbol_of(code_point_at(spelled, 0).value);
    if (byte_symbols_[byte] < 0) has_byte_symbols_ = false;
  }
}

// A character that begins or ends a piece but is no piece itself gets a symbol of its own.
void Bpe::add_symbols_of_ends(const Vocabulary& vocabulary) {
  constexpr std::size_t kCodePoints = 0x110000;
  std::vector<bool> seen(kCodePoints);
  std::vector<char32_t> missing;
  const auto look_at = [&](char32_t value) {
    if (seen[value]) return;
    seen[value] = true;
    if (symbol_of(value) == kUnmergeable) missing.push_back(value);
  };
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary[id].piece;
    if (!vocabulary[id].in_model || piece.empty()) continue;
    look_at(code_point_at(piece, 0).value);
    look_at(code_point_at(piece, last_character(piece)).value);
  }
  IntegerMap<std::int32_t> high(high_characters_.size() + missing.size());
  high_characters_.for_each([&](std::uint64_t value, std::int32_t id) { high.set(value, id); });
  high_characters_ = std::move(high);
  std::int32_t symbol = n_tokens_;
  for (const char32_t value : missing) set_character(value, symbol++);
}

Bpe Bpe::by_score(const Vocabulary& vocabulary, std::span<const double> scores,
                  BpeOptions options) {
  Bpe bpe(vocabulary);
  bpe.by_score_ = true;
  bpe.options_ = std::move(options);
  bpe.add_symbols_of_ends(vocabulary);

  std::vector<double> levels(scores.begin(), scores.end());
  std::sort(levels.begin(), levels.end(), std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const auto symbol_of_half = [&](std::string_view half) -> std::int32_t {
    if (last_character(half) == 0) return bpe.symbol_of(code_point_at(half, 0).value);
    const TokenId id = vocabulary.find_in_model(half);
    return id == kNoToken ? kUnmergeable : id;
  };
  std::vector<NamedMerge> merges;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary[id].piece;
    if (!vocabulary[id].in_model || piece.empty()) continue;
    if (scores[static_cast<std::size_t>(id)] == kNeverMerged) continue;
    const auto level = std::lower_bound(levels.begin(), levels.end(),
                                        scores[static_cast<std::size_t>(id)], std::greater<>());
    const auto rank = static_cast<std::uint32_t>(level - levels.begin());
    for (std::size_t at = static_cast<std::size_t>(code_point_at(piece, 0).n_bytes);
         at < piece.size(); at += static_cast<std::size_t>(code_point_at(piece, at).n_bytes)) {
      const std::int32_t left = symbol_of_half(piece.substr(0, at));
      if (left == kUnmergeable) continue;
      const std::int32_t right = symbol_of_half(piece.substr(at));
      if (right != kUnmergeable) merges.push_back({pair_key(left, right), {rank, id}});
    }
  }
  bpe.set_merges(vocabulary, merges);
  return bpe;
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right, Scratch& scratch) const {
  if (left < 0 || right < 0) return nullptr;
  ++scratch.n_lookups;
  const Merge* const merge = merges_.find(pair_key(left, right));
  return merge != nullptr && merge->rank != kNeverItself ? merge : nullptr;
}

void Bpe::set_merges(const Vocabulary& vocabulary, const std::vector<NamedMerge>& merges) {
  // A one-character piece is its own symbol. Byte tokens and the unknown token are spelled
  // differently from the text that they represent. If these merge, spellings tell nothing about
  // neighbours, and every pair must count as possible. Real files have no such merges.
  std::vector<bool> is_opaque(static_cast<std::size_t>(n_tokens_));
  for (const TokenId id : byte_tokens_) {
    if (id != kNoToken) is_opaque[static_cast<std::size_t>(id)] = true;
  }
  if (options_.unknown != kNoToken) is_opaque[static_cast<std::size_t>(options_.unknown)] = true;
  cuts_ = options_.continuing_prefix.empty() && options_.end_suffix.empty();
  std::vector<std::uint64_t> neighbours;
  neighbours.reserve(merges.size());
  for (const NamedMerge& one : merges) {
    const auto left = static_cast<std::int32_t>(one.pair >> 32);
    const auto right = static_cast<std::int32_t>(one.pair & 0xFFFFFFFFu);
    std::int32_t last = left;
    std::int32_t first = right;
    if (left < n_tokens_) {
      const std::string& piece = vocabulary[left].piece;
      if (is_opaque[static_cast<std::size_t>(left)]) cuts_ = false;
      last = symbol_of(code_point_at(piece, last_character(piece)).value);
    }
    if (right < n_tokens_) {
      if (is_opaque[static_cast<std::size_t>(right)]) cuts_ = false;
      first = symbol_of(code_point_at(vocabulary[right].piece, 0).value);
    }
    if (last >= 0 && first >= 0) neighbours.push_back(pair_key(last, first));
  }
  std::sort(neighbours.begin(), neighbours.end());
  neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  for (const NamedMerge& one : merges) n_ranks_ = std::max(n_ranks_, one.merge.rank + 1);
  merges_ = IntegerMap<Merge>(merges.size() + neighbours.size());
  for (const std::uint64_t pair : neighbours) merges_.set(pair, {kNeverItself, kNoToken});
  for (const NamedMerge& one : merges) merges_.set(one.pair, one.merge);
}

void Bpe::encode(std::string_view word, const Vocabulary& vocabulary, Scratch& scratch,
                 std::vector<TokenId>& out) const {
  if (options_.ignore_merges ||
      (options_.whole_line_ends && word.find_first_not_of('\n') == std::string_view::npos)) {
    const TokenId whole = vocabulary.find_in_model(word);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  scratch.symbols.clear();
  Word one{word, scratch, out};
  if (by_score_) {
    split_by_score(one);
  } else {
    split_by_rank(one, vocabulary);
  }
  finish_stretch(word.size(), one);
}

void Bpe::encode_bytes(std::string_view bytes, const Vocabulary& vocabulary, Scratch& scratch,
                       std::vector<TokenId>& out) const {
  if (bytes.empty() || bytes.size() > WordCache::kMaxBytes) {
    return encode_new_bytes(bytes, vocabulary, scratch, out);
  }
  const WordCache::Key key = WordCache::key_of(bytes);
  if (scratch.cache.find(key, out)) return;
  const std::size_t before = out.size();
  encode_new_bytes(bytes, vocabulary, scratch, out);
  const std::span<const TokenId> ids = std::span(out).subspan(before);
  if (ids.size() <= WordCache::kMaxTokens) scratch.cache.put(key, ids);
}

void Bpe::encode_new_bytes(std::string_view bytes, const Vocabulary& vocabulary, Scratch& scratch,
                           std::vector<TokenId>& out) const {
  if (!has_byte_symbols_ || options_.ignore_merges) {
    scratch.spelled.clear();
    append_byte_level(bytes, scratch.spelled);
    if (!has_byte_symbols_) return encode(scratch.spelled, vocabulary, scratch, out);
    const TokenId whole = vocabulary.find_in_model(scratch.spelled);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  scratch.symbols.clear();
  Word word{bytes, scratch, out};
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    add_symbol(byte_symbols_[static_cast<unsigned char>(bytes[at])], at, word);
  }
  finish_stretch(bytes.size(), word);
}

// Two characters that are neighbours in no piece never merge: the text on either side forms
// separate words. So an unsplit text (Llama 2's) costs no more than a split one.
void Bpe::add_symbol(std::int32_t id, std::size_t begin, Word& word) const {
  auto& symbols = word.scratch.symbols;
  if (!symbols.empty()) {
    Scratch::Symbol& previous = symbols.back();
    bool cut = cuts_;
    if (previous.id >= 0 && id >= 0) {
      ++word.scratch.n_lookups;
      const Merge* const merge = merges_.find(pair_key(previous.id, id));
      cut = cuts_ && merge == nullptr;
      if (merge != nullptr && merge->rank != kNeverItself) previous.merge = merge;
    }
    if (cut) finish_stretch(begin, word);
  }
  symbols.push_back({id, static_cast<std::uint32_t>(begin), nullptr});
}

void Bpe::finish_stretch(std::size_t end, Word& word) const {
  Scratch& scratch = word.scratch;
  if (scratch.symbols.size() > kShortWord) {
    merge_long(scratch);
  } else if (scratch.symbols.size() > 1) {
    merge_short(scratch);
  }
  const std::size_t n = scratch.symbols.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Scratch::Symbol& symbol = scratch.symbols[i];
    if (symbol.id >= 0 && symbol.id < n_tokens_) {
      word.out.push_back(symbol.id);
      word.behind_unknown = false;
      continue;
    }
    if (!options_.byte_fallback) {
      const bool fused = options_.fuse_unknown && word.behind_unknown;
      if (options_.unknown != kNoToken && !fused) word.out.push_back(options_.unknown);
      word.behind_unknown = true;
      continue;
    }
    const std::size_t symbol_end = i + 1 < n ? scratch.symbols[i + 1].begin : end;
    for (const char byte : word.text.substr(symbol.begin, symbol_end - symbol.begin)) {
      const TokenId id = byte_tokens_[static_cast<unsigned char>(byte)];
      if (id != kNoToken) {
        word.out.push_back(id);
      } else if (options_.unknown != kNoToken) {
        word.out.push_back(options_.unknown);
      }
    }
  }
  scratch.symbols.clear();
}

void Bpe::split_by_score(Word& word) const {
  for (std::size_t at = 0; at < word.text.size();) {
    const CodePoint character = code_point_at(word.text, at);
    add_symbol(symbol_of(character.value), at, word);
    at += static_cast<std::size_t>(character.n_bytes);
  }
}

void Bpe::split_by_rank(Word& word, const Vocabulary& vocabulary) const {
  const bool decorated = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  bool previous_unknown = false;
  std::string decorated_spelling;
  for (std::size_t at = 0; at < word.text.size();) {
    const std::size_t begin = at;
    const CodePoint character = code_point_at(word.text, at);
    at += static_cast<std::size_t>(character.n_bytes);
    std::int32_t id = kUnmergeable;
    std::string_view spelling = word.text.substr(begin, at - begin);
    if (decorated) {
      decorated_spelling.assign(begin > 0 ? options_.continuing_prefix : "").append(spelling);
      if (at == word.text.size()) decorated_spelling.append(options_.end_suffix);
      spelling = decorated_spelling;
      id = vocabulary.find_in_model(spelling);
    } else {
      id = symbol_of(character.value);
    }
    if (id >= 0) {
      add_symbol(id, begin, word);
      previous_unknown = false;
      continue;
    }
    if (options_.byte_fallback && std::all_of(spelling.begin(), spelling.end(), [&](char byte) {
          return byte_tokens_[static_cast<unsigned char>(byte)] != kNoToken;
        })) {
      for (const char byte : spelling) {
        add_symbol(byte_tokens_[static_cast<unsigned char>(byte)], begin, word);
      }
      previous_unknown = false;
      continue;
    }
    if (options_.unknown == kNoToken) continue;
    if (!(previous_unknown && options_.fuse_unknown)) {
      add_symbol(options_.unknown, begin, word);
    }
    previous_unknown = true;
  }
}

void Bpe::merge_short(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  std::size_t n = symbols.size();
  while (n > 1) {
    std::size_t best = n;
    std::uint32_t best_rank = kNeverItself;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const Merge* const merge = symbols[i].merge;
      if (merge != nullptr && merge->rank < best_rank) {
        best = i;
        best_rank = merge->rank;
      }
    }
    if (best == n) break;
    symbols[best].id = symbols[best].merge->result;
    for (std::size_t i = best + 1; i + 1 < n; ++i) symbols[i] = symbols[i + 1];
    --n;
    symbols[best].merge =
        best + 1 < n ? find_merge(symbols[best].id, symbols[best + 1].id, scratch) : nullptr;
    if (best > 0) {
      symbols[best - 1].merge = find_merge(symbols[best - 1].id, symbols[best].id, scratch);
    }
  }
  symbols.resize(n);
}

void Bpe::merge_long(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  const std::size_t n = symbols.size();
  scratch.previous.resize(n);
  scratch.next.resize(n);
  std::uint32_t* const previous = scratch.previous.data();
  std::uint32_t* const next = scratch.next.data();
  scratch.queue.start(n, n_ranks_);
  const auto consider = [&](std::uint32_t left, const Merge* merge) {
    symbols[left].merge = merge;
    if (merge != nullptr) scratch.queue.push({merge->rank, left});
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    previous[i] = i - 1;  // the first entry's is never read
    next[i] = i + 1;
    consider(i, symbols[i].merge);
  }
  MergeQueue::Candidate candidate{};
  while (scratch.queue.pop(candidate)) {
    const std::uint32_t left = candidate.left;
    // A candidate is stale once either side has merged with another symbol.
    const Merge* const merge = symbols[left].merge;
    if (merge == nullptr || merge->rank != candidate.rank) continue;
    const std::uint32_t right = next[left];
    symbols[left].id = merge->result;
    symbols[right] = {kGone, 0, nullptr};
    next[left] = next[right];
    if (left > 0) {
      const std::uint32_t before = previous[left];
      consider(before, find_merge(symbols[before].id, symbols[left].id, scratch));
    }
    if (next[left] < n) {
      previous[next[left]] = left;
      consider(left, find_merge(symbols[left].id, symbols[next[left]].id, scratch));
    } else {
      symbols[left].merge = nullptr;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace outrider
