// Unigram language model of one word: of all the ways to spell it in pieces, the one whose scores
// have the highest sum. (Kudo, 2018, section 3.2; the search is Viterbi's.)
//
// Every piece that begins at a character is offered to the place where it ends, from left to right,
// and takes it if its sum is higher than that of whoever stands there. So of equal sums the one
// with the longest last piece counts. A character that is no piece by itself may also be unknown,
// at a score of its own. Unknown characters in a row are one: a piece of that spelling (only scores
// far above zero leave such), or byte tokens, or one unknown token.
//
// Hugging Face's tokenizers (tokenizer.json) and llama.cpp (GGUF kind "t5") add scores in double
// precision, SentencePiece (.model) in single, which decides between sums that are all but the same
// ("00" + "0" and "0" + "00"), and begins anew below -100,000, where single precision has steps of
// 1/128. As SentencePiece 0.2.2 and 0.2.3 do it; up to 0.2.1 it compared sums before it rounded
// them, and never began anew.
//
// Work is at most the word's length times that of the longest piece. The best ways to all places
// that are still open mostly begin alike; what they share is settled, at the latest every few
// thousand bytes. Only where they never meet (pieces of two letters alone, and one letter again and
// again) do places take memory as long as the word lasts, four bytes for each of its bytes.
//
// Immutable, thread-safe as long as each thread has its own Scratch.
#ifndef OUTRIDER_TOKENIZER_UNIGRAM_H_
#define OUTRIDER_TOKENIZER_UNIGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/piece_trie.h"
#include "tokenizer/vocabulary.h"

namespace outrider {

// The longest piece, in bytes, of vocabularies that this searches; readers refuse longer ones,
// which would make the work of a small text large. SentencePiece's trainer allows 512 characters.
inline constexpr std::size_t kLongestPiece_bytes = 2048;

struct ScoredPiece {
  TokenId id;
  double score;  // a number
};

struct UnigramOptions {
  TokenId unknown = kNoToken;  // kNoToken: encode() throws Error on unknown characters
  double unknown_score = 0;    // of one such character
  bool byte_fallback = false;  // they become tokens "<0xXX>", if there are all that are needed
  bool single_precision = false;
};

// How much less than the lowest score of any piece an unknown character scores, in all libraries.
inline constexpr double kUnknownPenalty = 10.0;

class Unigram {
 public:
  struct Scratch {
    // The last piece of the best way to each place (a byte of the word) that is not settled.
    std::vector<std::int32_t> last_pieces;
    std::vector<double> sums;        // of the ways to places, as far as the longest piece reaches
    std::vector<std::int32_t> path;  // pieces, the last one first
    std::vector<char> on_path;       // of each place
    // How much work there was, for tests.
    std::uint64_t n_steps = 0;
    std::size_t n_places = 0;
  };

  Unigram() = default;
  // `pieces`: those that text may become, of `vocabulary`, each once, none longer than
  // kLongestPiece_bytes.
  Unigram(const Vocabulary& vocabulary, std::span<const ScoredPiece> pieces,
          UnigramOptions options);

  // Appends the tokens of `word` (well-formed UTF-8). `vocabulary` is the one this was made from.
  // without_added: pieces that are added tokens are passed over.
  void encode(std::string_view word, const Vocabulary& vocabulary, bool without_added,
              Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  class Output;
  class Search;
  // What last_pieces holds besides ids.
  static constexpr std::int32_t kUnreached = -2;
  static constexpr std::int32_t kUnknownCharacter = -3;
  double rounded(double sum) const {
    return options_.single_precision ? static_cast<double>(static_cast<float>(sum)) : sum;
  }

  UnigramOptions options_;
  PieceTrie trie_;
  // (vocabulary.size()); of ids that are in the trie
  std::vector<double> scores_;
  std::vector<std::uint16_t> n_bytes_;
  std::size_t longest_ = 4;  // bytes of any piece or character
  std::array<TokenId, 256> byte_tokens_{};
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_UNIGRAM_H_
