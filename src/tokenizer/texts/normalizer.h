// SPDX-License-Identifier: Apache-2.0
// Rewrites raw text before it is cut: Unicode normal forms, replacements, case. A list of steps,
// applied in order. Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_TEXTS_NORMALIZER_H_
#define OUTRIDER_TOKENIZER_TEXTS_NORMALIZER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/formats/charsmap.h"
#include "tokenizer/formats/sentencepiece_rules.h"
#include "tokenizer/patterns/pattern.h"
#include "tokenizer/texts/text_edits.h"

namespace outrider {

struct PrependText {  // not before an empty text
  std::string text;
};
struct ReplaceAll {  // replaces every match by `content`, literally
  Pattern pattern;
  std::string content;
};
struct UnicodeForm {
  bool compose;        // NFC, NFKC; otherwise NFD, NFKD
  bool compatibility;  // NFKC, NFKD
};
struct LowercaseText {};
struct StripWhitespace {
  bool left;
  bool right;
};
struct StripMarks {};  // drops combining marks (after NFD: the accents)
struct SpellBytes {};  // every byte becomes its character of the byte-level alphabet
struct MapGraphemes {  // a SentencePiece table as Hugging Face's tokenizers apply it; never null
  std::shared_ptr<const Charsmap> map;
};
// Drops control characters; line ends, tabs, direction marks and the like become blanks.
struct CleanControls {};

// SentencePieceRules is the whole normalisation of a SentencePiece model.
using NormalizerStep =
    std::variant<PrependText, ReplaceAll, UnicodeForm, LowercaseText, StripWhitespace, StripMarks,
                 SpellBytes, MapGraphemes, CleanControls, SentencePieceRules>;

class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}
  bool empty() const { return steps_.empty(); }
  // Rewrites `text`; input and result are well-formed UTF-8. Throws Error if the result is many
  // times larger than any script requires.
  void apply(std::string& text, MatchScratch& scratch) const;
  // The same; adds the changes of each step relative to the text before it.
  void apply(std::string& text, MatchScratch& scratch, std::vector<TextEdits>& edits) const;

 private:
  void apply_steps(std::string& text, MatchScratch& scratch, std::vector<TextEdits>* edits) const;

  std::vector<NormalizerStep> steps_;
};

// Throws Error if a normaliser's result exceeds the limit.
void require_normalized_size(std::size_t n_bytes, std::size_t max_bytes);

// Replaces every match of `pattern` in `text` by `content`. Throws Error if the result would exceed
// max_bytes. Adds the changes to `edits`, if not null.
void replace_all(std::string& text, const Pattern& pattern, std::string_view content,
                 std::size_t max_bytes, MatchScratch& scratch, TextEdits* edits = nullptr);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_NORMALIZER_H_
