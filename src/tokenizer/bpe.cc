#include "tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tokenizer/utf8.h"

namespace outrider {
namespace {

constexpr char32_t kLowEnd = 0x800;

// Up to here finding the best pair by looking at all of them beats the queue; words of running text
// are nearly always shorter. (The two agree, so this is a matter of speed alone.)
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
  std::size_t n_high = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) n_high += vocabulary[id].piece.size() >= 3;
  high_characters_ = IntegerMap<std::int32_t>(n_high);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenEntry& entry = vocabulary[id];
    if (!entry.in_model || entry.piece.empty() || last_character(entry.piece) != 0) continue;
    set_character(code_point_at(entry.piece, 0).value, id);
  }
}

void Bpe::set_character(char32_t value, std::int32_t id) {
  if (value < kLowEnd) {
    low_characters_[value] = id;
  } else {
    high_characters_.set(value, id);
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
  bpe.merges_ = IntegerMap<Merge>(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const MergeRule& rule = merges[rank];
    bpe.merges_.set(pair_key(rule.left, rule.right),
                    Merge{static_cast<std::uint32_t>(rank), rule.result});
  }
  return bpe;
}

Bpe Bpe::by_score(const Vocabulary& vocabulary, std::span<const double> scores, TokenId unknown) {
  Bpe bpe(vocabulary);
  bpe.by_score_ = true;
  bpe.options_.unknown = unknown;

  std::vector<double> levels(scores.begin(), scores.end());
  std::sort(levels.begin(), levels.end(), std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());

  // Characters that are in pieces without being one get symbols of their own.
  std::size_t n_characters = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) n_characters += vocabulary[id].piece.size();
  IntegerMap<std::int32_t> characters(n_characters);
  std::int32_t n_symbols = bpe.n_tokens_;
  const auto symbol_of_half = [&](std::string_view half) -> std::int32_t {
    if (last_character(half) != 0) {
      const TokenId id = vocabulary.find_in_model(half);
      return id == kNoToken ? kUnmergeable : id;
    }
    const char32_t value = code_point_at(half, 0).value;
    const std::int32_t symbol = bpe.symbol_of(value);
    if (symbol != kUnmergeable) return symbol;
    if (const std::int32_t* const known = characters.find(value)) return *known;
    characters.set(value, n_symbols);
    return n_symbols++;
  };
  struct Found {
    std::uint64_t pair;
    Merge merge;
  };
  std::vector<Found> found;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenEntry& entry = vocabulary[id];
    if (!entry.in_model) continue;
    const std::string_view piece = entry.piece;
    const auto rank = static_cast<std::uint32_t>(
        std::lower_bound(levels.begin(), levels.end(), scores[static_cast<std::size_t>(id)],
                         std::greater<>()) -
        levels.begin());
    for (std::size_t at = 0; at < piece.size();) {
      at += static_cast<std::size_t>(code_point_at(piece, at).n_bytes);
      if (at >= piece.size()) break;
      const std::int32_t left = symbol_of_half(piece.substr(0, at));
      const std::int32_t right = symbol_of_half(piece.substr(at));
      if (left == kUnmergeable || right == kUnmergeable) continue;
      found.push_back({pair_key(left, right), {rank, id}});
    }
  }
  bpe.merges_ = IntegerMap<Merge>(found.size());
  for (const Found& one : found) bpe.merges_.set(one.pair, one.merge);

  // The new symbols join the character table. Its size was chosen for pieces only: rebuild it.
  if (n_symbols > bpe.n_tokens_) {
    IntegerMap<std::int32_t> high(n_characters);
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const std::string_view piece = vocabulary[id].piece;
      for (std::size_t at = 0; at < piece.size();) {
        const CodePoint character = code_point_at(piece, at);
        at += static_cast<std::size_t>(character.n_bytes);
        const std::int32_t* const added = characters.find(character.value);
        const std::int32_t symbol = added ? *added : bpe.symbol_of(character.value);
        if (symbol == kUnmergeable) continue;
        if (character.value < kLowEnd) {
          bpe.low_characters_[character.value] = symbol;
        } else {
          high.set(character.value, symbol);
        }
      }
    }
    bpe.high_characters_ = std::move(high);
  }
  return bpe;
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right, Scratch& scratch) const {
  if (left < 0 || right < 0) return nullptr;
  ++scratch.n_lookups;
  return merges_.find(pair_key(left, right));
}

void Bpe::encode(std::string_view word, const Vocabulary& vocabulary, Scratch& scratch,
                 std::vector<TokenId>& out) const {
  if (options_.ignore_merges) {
    const TokenId whole = vocabulary.find_in_model(word);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  scratch.symbols.clear();
  if (by_score_) {
    split_by_score(word, scratch);
  } else {
    split_by_rank(word, vocabulary, scratch);
  }
  if (scratch.symbols.size() <= kShortWord) {
    merge_short(scratch);
  } else {
    merge_long(scratch);
  }
  const auto& symbols = scratch.symbols;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].id >= 0 && symbols[i].id < n_tokens_) {
      out.push_back(symbols[i].id);
      continue;
    }
    const std::size_t end = i + 1 < symbols.size() ? symbols[i + 1].begin : word.size();
    for (const char byte : word.substr(symbols[i].begin, end - symbols[i].begin)) {
      const TokenId id = byte_tokens_[static_cast<unsigned char>(byte)];
      if (id != kNoToken) {
        out.push_back(id);
      } else if (options_.unknown != kNoToken) {
        out.push_back(options_.unknown);
      }
    }
  }
}

