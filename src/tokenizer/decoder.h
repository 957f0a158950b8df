// From token spellings back to text: a chain of steps, each a small machine that is fed one token
// at a time and passes on what is settled. decode() and streaming are the same code, so that they
// cannot differ. Decoder is immutable and thread-safe; a DecoderRun belongs to one thread.
#ifndef OUTRIDER_TOKENIZER_DECODER_H_
#define OUTRIDER_TOKENIZER_DECODER_H_

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/pattern.h"

namespace outrider {

struct DecodeReplace {
  Pattern pattern;
  std::string content;
};
// Runs of tokens "<0xXX>" become the characters their bytes spell; a run that is not well-formed
// UTF-8 becomes one U+FFFD per byte.
struct DecodeByteFallback {};
struct DecodeFuse {};  // from here on all tokens are one
// Takes up to `left` copies of `content` off the start and `right` off the end of every token.
struct DecodeStrip {
  std::string content;  // one character
  int left = 0;
  int right = 0;
};
// `replacement` becomes ' ', and vanishes from the first token if `drop_first`.
struct DecodeMetaspace {
  std::string replacement;  // one character
  bool drop_first = true;
};
// Tokens spelled in the byte-level alphabet; all of them make one text, repaired.
struct DecodeByteLevel {};
// Tokens are bytes as they are; all of them make one text, repaired.
struct DecodeBytes {};
// All that SentencePiece does: U+2581 becomes ' ', and byte tokens the characters their bytes
// spell, each byte that is part of none U+FFFD. Of the marks that begin a text the first vanishes,
// or one of each token up to the first that leaves text.
struct DecodeSentencePiece {
  enum class FirstMark { kStays, kVanishes, kVanishFromEach };
  bool byte_tokens = false;
  FirstMark first_mark = FirstMark::kStays;
};
struct DecodeSuffix {  // `suffix` becomes ' ', and vanishes from the last token
  std::string suffix;
};
struct DecodeJoin {  // a blank between tokens
};

using DecoderStep =
    std::variant<DecodeReplace, DecodeByteFallback, DecodeFuse, DecodeStrip, DecodeMetaspace,
                 DecodeByteLevel, DecodeBytes, DecodeSentencePiece, DecodeSuffix, DecodeJoin>;

// One step at work.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  // One whole token, or, where the steps before have fused them all, a stretch of the one token
  // there is. Both end on a character boundary, except before DecodeBytes.
  virtual void push(std::string_view text) = 0;
  virtual void finish() = 0;  // what was held back
};

// A chain at work, ending in a string.
class DecoderRun {
 public:
  void push(std::string_view token, std::string& out);
  void finish(std::string& out);

 private:
  friend class Decoder;
  std::vector<std::unique_ptr<DecoderStage>> stages_;  // in order; each knows the next
  std::unique_ptr<std::string> settled_ = std::make_unique<std::string>();  // the last one's output
};

class Decoder {
 public:
  Decoder() = default;
  explicit Decoder(std::vector<DecoderStep> steps) : steps_(std::move(steps)) {}
  DecoderRun start() const;
  // What a token becomes in the middle of a text, as bytes: those of an unfinished character are
  // left as they are.
  std::string bytes_of(std::string_view token) const;

 private:
  std::vector<DecoderStep> steps_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_DECODER_H_
