// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/learn_pieces.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include <charconv>
#include <string_view>
#include <unordered_map>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "train tokenizer";

class PartIterator : public sentencepiece::SentenceIterator {
 public:
  explicit PartIterator(LineSample& lines) : lines_(&lines) { Next(); }
  bool done() const override { return done_; }
  // NOLINTNEXTLINE(readability-identifier-naming): SentencePiece's
  void Next() override {
    done_ = !lines_->next(part_);
    // SentencePiece marks unknown characters with U+2585 and would drop a line that contains it.
    constexpr std::string_view kReserved = "\xE2\x96\x85";
    for (std::size_t at = part_.find(kReserved); at != std::string::npos;
         at = part_.find(kReserved, at)) {
      part_[at] = ' ';
      part_.erase(at + 1, kReserved.size() - 1);
    }
  }
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  LineSample* lines_;
  std::string part_;
  bool done_ = false;
};

// The number after `words` in `message`; 0 if there is none.
int number_behind(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  std::from_chars(message.data() + at + words.size(), message.data() + message.size(), number);
  return number;
}

// SentencePiece reports failed checks with file and line; users need to know what to change.
[[noreturn]] void fail(const sentencepiece::util::Status& status, const PieceOptions& options) {
  const std::string_view message = status.message();
  const int size = options.vocabulary_size;
  if (message.find("smaller than required_chars") != std::string_view::npos) {
    throw UsageError(
        kOperation, "--vocabulary",
        fmt::format("at least {} for the characters of this text (or a lower --coverage)",
                    number_behind(message, " vs ")),
        std::to_string(size));
  }
  if (message.find("Vocabulary size too high") != std::string_view::npos) {
    throw UsageError(kOperation, "--vocabulary",
                     fmt::format("at most {}, all the pieces this text has",
                                 number_behind(message, "a value <= ")),
                     std::to_string(size));
  }
  throw Error(kOperation, "SentencePiece", message);
}

PieceKind kind_of(const sentencepiece::SentencePieceProcessor& processor, int id) {
  if (processor.IsByte(id)) return PieceKind::kByte;
  if (processor.IsControl(id) || processor.IsUnknown(id)) return PieceKind::kSpecial;
  return PieceKind::kText;
}

}  // namespace

void require_sentencepiece() {}

LearntPieces learn_pieces(LineSample& lines, const PieceOptions& options) {
  // The parameters of Llama 2's vocabulary, as far as its model file tells.
  const std::unordered_map<std::string, std::string> arguments = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.vocabulary_size)},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"max_sentence_length", std::to_string(LineSample::kLongestPart_bytes)},
      {"num_threads", "1"},  // so that ties are always ordered alike
      {"minloglevel", "3"},  // only fatal errors
  };
  PartIterator iterator(lines);
  LearntPieces learnt;
  auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &learnt.model);
  if (!status.ok()) fail(status, options);
  sentencepiece::SentencePieceProcessor processor;
  status = processor.LoadFromSerializedProto(learnt.model);
  if (!status.ok()) fail(status, options);
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    learnt.pieces.push_back(
        {processor.IdToPiece(id), kind_of(processor, id), processor.GetScore(id)});
  }
  return learnt;
}

}  // namespace outrider