void Bpe::split_by_score(std::string_view word, Scratch& scratch) const {
  for (std::size_t at = 0; at < word.size();) {
    const CodePoint character = code_point_at(word, at);
    scratch.symbols.push_back({symbol_of(character.value), static_cast<std::uint32_t>(at)});
    at += static_cast<std::size_t>(character.n_bytes);
  }
}

void Bpe::split_by_rank(std::string_view word, const Vocabulary& vocabulary,
                        Scratch& scratch) const {
  const bool decorated = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  bool previous_unknown = false;
  std::string spelling;
  for (std::size_t at = 0; at < word.size();) {
    const auto begin = static_cast<std::uint32_t>(at);
    const CodePoint character = code_point_at(word, at);
    at += static_cast<std::size_t>(character.n_bytes);
    std::int32_t id = kUnmergeable;
    if (decorated) {
      spelling.clear();
      if (begin > 0) spelling = options_.continuing_prefix;
      spelling.append(word, begin, at - begin);
      if (at == word.size()) spelling.append(options_.end_suffix);
      id = vocabulary.find_in_model(spelling);
    } else {
      id = symbol_of(character.value);
      spelling.assign(word, begin, at - begin);
    }
    if (id >= 0) {
      scratch.symbols.push_back({id, begin});
      previous_unknown = false;
      continue;
    }
    if (options_.byte_fallback && std::all_of(spelling.begin(), spelling.end(), [&](char byte) {
          return byte_tokens_[static_cast<unsigned char>(byte)] != kNoToken;
        })) {
      for (const char byte : spelling) {
        scratch.symbols.push_back({byte_tokens_[static_cast<unsigned char>(byte)], begin});
      }
      previous_unknown = false;
      continue;
    }
    if (options_.unknown == kNoToken) continue;
    if (!(previous_unknown && options_.fuse_unknown)) {
      scratch.symbols.push_back({options_.unknown, begin});
    }
    previous_unknown = true;
  }
}

void Bpe::merge_short(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  std::size_t n = symbols.size();
  std::array<const Merge*, kShortWord> merge;  // of symbols i and i + 1
  for (std::size_t i = 0; i + 1 < n; ++i) {
    merge[i] = find_merge(symbols[i].id, symbols[i + 1].id, scratch);
  }
  while (n > 1) {
    std::size_t best = n;
    std::uint32_t best_rank = ~std::uint32_t{0};
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (merge[i] != nullptr && merge[i]->rank < best_rank) {
        best = i;
        best_rank = merge[i]->rank;
      }
    }
    if (best == n) break;
    symbols[best].id = merge[best]->result;
    for (std::size_t i = best + 1; i + 1 < n; ++i) {
      symbols[i] = symbols[i + 1];
      merge[i] = merge[i + 1];
    }
    --n;
    if (best + 1 < n) {
      merge[best] = find_merge(symbols[best].id, symbols[best + 1].id, scratch);
    }
    if (best > 0) merge[best - 1] = find_merge(symbols[best - 1].id, symbols[best].id, scratch);
  }
  symbols.resize(n);
}

void Bpe::merge_long(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  const auto n = static_cast<std::int32_t>(symbols.size());
  scratch.previous.resize(symbols.size());
  scratch.next.resize(symbols.size());
  queue.clear();
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.order > b.order;
  };
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    const std::int32_t left_id = symbols[static_cast<std::size_t>(left)].id;
    const std::int32_t right_id = symbols[static_cast<std::size_t>(right)].id;
    const Merge* const merge = find_merge(left_id, right_id, scratch);
    if (merge == nullptr) return false;
    queue.push_back(
        {static_cast<std::uint64_t>(merge->rank) << 32 | static_cast<std::uint32_t>(left), left_id,
         right_id, merge->result});
    ++scratch.n_candidates;
    return true;
  };
  for (std::int32_t i = 0; i < n; ++i) {
    scratch.previous[static_cast<std::size_t>(i)] = i - 1;
    scratch.next[static_cast<std::size_t>(i)] = i + 1;
    if (i + 1 < n) consider(i, i + 1);
  }
  std::make_heap(queue.begin(), queue.end(), later);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const Scratch::Candidate candidate = queue.back();
    queue.pop_back();
    const auto left = static_cast<std::size_t>(candidate.order & 0xFFFFFFFFu);
    const std::int32_t right = scratch.next[left];
    // A candidate is stale once either side has merged with something else.
    if (symbols[left].id != candidate.left_id || right == n ||
        symbols[static_cast<std::size_t>(right)].id != candidate.right_id) {
      continue;
    }
    symbols[left].id = candidate.result;
    symbols[static_cast<std::size_t>(right)].id = kGone;
    const std::int32_t after = scratch.next[static_cast<std::size_t>(right)];
    scratch.next[left] = after;
    if (after < n) {
      scratch.previous[static_cast<std::size_t>(after)] = static_cast<std::int32_t>(left);
      if (consider(static_cast<std::int32_t>(left), after)) {
        std::push_heap(queue.begin(), queue.end(), later);
      }
    }
    const std::int32_t before = scratch.previous[left];
    if (before >= 0 && consider(before, static_cast<std::int32_t>(left))) {
      std::push_heap(queue.begin(), queue.end(), later);
    }
  }
  std::size_t kept = 0;
  for (std::int32_t i = 0; i < n; i = scratch.next[static_cast<std::size_t>(i)]) {
    symbols[kept++] = symbols[static_cast<std::size_t>(i)];
  }
  symbols.resize(kept);
}

}  // namespace outrider
