// Pairs of sentences on their way into a trainer: two files of lines to tokens, tokens to batches.
#ifndef OUTRIDER_TRAIN_PAIR_CORPUS_H_
#define OUTRIDER_TRAIN_PAIR_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"
#include "train/corpus.h"

namespace outrider::train {

struct SentencePair {
  std::vector<TokenId> source;  // with the special tokens that the tokenizer puts around a text
  std::vector<TokenId> target;  // the text's alone, and the end token
};

// The lines of a file of UTF-8 text, each without the blanks at its ends. Throws Error naming the
// file where it has no line, and the first line that is empty.
std::vector<std::string> read_sentences(const std::filesystem::path& file);

// Line n of the one file and line n of the other, the files' lines as read_sentences() has them.
// Throws Error, too, where the numbers of lines differ and where the tokenizer has no end token.
std::vector<SentencePair> read_pairs(const std::filesystem::path& source,
                                     const std::filesystem::path& target,
                                     const Tokenizer& tokenizer);

// Pairs side by side.
struct PairBatch {
  int n_pairs = 0;
  int source_length = 0;                   // of the longest
  int target_length = 0;                   // likewise
  std::vector<TokenId> sources;            // (n_pairs, source_length), padded behind
  std::vector<TokenId> targets;            // (n_pairs, target_length), likewise
  std::vector<std::int32_t> n_in_sources;  // (n_pairs): tokens before the padding
  std::vector<std::int32_t> n_in_targets;  // likewise
};

// Batches by number, pairs of similar lengths together, in an order drawn anew for every pass over
// them; a pass' last batch is the smaller for it. Pairs one of whose texts is longer than the
// shape's length are left out: a sentence that stops in its middle would teach to stop there.
// batch(n) depends on n and what the source was made of alone. Not thread-safe.
class PairSource {
 public:
  // Throws Error where a batch has no pair, and, calling the pairs by `name`, where none is left.
  PairSource(std::vector<SentencePair> pairs, const BatchShape& shape, TokenId padding,
             std::string_view name = "pairs");

  PairBatch batch(std::int64_t number);
  std::int64_t n_batches() const { return n_batches_; }  // in a pass over all pairs
  std::int64_t n_pairs() const { return static_cast<std::int64_t>(pairs_.size()); }
  std::int64_t n_left_out() const { return n_left_out_; }  // pairs that are too long
  std::int64_t n_tokens() const { return n_tokens_; }      // of both texts
  // Two sources share it if they hold the same tokens.
  std::uint64_t fingerprint() const;

 private:
  void start_epoch(std::int64_t epoch);

  std::vector<SentencePair> pairs_;
  BatchShape shape_;
  TokenId padding_;
  std::int64_t n_left_out_ = 0;
  std::int64_t n_tokens_ = 0;
  std::int64_t n_batches_ = 0;
  std::int64_t epoch_ = -1;
  std::vector<std::int32_t> order_;    // pairs, batch after batch
  std::vector<std::int32_t> batches_;  // order of the batches
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_PAIR_CORPUS_H_
