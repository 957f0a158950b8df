// Learns a vocabulary from text and writes it as a Hugging Face directory. Linked into the program
// alone: the library itself needs no SentencePiece.
#ifndef OUTRIDER_VOCABULARY_TRAINING_TRAIN_VOCABULARY_H_
#define OUTRIDER_VOCABULARY_TRAINING_TRAIN_VOCABULARY_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "vocabulary_training/learn_pieces.h"
#include "vocabulary_training/training_text.h"

namespace outrider {

struct TrainedVocabulary {
  std::string tokenizer_json;  // the files' contents
  std::string tokenizer_config_json;
  std::string tokenizer_model;  // SentencePiece's own
  int n_pieces = 0;             // in all
  int n_merged = 0;             // of more than one character
  int n_characters = 0;         // of one
};

// learn_pieces(), with its errors, and the files made of what it gives. The same lines and options
// give the same bytes.
TrainedVocabulary train_vocabulary(LineSample& lines, const PieceOptions& options);

// The directory of tokenizer.json, tokenizer_config.json and, if asked for, tokenizer.model.
class VocabularyDirectory {
 public:
  struct Options {
    bool overwrite = false;   // replace files of these names that are there
    bool keep_model = false;  // write tokenizer.model, too
  };

  // Throws Error at once if the directory could not be written later, or if it holds a file of one
  // of the three names and overwrite is off. Touches nothing.
  VocabularyDirectory(const std::filesystem::path& path, const Options& options);

  // A new directory appears whole or not at all (its parents are made as needed). In one that was
  // there each file is replaced whole, tokenizer.json last; a tokenizer.model that is not of this
  // vocabulary goes. Throws Error, after which no temporary file is left.
  void write(const TrainedVocabulary& vocabulary) const;

 private:
  std::filesystem::path path_;
  Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_TRAIN_VOCABULARY_H_
