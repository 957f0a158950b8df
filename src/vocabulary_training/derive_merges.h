// From scored pieces to an ordered list of merges.
//
// SentencePiece's byte-pair encoder keeps no merges: any two neighbours whose text together is a
// piece may merge, the piece of the highest score first, the leftmost where a score occurs twice.
// A tokenizer.json merges by pairs, each with a rank of its own. Every way to split a piece in two
// other pieces therefore becomes a pair, and a piece's pairs stand together where its score puts
// them.
//
// What is left to choose is the order of one piece's pairs. It matters where two of them overlap in
// three neighbours a, b, c with ab = bc: SentencePiece takes the left one. With i = |a| and
// j = |b| = |bc| - i, the two pairs split the piece at i and at j, and ab = bc says that the piece
// has the period i. So where a piece has the period i, its split at i goes before that at its
// length - i. Both being periods, the piece is a repetition of one text (Fine and Wilf, 1965);
// merged from the left, these leave their longer halves in front, and the longer left half goes
// first.
#ifndef OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_
#define OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_

#include <span>
#include <vector>

#include "tokenizer/bpe.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider {

// The merges, best first, of `pieces` (n_pieces, by id). Only pieces of text take part.
std::vector<MergeRule> derive_merges(std::span<const LearntPiece> pieces);

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_DERIVE_MERGES_H_
