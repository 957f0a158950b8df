// SPDX-License-Identifier: Apache-2.0
// The one implementation of Tokenizer, for all files: these parts in this order. Immutable,
// thread-safe.
//
//   encode: added tokens of the raw text; normaliser; added tokens of the normalised text;
//           pre-tokeniser; merges or the search for pieces; special tokens of the post-processor
//   decode: spellings of the tokens; decoder
#ifndef OUTRIDER_TOKENIZER_PIPELINE_TOKENIZER_H_
#define OUTRIDER_TOKENIZER_PIPELINE_TOKENIZER_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "outrider/tokenizer.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/merging/bpe.h"
#include "tokenizer/merging/unigram.h"
#include "tokenizer/patterns/pre_tokenizer.h"
#include "tokenizer/texts/normalizer.h"
#include "tokenizer/vocabulary.h"

namespace outrider {

// The tokens that the model's post-processor puts around one text.
struct Surroundings {
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
};

struct TokenizerParts {
  Vocabulary vocabulary;
  AddedTokens raw_added;         // found before the normaliser
  AddedTokens normalized_added;  // and after it; contents normalised
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::variant<Bpe, Unigram> model;
  Surroundings surroundings;
  // The decoder's input for each id, if that is not the spelling (n_tokens, or empty).
  std::vector<std::string> decoded;
  Decoder decoder;
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  std::string chat_template;
  std::vector<std::string> warnings;
  std::string tool_template;          // "": no separate one
  std::string special_tokens = "{}";  // JSON, as for Tokenizer::special_tokens
};

class PipelineTokenizer : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts);

  std::vector<TokenId> encode(std::string_view text, bool add_special) const override {
    return encode_with_literals(text, add_special, {});
  }
  std::vector<TokenId> encode_with_literals(std::string_view text, bool add_special,
                                            std::span<const TextRange> literal) const override;
  std::vector<TextRange> added_tokens_in(std::string_view text) const override;
  std::unique_ptr<Decoding> start_decoding(bool keep_special) const override;
  bool has(TokenId id) const override { return parts_.vocabulary.has(id); }
  std::string_view piece(TokenId id) const override;
  std::optional<TokenId> find(std::string_view piece) const override;
  std::string bytes(TokenId id) const override;
  int vocabulary_size() const override { return parts_.vocabulary.size(); }
  bool is_special(TokenId id) const override {
    return parts_.vocabulary.has(id) && parts_.vocabulary[id].special;
  }
  bool is_added(TokenId id) const override {
    return parts_.vocabulary.has(id) && parts_.vocabulary[id].added;
  }
  TokenId bos_token() const override { return parts_.bos; }
  TokenId eos_token() const override { return parts_.eos; }
  const std::string& chat_template() const override { return parts_.chat_template; }
  const std::vector<std::string>& warnings() const override { return parts_.warnings; }
  const std::string& tool_template() const override {
    return parts_.tool_template.empty() ? parts_.chat_template : parts_.tool_template;
  }
  const std::string& special_tokens() const override { return parts_.special_tokens; }

 private:
  friend class PipelineDecoding;
  const TokenEntry& entry(TokenId id) const;  // Error if there is none
  struct EncodeScratch;
  // Appends the tokens of normalised text between added tokens. at_start: it is the beginning of
  // encode()'s input. without_added: the result must not contain added tokens.
  void encode_words(std::string_view text, bool at_start, bool without_added,
                    EncodeScratch& scratch, std::vector<TokenId>& ids) const;

  TokenizerParts parts_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PIPELINE_TOKENIZER_H_
