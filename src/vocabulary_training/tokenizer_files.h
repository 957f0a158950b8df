// Pieces and merges as Hugging Face's files.
//
// Normaliser, decoder and post-processor are those that make fast tokenizers of Llama 2's kind
// equal SentencePiece: a blank before every text, U+2581 for every blank, no pre-tokeniser, bytes
// for what has no piece, <s> first. One difference is in the nature of the format: a special token
// spelt out in a text ("</s>") is that token here, and letters to SentencePiece.
#ifndef OUTRIDER_VOCABULARY_TRAINING_TOKENIZER_FILES_H_
#define OUTRIDER_VOCABULARY_TRAINING_TOKENIZER_FILES_H_

#include <span>
#include <string>

#include "tokenizer/bpe.h"
#include "vocabulary_training/learn_pieces.h"

namespace outrider {

// `merges` name pieces by id. Pieces 0, 1 and 2 are <unk>, <s> and </s>.
std::string tokenizer_json(std::span<const LearntPiece> pieces, std::span<const MergeRule> merges);

// What transformers' AutoTokenizer wants beside it: the class, and which tokens begin and end.
std::string tokenizer_config_json(std::span<const LearntPiece> pieces);

}  // namespace outrider

#endif  // OUTRIDER_VOCABULARY_TRAINING_TOKENIZER_FILES_H_
