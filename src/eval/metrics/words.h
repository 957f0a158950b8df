// SPDX-License-Identifier: Apache-2.0
// Text as metrics see it. The metrics here were first written in Python; for characters these
// functions behave as Python's strings do. Pure and thread-safe.
#ifndef OUTRIDER_EVAL_METRICS_WORDS_H_
#define OUTRIDER_EVAL_METRICS_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

namespace outrider::eval {

// The text's characters; each bad UTF-8 subsequence is one U+FFFD.
std::u32string characters(std::string_view text);
std::string to_utf8(std::u32string_view characters);

// White space as for str.split() and str.strip(): the property White_Space, and the four separators
// U+001C to U+001F.
bool is_space(char32_t value);
std::vector<std::u32string> split_words(std::u32string_view text);
std::u32string_view strip(std::u32string_view text);
std::u32string_view strip_right(std::u32string_view text);

// Lower case, character by character. Of the mappings to several characters it has the one without
// context (U+0130). A capital sigma becomes a medial one; str.lower() gives a final one at the end
// of words.
std::u32string lower_case(std::u32string_view text);

// \w of Python's re: letters, numbers and the underscore.
bool is_word_character_in_python(char32_t value);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_WORDS_H_
