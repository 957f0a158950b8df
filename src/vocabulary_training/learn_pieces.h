// SentencePiece's byte-pair trainer, behind types of our own.
//
// It is the one place that knows SentencePiece. Built without it, learn_pieces() throws
// (learn_pieces_absent.cc stands in for learn_pieces.cc).
#ifndef OUTRIDER_VOCABULARY_TRAINING_LEARN_PIECES_H_
#define OUTRIDER_VOCABULARY_TRAINING_LEARN_PIECES_H_

#include <string>
#include <vector>

#include "vocabulary_training/training_text.h"

namespace outrider {

enum class PieceKind {
  kText,     // stands for its own text, U+2581 for a blank
  kByte,     // "<0x0A>": one byte of a character that is no piece
  kSpecial,  // <unk>, <s>, </s>: never comes of text
};

struct LearntPiece {
  std::string text;
  PieceKind kind = PieceKind::kText;
  double score = 0;  // of text: when encoding, the higher merges first
};

struct PieceOptions {
  int vocabulary_size = 0;
  // The share of all characters of the text that must be pieces, the frequent ones first, in
  // [0.98, 1]; the others are spelt with byte pieces.
  double character_coverage = 1;
};

struct LearntPieces {
  std::vector<LearntPiece> pieces;  // by id: <unk>, <s>, </s>, 256 bytes, merged pieces, characters
  std::string model;                // SentencePiece's own file of them
};

// Learns `vocabulary_size` pieces by byte-pair encoding (Sennrich, Haddow and Birch, 2016) from the
// lines left in `lines`: text as it stands (no normal form, every blank kept), digits one by one, a
// blank put before every line. A function of the lines and options alone: one thread, no random
// choice. Throws Error if the text has no piece but blanks, and UsageError if it holds more
// characters than the vocabulary has room for or fewer pieces than it asks for. Not thread-safe:
// SentencePiece keeps its log level in a global.
LearntPieces learn_pieces(LineSample& lines, const PieceOptions& options);

// Throws Error if this build has no SentencePiece.
void require_sentencepiece();

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_LEARN_PIECES_H_
