// Reader for SentencePiece's model files (.model, .spm): the fields of sentencepiece_model.proto
// that decide how texts are cut. What training alone used is passed over, and so are the samples
// that a file may hold to test itself with.
#ifndef OUTRIDER_TOKENIZER_SENTENCEPIECE_MODEL_H_
#define OUTRIDER_TOKENIZER_SENTENCEPIECE_MODEL_H_

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// By their numbers in the file; GGUF's token types are the same.
enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct SentencePiece {
  std::string text;
  float score = 0;  // finite
  PieceType type = PieceType::kNormal;
};

// Defaults are the format's own.
struct SentencePieceModel {
  enum class Kind { kUnigram = 1, kBpe = 2 };
  std::vector<SentencePiece> pieces;  // by id
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;  // a character without piece becomes pieces "<0xXX>"
  std::string beginning = "<s>";
  std::string end = "</s>";
  // The rules for texts (SentencePieceRules).
  std::string charsmap;  // "": none
  bool add_blank = true;
  bool blank_is_suffix = false;
  bool single_blanks = true;
  bool mark_blanks = true;
};

// `description` names the file in errors. Throws Error unless `bytes` is a model that SentencePiece
// itself would load, of kind Unigram or BPE, and does nothing to texts it decodes.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes,
                                             const std::string& description);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_SENTENCEPIECE_MODEL_H_
