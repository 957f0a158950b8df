// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of one word: start from characters, then repeatedly merge the adjacent pair of
// best rank, the leftmost on ties, until no pair can merge. (Sennrich, Haddow and Birch, 2016, with
// ranks learnt in training.)
//
// Two variants differ in the source of ranks and in the treatment of unknown characters:
//   by_rank   a list of pairs in order of preference (tokenizer.json, GGUF kind "gpt2"). Unknown
//             characters become byte tokens or the unknown token before anything merges.
//   by_score  any two neighbours whose concatenation is a piece may merge; the piece's score is the
//             rank, highest first (SentencePiece's BPE, GGUF kind "llama"). Unknown characters may
//             take part in a merge; those left over become byte tokens or the unknown token.
// Work is O(n log n) in the word's length n: at most 3n look-ups and 3n queue entries.
//
// Immutable, thread-safe as long as each thread has its own Scratch for each Bpe.
#ifndef OUTRIDER_TOKENIZER_MERGING_BPE_H_
#define OUTRIDER_TOKENIZER_MERGING_BPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/merging/integer_map.h"
#include "tokenizer/merging/merge_queue.h"
#include "tokenizer/merging/word_cache.h"
#include "tokenizer/vocabulary.h"

namespace outrider {

struct BpeOptions {
  // A character without a token becomes tokens "<0xXX>": by_rank only if all exist; by_score those
  // that exist, and the unknown token for each other byte.
  bool byte_fallback = false;
  bool fuse_unknown = false;      // consecutive unknown characters become one unknown token
  bool ignore_merges = false;     // a word that is itself a piece is that token
  bool whole_line_ends = false;   // the same only for words of line feeds
  TokenId unknown = kNoToken;     // kNoToken: characters without a token are dropped
  std::string continuing_prefix;  // prefix of every character of a word but the first
  std::string end_suffix;         // suffix of the last
};

struct MergeRule {
  TokenId left;
  TokenId right;
  TokenId result;
};

class Bpe {
  struct Merge {
    std::uint32_t rank;
    std::int32_t result;
  };

 public:
  struct Scratch {
    struct Symbol {
      std::int32_t id;
      std::uint32_t begin;  // in bytes of the word
      const Merge* merge;   // of this symbol with the next, or null
    };
    std::vector<Symbol> symbols;
    std::vector<std::uint32_t> previous, next;
    MergeQueue queue;
    std::string spelled;
    WordCache cache;
    // Work done, for tests.
    std::uint64_t n_lookups = 0;
  };

  Bpe() = default;
  // `merges` in order of preference; the last entry of a repeated pair counts.
  static Bpe by_rank(const Vocabulary& vocabulary, std::span<const MergeRule> merges,
                     BpeOptions options);
  // `scores` (vocabulary.size()), none NaN. Uses only the first two options and `unknown`. Nothing
  // merges into a piece of score kNeverMerged.
  static Bpe by_score(const Vocabulary& vocabulary, std::span<const double> scores,
                      BpeOptions options);
  static constexpr double kNeverMerged = -std::numeric_limits<double>::infinity();

  // Appends the tokens of `word` (well-formed UTF-8, below 2^31 bytes). `vocabulary` must be the
  // one this was made from.
  void encode(std::string_view word, const Vocabulary& vocabulary, Scratch& scratch,
              std::vector<TokenId>& out) const;
  // The same for bytes that are to be spelled in the byte-level alphabet: the result of encode()
  // for append_byte_level(bytes).
  void encode_bytes(std::string_view bytes, const Vocabulary& vocabulary, Scratch& scratch,
                    std::vector<TokenId>& out) const;

 private:
  // The rank of a pair that is in merges_ only because its characters are neighbours in some piece;
  // worse than any real rank.
  static constexpr std::uint32_t kNeverItself = ~std::uint32_t{0};
  // Symbols without a token: a character in no merge, one that was merged away, and (from n_tokens_
  // upwards) characters that are in pieces but are no piece themselves.
  static constexpr std::int32_t kUnmergeable = -1;
  static constexpr std::int32_t kGone = -2;

  struct NamedMerge {
    std::uint64_t pair;  // left << 32 | right
    Merge merge;
  };

  explicit Bpe(const Vocabulary& vocabulary);
  void set_character(char32_t value, std::int32_t symbol);
  void add_symbols_of_ends(const Vocabulary& vocabulary);
  std::int32_t symbol_of(char32_t value) const;
  const Merge* find_merge(std::int32_t left, std::int32_t right, Scratch& scratch) const;
  // The state of one word between symbols and tokens.
  struct Word {
    std::string_view text;
    Scratch& scratch;
    std::vector<TokenId>& out;
    bool behind_unknown = false;  // the last symbol had no token
  };
  void split_by_rank(Word& word, const Vocabulary& vocabulary) const;
  void split_by_score(Word& word) const;
  void encode_new_bytes(std::string_view bytes, const Vocabulary& vocabulary, Scratch& scratch,
                        std::vector<TokenId>& out) const;
  // Fills merges_ and sets cuts_. The last entry of a repeated pair counts.
  void set_merges(const Vocabulary& vocabulary, const std::vector<NamedMerge>& merges);
  void set_byte_symbols();
  // Adds the next symbol of the word, which begins at byte `begin`. If nothing can merge across its
  // beginning, the symbols before it are finished.
  void add_symbol(std::int32_t id, std::size_t begin, Word& word) const;
  // Merges the present symbols, which end at byte `end`, and appends the tokens.
  void finish_stretch(std::size_t end, Word& word) const;
  // Both merge all symbols in place, and leave the rest.
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  bool by_score_ = false;
  bool cuts_ = false;  // a pair outside merges_ ends a stretch
  BpeOptions options_;
  std::int32_t n_tokens_ = 0;
  IntegerMap<Merge> merges_;                  // by left id << 32 | right id
  std::vector<std::int32_t> low_characters_;  // symbol by code point below U+0800
  IntegerMap<std::int32_t> high_characters_;  // symbol by code point from there on
  std::array<TokenId, 256> byte_tokens_{};    // kNoToken if there is none
  // For each byte, the symbol of its character in the byte-level alphabet, if all of those are
  // tokens that stand for themselves anywhere in a word.
  bool has_byte_symbols_ = false;
  std::array<std::int32_t, 256> byte_symbols_{};
  std::uint32_t n_ranks_ = 0;
};

// The spelling of a byte token, "<0x0A>".
std::string byte_token_piece(int byte);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGING_BPE_H_
