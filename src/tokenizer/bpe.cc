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
  bpe.mark_neighbours(vocabulary);
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
  bpe.mark_neighbours(vocabulary);
  return bpe;
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right, Scratch& scratch) const {
  if (left < 0 || right < 0) return nullptr;
  ++scratch.n_lookups;
  const Merge* const merge = merges_.find(pair_key(left, right));
  return merge != nullptr && merge->rank != kNeverItself ? merge : nullptr;
}

void Bpe::mark_neighbours(const Vocabulary& vocabulary) {
  // A piece of one character is its own symbol; so are byte tokens and the unknown token, whose
  // spelling is not the text they stand for. Where those merge, spellings say nothing about
  // neighbours, and every pair has to count as one. Real files have no such merges.
  std::vector<bool> is_opaque(static_cast<std::size_t>(n_tokens_));
  for (const TokenId id : byte_tokens_) {
    if (id != kNoToken) is_opaque[static_cast<std::size_t>(id)] = true;
  }
  if (options_.unknown != kNoToken) is_opaque[static_cast<std::size_t>(options_.unknown)] = true;
  cuts_ = options_.continuing_prefix.empty() && options_.end_suffix.empty();
  std::vector<std::uint64_t> pairs;
  merges_.for_each([&](std::uint64_t key, const Merge&) {
    const auto left = static_cast<std::int32_t>(key >> 32);
    const auto right = static_cast<std::int32_t>(key & 0xFFFFFFFFu);
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
    if (last >= 0 && first >= 0) pairs.push_back(pair_key(last, first));
  });
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  IntegerMap<Merge> all(merges_.size() + pairs.size());
  for (const std::uint64_t pair : pairs) all.set(pair, {kNeverItself, kNoToken});
  merges_.for_each([&](std::uint64_t key, const Merge& merge) { all.set(key, merge); });
  merges_ = std::move(all);
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
  // Between two characters that are neighbours in no piece nothing ever merges: what is left and
  // right of there are words of their own. That makes a text that was not cut before (Llama 2's)
  // as cheap as one that was.
  const auto& symbols = scratch.symbols;
  const std::size_t n = symbols.size();
  scratch.merges.resize(n);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Merge* merge = nullptr;
    bool cut = true;
    if (i + 1 < n) {
      cut = cuts_;
      if (symbols[i].id >= 0 && symbols[i + 1].id >= 0) {
        ++scratch.n_lookups;
        merge = merges_.find(pair_key(symbols[i].id, symbols[i + 1].id));
        cut = cuts_ && merge == nullptr;
        if (merge != nullptr && merge->rank == kNeverItself) merge = nullptr;
      }
    }
    scratch.merges[i] = merge;
    if (!cut) continue;
    const std::size_t end_byte = i + 1 < n ? symbols[i + 1].begin : word.size();
    encode_stretch(begin, i + 1, word.substr(0, end_byte), scratch, out);
    begin = i + 1;
  }
}

void Bpe::encode_stretch(std::size_t begin, std::size_t end, std::string_view text,
                         Scratch& scratch, std::vector<TokenId>& out) const {
  const std::size_t n = end - begin;
  const std::size_t kept = n == 1            ? 1
                           : n <= kShortWord ? merge_short(begin, n, scratch)
                                             : merge_long(begin, n, scratch);
  const Scratch::Symbol* const symbols = scratch.symbols.data() + begin;
  for (std::size_t i = 0; i < kept; ++i) {
    if (symbols[i].id >= 0 && symbols[i].id < n_tokens_) {
      out.push_back(symbols[i].id);
      continue;
    }
    const std::size_t symbol_end = i + 1 < kept ? symbols[i + 1].begin : text.size();
    for (const char byte : text.substr(symbols[i].begin, symbol_end - symbols[i].begin)) {
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

std::size_t Bpe::merge_short(std::size_t begin, std::size_t n, Scratch& scratch) const {
  Scratch::Symbol* const symbols = scratch.symbols.data() + begin;
  const Merge** const merge = scratch.merges.data() + begin;  // of symbols i and i + 1
  while (n > 1) {
    std::size_t best = n;
    std::uint32_t best_rank = kNeverItself;
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
    if (best + 1 < n) merge[best] = find_merge(symbols[best].id, symbols[best + 1].id, scratch);
    if (best > 0) merge[best - 1] = find_merge(symbols[best - 1].id, symbols[best].id, scratch);
  }
  return n;
}

std::size_t Bpe::merge_long(std::size_t begin, std::size_t n_symbols, Scratch& scratch) const {
  Scratch::Symbol* const symbols = scratch.symbols.data() + begin;
  auto& queue = scratch.queue;
  const auto n = static_cast<std::int32_t>(n_symbols);
  scratch.previous.resize(n_symbols);
  scratch.next.resize(n_symbols);
  std::int32_t* const previous = scratch.previous.data();
  std::int32_t* const next = scratch.next.data();
  queue.clear();
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.order > b.order;
  };
  const auto consider = [&](std::int32_t left, std::int32_t right, const Merge* merge) {
    if (merge == nullptr) return false;
    queue.push_back(
        {static_cast<std::uint64_t>(merge->rank) << 32 | static_cast<std::uint32_t>(left),
         symbols[left].id, symbols[right].id, merge->result});
    ++scratch.n_candidates;
    return true;
  };
  const auto consider_new = [&](std::int32_t left, std::int32_t right) {
    if (consider(left, right, find_merge(symbols[left].id, symbols[right].id, scratch))) {
      std::push_heap(queue.begin(), queue.end(), later);
    }
  };
  for (std::int32_t i = 0; i < n; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
    if (i + 1 < n) consider(i, i + 1, scratch.merges[begin + static_cast<std::size_t>(i)]);
  }
  std::make_heap(queue.begin(), queue.end(), later);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const Scratch::Candidate candidate = queue.back();
    queue.pop_back();
    const auto left = static_cast<std::int32_t>(candidate.order & 0xFFFFFFFFu);
    const std::int32_t right = next[left];
    // A candidate is stale once either side has merged with something else.
    if (symbols[left].id != candidate.left_id || right == n ||
        symbols[right].id != candidate.right_id) {
      continue;
    }
    symbols[left].id = candidate.result;
    symbols[right].id = kGone;
    next[left] = next[right];
    if (next[left] < n) {
      previous[next[left]] = left;
      consider_new(left, next[left]);
    }
    if (previous[left] >= 0) consider_new(previous[left], left);
  }
  std::size_t kept = 0;
  for (std::int32_t i = 0; i < n; i = next[i]) symbols[kept++] = symbols[i];
  return kept;
}

}  // namespace outrider
