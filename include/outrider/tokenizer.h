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
  // a .gguf file (a vocabulary-only one will do). Of a directory tokenizer.json counts, or where
  // there is none, tokenizer.model, spiece.model or sentencepiece.bpe.model. Throws Error when it
  // is none of these, is malformed, or needs a component this build does not know (the message
  // names it).
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& path);

  // The ids of `text`, with the special tokens the model's post-processor adds (a leading
  // beginning-of-sequence, for example) unless add_special is false. Special tokens spelled out in
  // the text are recognised whatever add_special is. Invalid UTF-8 is read as U+FFFD, one per
  // maximal bad subsequence.
  virtual std::vector<TokenId> encode(std::string_view text, bool add_special) const = 0;

  // The same, but what is spelled in the `literal` ranges is text and no added token: where a
  // spelling has a byte in one of them it is normalised, cut and merged with its neighbours as if
  // there were no such token. (White space that an added token takes along may be literal.) For
  // texts that hold a stranger's words. Ranges are of the text's bytes, in order, apart, within it,
  // or this throws Error; so does a tokenizer of another kind than load() makes, given any.
  virtual std::vector<TokenId> encode_with_literals(std::string_view text, bool add_special,
                                                    std::span<const TextRange> literal) const;
  // Where encode() would find added tokens, special ones among them: the bytes of their spellings,
  // in order. Where the tokenizer looks for a token in the normalised text, what becomes the
  // spelling there.
  virtual std::vector<TextRange> added_tokens_in(std::string_view text) const;

  // The text of `ids`, complete and valid UTF-8 (an unfinished sequence at the end becomes U+FFFD).
  // Special tokens are left out unless keep_special. Throws Error on an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool keep_special = false) const;

  // A decoding under way: both functions append the text that has become certain, always whole
  // characters. StreamingDecoder is the way to use it.
  class Decoding {
   public:
    virtual ~Decoding() = default;
    virtual void push(TokenId id, std::string& out) = 0;  // Error on an id outside the vocabulary
    virtual void finish(std::string& out) = 0;            // what is still held back; call it once
  };
  // The tokenizer must outlive the result.
  virtual std::unique_ptr<Decoding> start_decoding(bool keep_special) const = 0;

  // Ids may leave holes, and models may have more rows than there are tokens.
  virtual bool has(TokenId id) const = 0;
  // What one token is spelled as in the vocabulary file, for display. Error on an id without token.
  virtual std::string_view piece(TokenId id) const = 0;
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;
  // The bytes that one token adds within a text, perhaps a part of a character; none for special
  // tokens. Error on an id without token.
  virtual std::string bytes(TokenId id) const = 0;
  virtual int vocabulary_size() const = 0;
  virtual bool is_special(TokenId id) const = 0;
  // Whether the token's spelling in a text always becomes that token, before the text is cut and
  // merged: special tokens, and others that were added to the vocabulary.
  virtual bool is_added(TokenId id) const { return is_special(id); }

  // kNoToken where the files name none. (The model's own configuration may name more end tokens.)
  virtual TokenId bos_token() const = 0;
  virtual TokenId eos_token() const = 0;

  // The Jinja chat template stored with the tokenizer (tokenizer_config.json, chat_template.jinja
  // or GGUF metadata); empty if there is none.
  virtual const std::string& chat_template() const = 0;

  // What was doubtful about the files and was read all the same, a sentence each: ids of special
  // tokens outside the vocabulary, a GGUF file that does not say how its words are cut. None of it
  // is printed by the library.
  virtual const std::vector<std::string>& warnings() const;
  // The one stored for conversations with tools ("tool_use"), else that of all.
  virtual const std::string& tool_template() const { return chat_template(); }
  // A JSON object of the special tokens that the files name for templates: bos_token, eos_token,
  // unk_token, sep_token, pad_token, cls_token, mask_token (texts), additional_special_tokens (a
  // list of texts). Only those that are named.
  virtual const std::string& special_tokens() const;
};

// Throws Error unless `text` is UTF-8, naming its first other byte, that byte's line, and `name`:
// for whoever would rather be told than have encode() read U+FFFD there. Thread-safe.
void require_text(std::string_view text, std::string_view name);

// Decodes a stream of ids piece by piece: the concatenation of all that push() and finish() return
// equals decode() of all ids, and no returned piece ever ends within a UTF-8 character. What cannot
// be known yet is held back: an unfinished character; where the tokenizer spells unknown characters
// as byte tokens and wants a whole run of them to be valid, that run. Not thread-safe; the
// tokenizer must outlive it.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer& tokenizer, bool keep_special = false);
  std::string push(TokenId id);
  std::string finish();  // what is still held back; nothing may be pushed after it

 private:
  std::unique_ptr<Tokenizer::Decoding> decoding_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_H_
