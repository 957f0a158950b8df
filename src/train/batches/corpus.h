// SPDX-License-Identifier: Apache-2.0
// Training text: documents to one stream of tokens, the stream to batches.
#ifndef OUTRIDER_TRAIN_BATCHES_CORPUS_H_
#define OUTRIDER_TRAIN_BATCHES_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider::train {

// Sequences of one length.
struct Batch {
  int n_sequences = 0;
  int length = 0;
  std::vector<TokenId> tokens;  // (n_sequences, length)
  // (n_sequences, length): the weight of predicting the token at each place; 0 at the first place,
  // at padding and in prompts.
  std::vector<float> weights;
  // (n_sequences): the number of each sequence's example; empty for windows of a stream.
  std::vector<std::int32_t> examples = {};
};

// Batches by number. batch(n) depends only on n and the arguments of the source, so a resumed run
// sees the same batches as an uninterrupted one. Not thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch batch(std::int64_t number) = 0;
  virtual std::int64_t n_tokens() const = 0;  // in all
  // A hash of the tokens: two sources with the same tokens have the same fingerprint.
  virtual std::uint64_t fingerprint() const = 0;
};

struct BatchShape {
  int n_sequences = 0;
  int length = 0;
  std::uint64_t seed = 0;
};

// The files' documents one after another, each with the tokenizer's special tokens around it.
// `separator` ends a document; if it is empty, a file is one document. Throws Error for a file that
// cannot be read, and if no document is left.
std::vector<TokenId> encode_text_files(std::span<const std::filesystem::path> files,
                                       const Tokenizer& tokenizer, std::string_view separator);

// Windows of `length` tokens that tile the stream. Each pass over the stream draws a new order and
// a new shift, so that window edges fall on different tokens. Throws Error if the stream is shorter
// than one window.
class WindowSource final : public BatchSource {
 public:
  WindowSource(std::vector<TokenId> stream, const BatchShape& shape);
  Batch batch(std::int64_t number) override;
  std::int64_t n_tokens() const override { return static_cast<std::int64_t>(stream_.size()); }
  std::uint64_t fingerprint() const override;

 private:
  void start_epoch(std::int64_t epoch);

  std::vector<TokenId> stream_;
  BatchShape shape_;
  std::int64_t windows_per_epoch_;
  std::int64_t epoch_ = -1;
  std::int64_t shift_ = 0;
  std::vector<std::int32_t> order_;  // of the current epoch
};

// A prompt and its completion.
struct Example {
  std::vector<TokenId> tokens;  // prompt, completion, end of text
  int n_prompt = 0;             // tokens that are only read
};

// Reads one JSON object a line, {"prompt": ..., "completion": ...}. The prompt gets the tokenizer's
// special tokens, the completion its end token. A line may have "prompt_tokens" and
// "completion_tokens": lists of the ids that a model read and generated. They are then used
// unchanged, and "prompt" has to be the text that the tokenizer decodes "prompt_tokens" to. Throws
// Error with the line number for malformed input.
std::vector<Example> read_examples(const std::filesystem::path& file, const Tokenizer& tokenizer);

// Batches of examples of similar length, padded at the end. Examples longer than `length` are cut;
// examples whose prompt alone has `length` tokens or more are left out. Only completions count in
// the loss.
class ExampleSource final : public BatchSource {
 public:
  ExampleSource(std::vector<Example> examples, const BatchShape& shape, TokenId padding);
  Batch batch(std::int64_t number) override;
  std::int64_t n_tokens() const override { return n_tokens_; }
  std::uint64_t fingerprint() const override;

 private:
  void start_epoch(std::int64_t epoch);

  std::vector<Example> examples_;
  BatchShape shape_;
  TokenId padding_;
  std::int64_t n_tokens_ = 0;
  std::int64_t batches_per_epoch_;
  std::int64_t epoch_ = -1;
  std::vector<std::int32_t> order_;    // examples, batch after batch
  std::vector<std::int32_t> batches_;  // order of the batches
};

// A hash of the arguments (SplitMix64's finaliser over their mixture). It gives seeds that do not
// depend on earlier draws of the run.
std::uint64_t mix(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_CORPUS_H_
