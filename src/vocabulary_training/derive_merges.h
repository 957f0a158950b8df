// SPDX-License-Identifier: Apache-2.0
// Derives an ordered list of merges from scored pieces.
//
// SentencePiece's byte-pair encoder stores no merges. Any two neighbours whose joined text is a
// piece may merge; the piece of the highest score goes first, and of equal pieces the leftmost. A
// tokenizer.json lists pairs to merge, each with a rank. Therefore every way to split a piece into
// two other pieces becomes a pair, and the pairs of a piece are ranked together by the piece's
// score.
//
// The order among the pairs of one piece does not matter, because only one of them can occur.
// Suppose two neighbours spell the piece X. Nothing has merged across the ends of X so far, so the
// merges within X are those of encoding X alone, step by step. That encoding passes through only
// one state of two symbols. So wherever two neighbours spell X, they are the same two symbols. By
// induction over the steps both encoders do the same: best piece, leftmost place.
#ifndef OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_
#define OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_

#include <span>
#include <vector>

#include "tokenizer/merging/bpe.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider {

// The merges of `pieces` (n_pieces, by id), best first. Only text pieces take part; their scores
// must differ.
std::vector<MergeRule> derive_merges(std::span<const LearntPiece> pieces);

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_
