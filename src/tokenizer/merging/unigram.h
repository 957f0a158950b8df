// SPDX-License-Identifier: Apache-2.0
// Unigram language model of one word: finds the segmentation into pieces with the highest sum of
// scores. (Kudo, 2018, section 3.2; the search is Viterbi's.)
//
// From left to right, every piece that begins at a character is a candidate for the position where
// it ends, and replaces the current one there if its sum is higher. So among equal sums the one
// with the longest last piece is chosen. A character that is not a piece may also be unknown, at a
// separate score. Consecutive unknown characters are one unit: a piece of that spelling (only with
// scores far above zero), or byte tokens, or one unknown token.
//
// Hugging Face's tokenizers (tokenizer.json) and llama.cpp (GGUF kind "t5") add scores in double
// precision. SentencePiece (.model) uses single precision, which decides between nearly equal sums
// ("00" + "0" and "0" + "00"). It restarts the sum below -100,000, where single precision has steps
// of 1/128. This is the behaviour of SentencePiece 0.2.2 and 0.2.3; up to 0.2.1 it compared sums
// before rounding, and never restarted.
//
// Time is at most the word's length times that of the longest piece. The best segmentations to all
// open positions mostly share a beginning, which is settled at the latest every few thousand bytes.
// If they never share one (only pieces of two letters, and one letter repeated), memory grows with
// the word, by four bytes for each of its bytes.
//
// Immutable, thread-safe as long as each thread has its own Scratch.
#ifndef OUTRIDER_TOKENIZER_MERGING_UNIGRAM_H_
#define OUTRIDER_TOKENIZER_MERGING_UNIGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/merging/piece_trie.h"
#include "tokenizer/vocabulary.h"

namespace outrider {

// Limit of a piece in bytes; readers refuse longer ones, for which a small text would be slow.
// SentencePiece's trainer allows 512 characters.
inline constexpr std::size_t kLongestPiece_bytes = 2048;

struct ScoredPiece {
  TokenId id;
  double score;  // not NaN
};

struct UnigramOptions {
  TokenId unknown = kNoToken;  // kNoToken: encode() throws Error on unknown characters
  double unknown_score = 0;    // of one such character
  bool byte_fallback = false;  // they become tokens "<0xXX>", if all needed ones exist
  bool single_precision = false;
};

// The difference of an unknown character's score from the lowest score of any piece, in all
// libraries.
inline constexpr double kUnknownPenalty = 10.0;

class Unigram {
 public:
  struct Scratch {
    // The last piece of the best segmentation to each unsettled position (byte of the word).
    std::vector<std::int32_t> last_pieces;
    std::vector<double> sums;        // of segmentations to positions, within the longest piece
    std::vector<std::int32_t> path;  // pieces, the last one first
    std::vector<char> on_path;       // for each position
    // Work done, for tests.
    std::uint64_t n_steps = 0;
    std::size_t n_places = 0;
  };

  Unigram() = default;
  // `pieces`: those to use, from `vocabulary`, each once, none longer than kLongestPiece_bytes.
  Unigram(const Vocabulary& vocabulary, std::span<const ScoredPiece> pieces,
          UnigramOptions options);

  // Appends the tokens of `word` (well-formed UTF-8). `vocabulary` must be the one this was made
  // from. without_added: skips pieces that are added tokens.
  void encode(std::string_view word, const Vocabulary& vocabulary, bool without_added,
              Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  class Output;
  class Search;
  // Values of last_pieces other than ids.
  static constexpr std::int32_t kUnreached = -2;
  static constexpr std::int32_t kUnknownCharacter = -3;
  double rounded(double sum) const {
    return options_.single_precision ? static_cast<double>(static_cast<float>(sum)) : sum;
  }

  UnigramOptions options_;
  PieceTrie trie_;
  // (vocabulary.size()); for ids in the trie
  std::vector<double> scores_;
  std::vector<std::uint16_t> n_bytes_;
  std::size_t longest_ = 4;  // bytes of any piece or character
  std::array<TokenId, 256> byte_tokens_{};
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGING_UNIGRAM_H_
