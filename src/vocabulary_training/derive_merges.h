// From scored pieces to an ordered list of merges.
//
// SentencePiece's byte-pair encoder keeps no merges: any two neighbours whose text together is a
// piece may merge, the piece of the highest score first, the leftmost where a score occurs twice.
// A tokenizer.json merges by pairs, each with a rank of its own. Every way to split a piece in two
// other pieces therefore becomes a pair, and a piece's pairs stand together where its score puts
// them.
//
// How one piece's pairs are ordered among themselves does not matter, because only one of them ever
// comes up. Say two neighbours spell the piece X. Nothing has merged across the ends of X so far,
// so what happened within is what encoding X by itself does, step by step; and that passes through
// one state of two symbols only. Wherever two neighbours spell X, then, they are the same two, and
// by induction over the steps both encoders do the same: best piece, leftmost place.
#ifndef OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_
#define OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_

#include <span>
#include <vector>

#include "tokenizer/bpe.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider {

// The merges, best first, of `pieces` (n_pieces, by id). Only pieces of text take part; their
// scores differ.
std::vector<MergeRule> derive_merges(std::span<const LearntPiece> pieces);

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_
