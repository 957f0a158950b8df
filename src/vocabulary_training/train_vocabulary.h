// SPDX-License-Identifier: Apache-2.0
// Learns a vocabulary from text and writes it as a Hugging Face directory. Only the program links
// it; the library itself needs no SentencePiece.
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
  std::string tokenizer_model;  // SentencePiece's own file
  int n_pieces = 0;             // in all
  int n_merged = 0;             // of more than one character
  int n_characters = 0;         // of one
};

// Runs learn_pieces(), with its errors, and builds the files from its result. The same lines and
// options give the same bytes.
TrainedVocabulary train_vocabulary(LineSample& lines, const PieceOptions& options);

// Writes a directory of tokenizer.json, tokenizer_config.json and, if requested, tokenizer.model.
class VocabularyDirectory {
 public:
  struct Options {
    bool overwrite = false;   // replace existing files of these names
    bool keep_model = false;  // also write tokenizer.model
  };

  // Throws Error at once if the directory could not be written later, or if it has a file of one of
  // the three names and overwrite is off. Changes no file.
  VocabularyDirectory(const std::filesystem::path& path, const Options& options);

  // A new directory appears whole or not at all (its parents are created as needed). In an existing
  // directory each file is replaced as a whole, tokenizer.json last; a tokenizer.model of another
  // vocabulary is removed. Throws Error, and then leaves no temporary file.
  void write(const TrainedVocabulary& vocabulary) const;

 private:
  std::filesystem::path path_;
  Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_TRAIN_VOCABULARY_H_
