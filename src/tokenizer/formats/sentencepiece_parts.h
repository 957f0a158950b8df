// SPDX-License-Identifier: Apache-2.0
// Makes a tokenizer from a SentencePiece model. It cuts and decodes texts as SentencePiece does,
// with two exceptions that all tokenizers here share. A control token or the unknown token spelled
// out in a text ("</s>") becomes that token; SentencePiece treats it as text. And decoding leaves
// the unknown token out, where SentencePiece writes " \u2047 ".
//
// User-defined symbols are pieces that no rule rewrites. In BPE models they are found before
// merging, as added tokens of the normalised text. In Unigram models they compete with other
// pieces, at a score that these do not reach.
#ifndef OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_PARTS_H_
#define OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_PARTS_H_

#include <span>
#include <string>

#include "tokenizer/formats/sentencepiece_model.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace outrider {

// Information from the files beside a model.
struct SentencePieceSurroundings {
  std::span<const AddedToken> added;  // found in the raw text; some may be pieces of the model
  // Where a blank is put if the model adds one: before each stretch of text between two added
  // tokens, before the text alone, or nowhere.
  enum class Blank { kEachStretch, kText, kNone };
  Blank blank = Blank::kEachStretch;
};

// The beginning and end tokens are the model's, and texts get none. `description` names the file in
// errors. Throws Error if the model's table of rewrites is invalid or a token is repeated. It also
// throws if an added token's id differs from its piece's or is far outside the vocabulary.
TokenizerParts sentencepiece_parts(const SentencePieceModel& model, const std::string& description,
                                   const SentencePieceSurroundings& around = {});

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_PARTS_H_
