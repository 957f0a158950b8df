// A verdict log on its way into a trainer: windows of its texts, with the target's law at every
// place where it was recorded.
#ifndef OUTRIDER_TRAIN_VERDICT_TEXTS_H_
#define OUTRIDER_TRAIN_VERDICT_TEXTS_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <vector>

#include "io/verdict_log.h"
#include "train/corpus.h"

namespace outrider::train {

// Sequences and the target's law at some of their places.
struct JudgedBatch {
  Batch batch;  // weights: 1 where the law is known, else 0
  // Row i is the law of the token at place places[i] of tokens (n_sequences, length), given what
  // stands before it in its sequence; i counts through the places that weigh 1.
  std::vector<std::int64_t> places;
  int n_kept = 0;
  std::vector<TokenId> kept_ids;     // (n_rows, n_kept): the likeliest tokens, best first
  std::vector<float> kept_logprobs;  // (n_rows, n_kept)
  std::vector<float> rest_logprobs;  // (n_rows): of all other tokens together
};

// The drafter that is to learn, as far as its log must fit it.
struct LearningDrafter {
  std::filesystem::path path = {};  // for messages
  int n_vocabulary = 0;             // rows of its matrices
  VocabularyId vocabulary = {};     // of its tokenizer
};

// The texts that a log holds. Long ones are cut into windows that overlap by half, each place
// judged in one of them. Some texts are held out, by what they say, so that a text is on the same
// side whenever it is read. Not thread-safe.
class VerdictTexts {
 public:
  // Reads what is there. Throws Error: no log, a log of another vocabulary than the drafter's.
  VerdictTexts(const std::filesystem::path& log, const LearningDrafter& drafter,
               const BatchShape& shape, double held_out_share);

  // Reads what has come since and forgets what the log has dropped. Returns the number of texts
  // that came. Throws Error as the constructor.
  int refresh();

  std::int64_t n_texts() const { return static_cast<std::int64_t>(texts_.size()); }
  std::int64_t n_judged() const { return n_judged_; }  // places, held out ones included
  // Of all that is there: two logs share it if they hold the same texts.
  std::uint64_t fingerprint() const;
  bool can_train() const { return training_.source != nullptr; }

  // By number, a function of it and of the texts there are. Throws Error unless can_train().
  JudgedBatch batch(std::int64_t number);
  // 0 .. n_held_out_batches() - 1.
  JudgedBatch held_out_batch(std::int64_t number);
  int n_held_out_batches() const { return held_out_.n_batches; }

 private:
  struct Text {
    LoggedText logged;
    std::uint64_t sum = 0;  // checksum of its tokens
  };
  // A piece of a text. Its first n_prompt tokens are only read.
  struct Window {
    const LoggedText* text = nullptr;
    int begin = 0;
    int n_prompt = 0;
    int end = 0;
  };
  struct Side {
    std::vector<Window> windows;
    std::shared_ptr<ExampleSource> source;  // null: no windows; its examples are they
    int n_batches = 0;                      // that hold each window once
  };
  void cut();
  void cut_text(const LoggedText& text, Side& side) const;
  void make_source(Side& side) const;
  JudgedBatch judged(const Side& side, std::int64_t number) const;

  LearningDrafter drafter_;
  BatchShape shape_;
  double held_out_share_;
  std::filesystem::path path_;
  VerdictLogReader reader_;
  std::deque<Text> texts_;  // windows point into it
  std::int64_t n_judged_ = 0;
  Side training_;
  Side held_out_;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_VERDICT_TEXTS_H_
