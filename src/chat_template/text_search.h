// Looking for parts of texts, cutting texts at them and replacing them, by Python's rules. Texts
// are well-formed UTF-8; results point into them.
#ifndef OUTRIDER_CHAT_TEMPLATE_TEXT_SEARCH_H_
#define OUTRIDER_CHAT_TEMPLATE_TEXT_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/value.h"

namespace outrider::jinja {

// Where `part` stands in `text` from `at` on, npos if nowhere, in time in proportion to the text,
// whatever both hold (std::string's find takes the product of both lengths where much of a part
// repeats).
std::size_t place_in(std::string_view text, std::string_view part, std::size_t at = 0);

std::size_t count_characters(std::string_view text);
// Where the character of that number begins; there are as many at least.
std::size_t byte_offset(std::string_view text, std::int64_t n_characters);

// `most` splits at most, or all if it is negative; counted from the right if from_right.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::int64_t most, bool from_right);
// At runs of white space; none of it stays but behind the last split.
std::vector<std::string_view> split_at_blanks(std::string_view text, std::int64_t most,
                                              bool from_right);
// The first `most` occurrences, or all if it is negative; an empty `part` stands around every
// character. Throws Problem where a limit is passed.
std::string replaced(std::string_view text, std::string_view part, std::string_view by,
                     std::int64_t most, Heap& heap);

// Whether all letters that have a case have that one, and there are any.
bool all_cased_upper(std::string_view text);
bool all_cased_lower(std::string_view text);

// In the middle of a field, as Python's str.center has it.
std::string centered(std::string_view text, std::int64_t width, std::string_view fill);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_TEXT_SEARCH_H_
