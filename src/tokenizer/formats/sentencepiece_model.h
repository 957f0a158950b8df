// SPDX-License-Identifier: Apache-2.0
// Reader for SentencePiece's model files (.model, .spm): the fields of sentencepiece_model.proto
// that determine tokenisation. Fields for training are skipped, and so are the samples for
// self-tests.
#ifndef OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_MODEL_H_
#define OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_MODEL_H_

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The numbers in the file; GGUF's token types are the same.
enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct SentencePiece {
  std::string text;
  float score = 0;  // finite
  PieceType type = PieceType::kNormal;
};

// Defaults are the format's.
struct SentencePieceModel {
  enum class Kind { kUnigram = 1, kBpe = 2 };
  std::vector<SentencePiece> pieces;  // by id
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;  // a character without a piece becomes pieces "<0xXX>"
  std::string beginning = "<s>";
  std::string end = "</s>";
  // Normalisation rules (SentencePieceRules).
  std::string charsmap;  // "": none
  bool add_blank = true;
  bool blank_is_suffix = false;
  bool single_blanks = true;
  bool mark_blanks = true;
};

// `description` names the file in errors. Throws Error unless `bytes` is a model that SentencePiece
// itself would load, of kind Unigram or BPE, without a denormaliser.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes,
                                             const std::string& description);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_MODEL_H_
