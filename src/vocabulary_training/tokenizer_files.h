// SPDX-License-Identifier: Apache-2.0
// Writes pieces and merges in the format of Hugging Face's files.
//
// Normaliser, decoder and post-processor make fast tokenizers of Llama 2's kind equal to
// SentencePiece: a blank before every text, U+2581 for every blank, no pre-tokeniser, bytes for
// text without a piece, <s> first. One difference is inherent in the format: a special token
// written out in a text ("</s>") becomes that token here, and letters in SentencePiece.
#ifndef OUTRIDER_VOCABULARY_TRAINING_TOKENIZER_FILES_H_
#define OUTRIDER_VOCABULARY_TRAINING_TOKENIZER_FILES_H_

#include <span>
#include <string>

#include "tokenizer/merging/bpe.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider {

// `merges` refer to pieces by id. Pieces 0, 1 and 2 are <unk>, <s> and </s>.
std::string tokenizer_json(std::span<const LearntPiece> pieces, std::span<const MergeRule> merges);

// The further file that transformers' AutoTokenizer requires: the class, and the begin and end
// tokens.
std::string tokenizer_config_json(std::span<const LearntPiece> pieces);

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_TOKENIZER_FILES_H_
