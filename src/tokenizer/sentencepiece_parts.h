// From a SentencePiece model to a tokenizer that cuts and decodes texts as SentencePiece does, but
// for two things that all tokenizers here have in common. A control token or the unknown one that a
// text spells out ("</s>") is that token; to SentencePiece it is text like any other. And decoding
// leaves the unknown token out, where SentencePiece writes " \u2047 ".
//
// User-defined symbols are pieces that nothing before them rewrites. In BPE models they are found
// before anything merges, as added tokens of the normalised text. In Unigram models they compete
// with other pieces, at a score that these do not reach.
#ifndef OUTRIDER_TOKENIZER_SENTENCEPIECE_PARTS_H_
#define OUTRIDER_TOKENIZER_SENTENCEPIECE_PARTS_H_

#include <span>
#include <string>

#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/sentencepiece_model.h"

namespace outrider {

// What the files beside a model say about it.
struct SentencePieceSurroundings {
  std::span<const AddedToken> added;  // found in the raw text; some may be pieces of the model
  // Where a blank is put if the model adds one: before each stretch of text between two added
  // tokens, before the text alone, or nowhere.
  enum class Blank { kEachStretch, kText, kNone };
  Blank blank = Blank::kEachStretch;
};

// The beginning and end tokens are the model's own, and none is put around texts. `description`
// names the file in errors. Throws Error if the model's table of rewrites is broken, a token is
// there twice, or an added token has another id than its piece, or one far outside the vocabulary.
TokenizerParts sentencepiece_parts(const SentencePieceModel& model, const std::string& description,
                                   const SentencePieceSurroundings& around = {});

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_SENTENCEPIECE_PARTS_H_
