// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back.
#ifndef OUTRIDER_TOKENIZER_H_
#define OUTRIDER_TOKENIZER_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// A model's tokenizer. Immutable after loading; all methods are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // PATH is a Hugging Face directory, a tokenizer.json, a SentencePiece model (*.model, *.spm), or
  // a .gguf file (with or without weights). In a directory, tokenizer.json is read; without one,
  // tokenizer.model, spiece.model or sentencepiece.bpe.model. Throws Error if it is none of these,
  // is malformed, or needs an unknown component (the message names it).
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& path);

  // The ids of `text`. With add_special, adds the special tokens of the model's post-processor (for
  // example a leading beginning-of-sequence token). Special tokens spelled out in the text are
  // recognised in either case. Invalid UTF-8 is read as U+FFFD, one per maximal bad subsequence.
  virtual std::vector<TokenId> encode(std::string_view text, bool add_special) const = 0;

  // As encode(), but `literal` ranges are plain text, for untrusted input. An added token with a
  // byte of its spelling in such a range is not recognised; the bytes are normalised, cut and
  // merged as if there were no such token. (White space that an added token absorbs may be
  // literal.) Ranges are byte ranges of the text, ascending and disjoint. Throws Error for other
  // ranges, and for any range if the tokenizer is of a kind that load() does not make.
  virtual std::vector<TokenId> encode_with_literals(std::string_view text, bool add_special,
                                                    std::span<const TextRange> literal) const;
  // The byte ranges in which encode() would find added tokens, including special ones, in order. If
  // the tokenizer searches the normalised text, these are the ranges that normalise to the
  // spelling.
  virtual std::vector<TextRange> added_tokens_in(std::string_view text) const;

  // The text of `ids`, complete and valid UTF-8 (an unfinished sequence at the end becomes U+FFFD).
  // Special tokens are left out unless keep_special. Throws Error on an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool keep_special = false) const;

  // The state of a decoding. Both functions append the text that has become certain, always whole
  // characters. Use it through StreamingDecoder.
  class Decoding {
   public:
    virtual ~Decoding() = default;
    virtual void push(TokenId id, std::string& out) = 0;  // Error on an id outside the vocabulary
    virtual void finish(std::string& out) = 0;            // appends what is held back; call it once
  };
  // The tokenizer must outlive the result.
  virtual std::unique_ptr<Decoding> start_decoding(bool keep_special) const = 0;

  // Whether an id has a token: ids may have gaps, and models may have more rows than tokens.
  virtual bool has(TokenId id) const = 0;
  // The token's spelling in the vocabulary file, for display. Error on an id without a token.
  virtual std::string_view piece(TokenId id) const = 0;
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;
  // The bytes that one token adds within a text, possibly a part of a character; none for special
  // tokens. Error on an id without a token.
  virtual std::string bytes(TokenId id) const = 0;
  virtual int vocabulary_size() const = 0;
  virtual bool is_special(TokenId id) const = 0;
  // Whether the token's spelling in a text always becomes that token, before the text is cut and
  // merged. True for special tokens and others that were added to the vocabulary.
  virtual bool is_added(TokenId id) const { return is_special(id); }

  // kNoToken if the files name none. (The model's configuration may name further end tokens.)
  virtual TokenId bos_token() const = 0;
  virtual TokenId eos_token() const = 0;

  // The Jinja chat template stored with the tokenizer (tokenizer_config.json, chat_template.jinja
  // or GGUF metadata); empty if there is none.
  virtual const std::string& chat_template() const = 0;

  // Doubtful points of the files that did not stop loading, a sentence each: for example special
  // token ids outside the vocabulary, or a GGUF file that names no pre-tokeniser. The library
  // prints none of them.
  virtual const std::vector<std::string>& warnings() const;
  // The chat template for conversations with tools ("tool_use"), or else the general one.
  virtual const std::string& tool_template() const { return chat_template(); }
  // A JSON object of the special tokens that the files name for templates: bos_token, eos_token,
  // unk_token, sep_token, pad_token, cls_token, mask_token (texts), additional_special_tokens (a
  // list of texts). Only those that are named.
  virtual const std::string& special_tokens() const;
};

// Throws Error unless `text` is valid UTF-8, with the first invalid byte, its line, and `name`.
// encode() reads U+FFFD there instead. Thread-safe.
void require_text(std::string_view text, std::string_view name);

// Decodes a stream of ids piece by piece. The concatenation of all results of push() and finish()
// equals decode() of all ids, and no result ends within a UTF-8 character. Text that is not certain
// yet is held back: an unfinished character, or a run of byte tokens if the tokenizer accepts only
// whole valid runs. Not thread-safe; the tokenizer must outlive it.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer& tokenizer, bool keep_special = false);
  std::string push(TokenId id);
  std::string finish();  // returns what is held back; do not push after it

 private:
  std::unique_ptr<Tokenizer::Decoding> decoding_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_H_
