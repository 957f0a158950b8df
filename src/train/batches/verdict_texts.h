// SPDX-License-Identifier: Apache-2.0
// Training data from a verdict log: windows of its texts, with the target's distribution at every
// place where it was recorded.
#ifndef OUTRIDER_TRAIN_BATCHES_VERDICT_TEXTS_H_
#define OUTRIDER_TRAIN_BATCHES_VERDICT_TEXTS_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <vector>

#include "io/verdict_log.h"
#include "train/batches/corpus.h"

namespace outrider::train {

// Sequences and the target's distribution at some of their places.
struct JudgedBatch {
  Batch batch;  // weights: 1 where the distribution is known, else 0
  // Row i is the distribution of the token at place places[i] of tokens (n_sequences, length),
  // given the tokens before it in its sequence. i counts the places of weight 1.
  std::vector<std::int64_t> places;
  int n_kept = 0;
  std::vector<TokenId> kept_ids;     // (n_rows, n_kept): the likeliest tokens, best first
  std::vector<float> kept_logprobs;  // (n_rows, n_kept)
  std::vector<float> rest_logprobs;  // (n_rows): of all other tokens together
};

// The drafter to train: the properties that the log has to match.
struct LearningDrafter {
  std::filesystem::path path = {};  // for messages
  int n_vocabulary = 0;             // rows of its matrices
  VocabularyId vocabulary = {};     // of its tokenizer
};

// The texts of a log. Long texts are cut into windows that overlap by half; each place is judged in
// one of them. Some texts are held out. The choice depends on a text's tokens, so a text is on the
// same side at every reading. Not thread-safe.
class VerdictTexts {
 public:
  // Reads the log. Throws Error if there is no log, or its vocabulary differs from the drafter's.
  VerdictTexts(const std::filesystem::path& log, const LearningDrafter& drafter,
               const BatchShape& shape, double held_out_share);

  // Reads new texts and drops those that the log has dropped. Returns the number of new texts.
  // Throws Error as the constructor does.
  int refresh();

  std::int64_t n_texts() const { return static_cast<std::int64_t>(texts_.size()); }
  std::int64_t n_judged() const { return n_judged_; }  // places, including held-out ones
  // A hash of all texts: two logs with the same texts have the same fingerprint.
  std::uint64_t fingerprint() const;
  bool can_train() const { return training_.source != nullptr; }

  // A batch by number. It depends only on the number and the present texts. Throws Error unless
  // can_train().
  JudgedBatch batch(std::int64_t number);
  // number: 0 .. n_held_out_batches() - 1.
  JudgedBatch held_out_batch(std::int64_t number);
  int n_held_out_batches() const { return held_out_.n_batches; }

 private:
  struct Text {
    LoggedText logged;
    std::uint64_t sum = 0;  // checksum of its tokens
  };
  // A part of a text. Its first n_prompt tokens are only read.
  struct Window {
    const LoggedText* text = nullptr;
    int begin = 0;
    int n_prompt = 0;
    int end = 0;
  };
  struct Side {
    std::vector<Window> windows;
    std::shared_ptr<ExampleSource> source;  // null: no windows; its examples are the windows
    int n_batches = 0;                      // that contain each window once
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

#endif  // OUTRIDER_TRAIN_BATCHES_VERDICT_TEXTS_H_
