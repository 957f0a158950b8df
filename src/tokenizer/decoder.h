// SPDX-License-Identifier: Apache-2.0
// From token spellings back to text: a chain of steps, each of which receives one token at a time
// and passes on text that is certain. decode() and streaming use the same code, so they cannot
// differ. Decoder is immutable and thread-safe; a DecoderRun belongs to one thread.
#ifndef OUTRIDER_TOKENIZER_DECODER_H_
#define OUTRIDER_TOKENIZER_DECODER_H_

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/patterns/pattern.h"

namespace outrider {

struct DecodeReplace {
  Pattern pattern;
  std::string content;
};
// Runs of tokens "<0xXX>" become the characters their bytes spell; a run that is not well-formed
// UTF-8 becomes one U+FFFD per byte.
struct DecodeByteFallback {};
struct DecodeFuse {};  // from here on all tokens are joined to one
// Removes up to `left` copies of `content` at the start and `right` at the end of every token.
struct DecodeStrip {
  std::string content;  // one character
  int left = 0;
  int right = 0;
};
// `replacement` becomes ' ', and is removed from the first token if `drop_first`.
struct DecodeMetaspace {
  std::string replacement;  // one character
  bool drop_first = true;
};
// Tokens are spelled in the byte-level alphabet; all of them make one text, repaired.
struct DecodeByteLevel {};
// Tokens are raw bytes; all of them make one text, repaired.
struct DecodeBytes {};
// All of SentencePiece's decoding. U+2581 becomes ' ', and byte tokens become the characters of
// their bytes; each byte outside a character becomes U+FFFD. Of the marks that begin a text, none
// or the first is removed, or one of each token up to the first that leaves text.
struct DecodeSentencePiece {
  enum class FirstMark { kStays, kVanishes, kVanishFromEach };
  bool byte_tokens = false;
  FirstMark first_mark = FirstMark::kStays;
};
struct DecodeSuffix {  // `suffix` becomes ' ', and is removed from the last token
  std::string suffix;
};
struct DecodeJoin {  // a blank between tokens
};

using DecoderStep =
    std::variant<DecodeReplace, DecodeByteFallback, DecodeFuse, DecodeStrip, DecodeMetaspace,
                 DecodeByteLevel, DecodeBytes, DecodeSentencePiece, DecodeSuffix, DecodeJoin>;

// One active step.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  // Receives one whole token or, after a step that joins all tokens, a stretch of the joined one.
  // Both end on a character boundary, except before DecodeBytes.
  virtual void push(std::string_view text) = 0;
  virtual void finish() = 0;  // passes on what was held back
};

// An active chain that ends in a string.
class DecoderRun {
 public:
  void push(std::string_view token, std::string& out);
  void finish(std::string& out);

 private:
  friend class Decoder;
  std::vector<std::unique_ptr<DecoderStage>> stages_;  // in order; each has a pointer to the next
  std::unique_ptr<std::string> settled_ = std::make_unique<std::string>();  // the last one's output
};

class Decoder {
 public:
  Decoder() = default;
  explicit Decoder(std::vector<DecoderStep> steps) : steps_(std::move(steps)) {}
  DecoderRun start() const;
  // The bytes of a token in the middle of a text, including those of an unfinished character.
  std::string bytes_of(std::string_view token) const;

 private:
  std::vector<DecoderStep> steps_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_DECODER_H_
