// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/train_vocabulary.h"

#include <utility>

#include "tokenizer/texts/utf8.h"
#include "vocabulary_training/derive_merges.h"
#include "vocabulary_training/tokenizer_files.h"

namespace outrider {

TrainedVocabulary train_vocabulary(LineSample& lines, const PieceOptions& options) {
  LearntPieces learnt = learn_pieces(lines, options);
  TrainedVocabulary vocabulary;
  vocabulary.tokenizer_json = tokenizer_json(learnt.pieces, derive_merges(learnt.pieces));
  vocabulary.tokenizer_config_json = tokenizer_config_json(learnt.pieces);
  vocabulary.tokenizer_model = std::move(learnt.model);
  vocabulary.n_pieces = static_cast<int>(learnt.pieces.size());
  for (const LearntPiece& piece : learnt.pieces) {
    if (piece.kind != PieceKind::kText) continue;
    ++(is_one_character(piece.text) ? vocabulary.n_characters : vocabulary.n_merged);
  }
  return vocabulary;
}

}  // namespace outrider
