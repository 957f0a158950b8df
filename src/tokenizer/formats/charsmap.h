// SPDX-License-Identifier: Apache-2.0
// SentencePiece's table of character rewrites (precompiled_charsmap): rules that replace short
// texts. Model files have it, and tokenizer.json files that were made from one.
//
//   u32 (little-endian)  bytes of the tree
//   u32 ...              units of the tree, a double array in Darts-clone's layout
//   bytes ...            the replacements, each ended by a zero byte
//
// A unit leads to its children by an offset (bits 10 to 30, times 256 if bit 9 is set). The child
// for byte c is at position ^ offset ^ c and has c in its bits 0 to 7. Bit 8 says that a rule ends
// here. Then the unit at position ^ offset has bit 31 set and, in the other bits, the start of the
// rule's replacement. (Kanda, Morita and Fuketa, 2017, call the layout XOR-compressed.)
//
// The constructor validates all bytes, so later access is safe. Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_FORMATS_CHARSMAP_H_
#define OUTRIDER_TOKENIZER_FORMATS_CHARSMAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/texts/text_edits.h"

namespace outrider {

class Charsmap {
 public:
  struct Rule {
    std::size_t n_bytes;    // of the replaced text
    std::string_view text;  // the replacement; valid as long as the table
  };

  // Throws Error, with `place`, unless `bytes` is a valid table: sizes that fit, no loops, no keys
  // of absurd length, replacements in UTF-8, rules that begin within them.
  Charsmap(std::string_view bytes, const std::string& place);

  // The rules for the longest and for the shortest prefix of `text` that has one.
  std::optional<Rule> longest(std::string_view text) const;
  std::optional<Rule> shortest(std::string_view text) const;

 private:
  std::optional<Rule> find(std::string_view text, bool stop_at_first) const;
  void require_no_loops(const std::string& place) const;
  void require_rule(std::size_t at, const std::string& place) const;  // whose value is at `at`

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

// Rewrites `text` (well-formed UTF-8) as Hugging Face's tokenizers do. A grapheme of less than six
// bytes is replaced as a whole by the rule of its shortest prefix that has one; any other is
// rewritten character by character. Throws Error if the result would exceed max_bytes. Adds the
// changes to `edits`, if not null.
void map_graphemes(const Charsmap& map, std::string& text, std::size_t max_bytes,
                   TextEdits* edits = nullptr);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_CHARSMAP_H_
