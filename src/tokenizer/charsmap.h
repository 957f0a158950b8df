// SentencePiece's table of character rewrites (precompiled_charsmap): which short texts become
// which others. Model files have it, and tokenizer.json where it was made from one.
//
//   u32 (little-endian)  bytes of the tree
//   u32 ...              units of the tree, a double array as Darts-clone lays it out
//   bytes ...            the texts put in, each ended by a zero byte
//
// A unit leads to its children by an offset (bits 10 to 30, times 256 if bit 9 is set): the child
// for byte c stands at position ^ offset ^ c and has c in its bits 0 to 7. Bit 8 says that a rule
// ends here; then the unit at position ^ offset has bit 31 set and, in the others, where in the
// texts the rule's begins. (Kanda, Morita and Fuketa, 2017, call the layout XOR-compressed.)
//
// What was read is safe whatever the bytes were. Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_CHARSMAP_H_
#define OUTRIDER_TOKENIZER_CHARSMAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text_edits.h"

namespace outrider {

class Charsmap {
 public:
  struct Rule {
    std::size_t n_bytes;    // of the text that is rewritten
    std::string_view text;  // what it becomes; valid as long as the table
  };

  // Throws Error, naming `place`, unless `bytes` is a table: sizes that fit, no loops, no keys of
  // absurd length, texts in UTF-8, rules that begin within them.
  Charsmap(std::string_view bytes, const std::string& place);

  // The rules for the longest and for the shortest beginning of `text` that has one.
  std::optional<Rule> longest(std::string_view text) const;
  std::optional<Rule> shortest(std::string_view text) const;

 private:
  std::optional<Rule> find(std::string_view text, bool stop_at_first) const;
  void require_no_loops(const std::string& place) const;
  void require_rule(std::size_t at, const std::string& place) const;  // whose value stands at `at`

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

// Rewrites `text` (well-formed UTF-8) as Hugging Face's tokenizers do: a grapheme of less than six
// bytes becomes what its shortest beginning with a rule does, whole; any other is taken character
// by character. Throws Error if more than most_bytes would come of it. Adds what changed to
// `edits`, if that is not null.
void map_graphemes(const Charsmap& map, std::string& text, std::size_t most_bytes,
                   TextEdits* edits = nullptr);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_CHARSMAP_H_
