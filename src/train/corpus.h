// Text on its way into a trainer: documents to one stream of tokens, the stream to batches.
#ifndef OUTRIDER_TRAIN_CORPUS_H_
#define OUTRIDER_TRAIN_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider::train {

// Sequences of one length, side by side.
struct Batch {
  int n_sequences = 0;
  int length = 0;
  std::vector<TokenId> tokens;  // (n_sequences, length)
  // (n_sequences, length): how much predicting the token at each place counts; 0 at the first
  // place, at padding and where a prompt is only read.
  std::vector<float> weights;
  // (n_sequences): which example each is, by its number; of windows of a stream, empty.
  std::vector<std::int32_t> examples = {};
};

// Batches by number. batch(n) depends on n and what the source was made of alone, so that a run
// that was killed goes on with the batches it would have seen. Not thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch batch(std::int64_t number) = 0;
  virtual std::int64_t n_tokens() const = 0;  // in all
  // Of what the batches are made of: two sources share it if they hold the same tokens.
  virtual std::uint64_t fingerprint() const = 0;
};

struct BatchShape {
  int n_sequences = 0;
  int length = 0;
  std::uint64_t seed = 0;
};

// The files' documents, each with the tokenizer's special tokens around it, one after the other.
// Documents end at `separator` (empty: a file is one document). Throws Error on a file that cannot
// be read and when nothing is left.
std::vector<TokenId> encode_text_files(std::span<const std::filesystem::path> files,
                                       const Tokenizer& tokenizer, std::string_view separator);

// Windows of `length` tokens that tile the stream, in an order drawn anew for every pass over it,
// with a shift drawn anew too, so that no token stands at a window's edge every time. Throws Error
// if the stream is shorter than one window.
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

// A prompt and what is to follow it.
struct Example {
  std::vector<TokenId> tokens;  // prompt, completion, end of text
  int n_prompt = 0;             // tokens that are only read
};

// One JSON object a line, {"prompt": ..., "completion": ...}; the prompt gets the tokenizer's
// special tokens, the completion its end token. Where a line has "prompt_tokens" and
// "completion_tokens", lists of ids, these are what was said to a model and what it said, and are
// taken as they are: "prompt" has to be what the tokenizer makes of the first. Throws Error naming
// the line of anything malformed.
std::vector<Example> read_examples(const std::filesystem::path& file, const Tokenizer& tokenizer);

// Batches of examples, those of similar length together, padded behind; longer ones than `length`
// are cut, and those whose prompts alone are as long left out. The loss counts on completions only.
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

// A number that depends on its arguments alone (SplitMix64's finaliser over their mixture): seeds
// for what must not depend on how a run got there.
std::uint64_t mix(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_CORPUS_H_
