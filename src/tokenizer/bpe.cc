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
  return bpe;
}

// A character that begins or ends a piece without being one gets a symbol of its own.
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

Bpe Bpe::by_score(const Vocabulary& vocabulary, std::span<const double> scores, TokenId unknown) {
  Bpe bpe(vocabulary);
  bpe.by_score_ = true;
  bpe.options_.unknown = unknown;
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
  // A piece of one character is its own symbol; so are byte tokens and the unknown token, whose
  // spelling is not the text they stand for. Where those merge, spellings say nothing about
  // neighbours, and every pair has to count as one. Real files have no such merges.
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
