// SPDX-License-Identifier: Apache-2.0
// SentencePiece's byte-pair trainer with Outrider's types.
//
// No other file includes SentencePiece. In a build without it, learn_pieces() throws
// (learn_pieces_absent.cc replaces learn_pieces.cc).
#ifndef OUTRIDER_VOCABULARY_TRAINING_LEARN_PIECES_H_
#define OUTRIDER_VOCABULARY_TRAINING_LEARN_PIECES_H_

#include <string>
#include <vector>

#include "vocabulary_training/training_text.h"

namespace outrider {

enum class PieceKind {
  kText,     // its text, with U+2581 for a blank
  kByte,     // "<0x0A>": one byte of a character that is not a piece
  kSpecial,  // <unk>, <s>, </s>: never produced from text
};

struct LearntPiece {
  std::string text;
  PieceKind kind = PieceKind::kText;
  double score = 0;  // of text pieces: when encoding, the higher score merges first
};

struct PieceOptions {
  int vocabulary_size = 0;
  // The share of the text's characters that must be pieces, the most frequent first, in [0.98, 1].
  // The others are encoded as byte pieces.
  double character_coverage = 1;
};

struct LearntPieces {
  std::vector<LearntPiece> pieces;  // by id: <unk>, <s>, </s>, 256 bytes, merged pieces, characters
  std::string model;                // SentencePiece's own model file
};

// Learns `vocabulary_size` pieces by byte-pair encoding (Sennrich, Haddow and Birch, 2016) from the
// remaining lines of `lines`. Text is not normalised and every blank is kept. Digits are separate
// pieces, and a blank is put before every line. The result depends only on the lines and options:
// one thread, no random choice. Throws Error if the text has no piece but blanks. Throws UsageError
// if the text has more characters than the vocabulary has room for, or too few pieces for it. Not
// thread-safe: SentencePiece keeps its log level in a global.
LearntPieces learn_pieces(LineSample& lines, const PieceOptions& options);

// Throws Error if this build has no SentencePiece.
void require_sentencepiece();

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_LEARN_PIECES_H_
