// SPDX-License-Identifier: Apache-2.0
// Replaces learn_pieces.cc if SentencePiece was not found.
#include "outrider/error.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider {

void require_sentencepiece() {
  throw Error("train tokenizer", "this build",
              "SentencePiece (scripts/install-deps train, then build)", "none");
}

LearntPieces learn_pieces(LineSample&, const PieceOptions&) {
  require_sentencepiece();
  return {};
}

}  // namespace outrider
