// SPDX-License-Identifier: Apache-2.0
// Sentence pairs for training: two files of lines to tokens, tokens to batches.
#ifndef OUTRIDER_TRAIN_BATCHES_PAIR_CORPUS_H_
#define OUTRIDER_TRAIN_BATCHES_PAIR_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"
#include "train/batches/corpus.h"

namespace outrider::train {

struct SentencePair {
  std::vector<TokenId> source;  // with the tokenizer's special tokens around the text
  std::vector<TokenId> target;  // the text's tokens and the end token only
};

// The lines of a UTF-8 text file, each without leading and trailing blanks. Throws Error with the
// file's name if it has no line, and for the first empty line.
std::vector<std::string> read_sentences(const std::filesystem::path& file);

// Pairs line n of one file with line n of the other, read by read_sentences(). Throws Error, too,
// if the numbers of lines differ and if the tokenizer has no end token.
std::vector<SentencePair> read_pairs(const std::filesystem::path& source,
                                     const std::filesystem::path& target,
                                     const Tokenizer& tokenizer);

// A batch of pairs.
struct PairBatch {
  int n_pairs = 0;
  int source_length = 0;                   // of the longest
  int target_length = 0;                   // of the longest
  std::vector<TokenId> sources;            // (n_pairs, source_length), padded at the end
  std::vector<TokenId> targets;            // (n_pairs, target_length), padded at the end
  std::vector<std::int32_t> n_in_sources;  // (n_pairs): tokens before the padding
  std::vector<std::int32_t> n_in_targets;  // (n_pairs): tokens before the padding
};

// Batches by number. The pairs of a batch have similar lengths. Each pass draws a new order; its
// last batch may be smaller. Pairs with a text longer than the shape's length are left out: a
// sentence cut in the middle would teach the model to stop there. batch(n) depends only on n and
// the arguments of the source. Not thread-safe.
class PairSource {
 public:
  // Throws Error if a batch would have no pair, and if no pair is left; `name` is the message's
  // word for the pairs.
  PairSource(std::vector<SentencePair> pairs, const BatchShape& shape, TokenId padding,
             std::string_view name = "pairs");

  PairBatch batch(std::int64_t number);
  std::int64_t n_batches() const { return n_batches_; }  // in a pass over all pairs
  std::int64_t n_pairs() const { return static_cast<std::int64_t>(pairs_.size()); }
  std::int64_t n_left_out() const { return n_left_out_; }  // pairs that are too long
  std::int64_t n_tokens() const { return n_tokens_; }      // of both texts
  // A hash of the tokens: two sources with the same tokens have the same fingerprint.
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

#endif  // OUTRIDER_TRAIN_BATCHES_PAIR_CORPUS_H_
