// SPDX-License-Identifier: Apache-2.0
// Searches for parts of texts, splits texts at them and replaces them, by Python's rules. Texts
// must be well-formed UTF-8; results point into them.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_TEXT_SEARCH_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_TEXT_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// The position of `part` in `text` from `at` on, npos if there is none. The time is linear in the
// text for any input; for repetitive parts std::string's find takes the product of both lengths.
std::size_t place_in(std::string_view text, std::string_view part, std::size_t at = 0);

std::size_t count_characters(std::string_view text);
// The first byte of the character with that number; the text must have that many.
std::size_t byte_offset(std::string_view text, std::int64_t n_characters);

// At most `max_splits` splits, or all if it is negative; counted from the right if from_right.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::int64_t max_splits, bool from_right);
// At runs of white space, which is dropped except after the last split.
std::vector<std::string_view> split_at_blanks(std::string_view text, std::int64_t max_splits,
                                              bool from_right);
// The first `max_replaced` occurrences, or all if it is negative; an empty `part` occurs around
// every character. Throws Problem if a limit is exceeded.
std::string replaced(std::string_view text, std::string_view part, std::string_view by,
                     std::int64_t max_replaced, Heap& heap);

// Whether there are letters with a case, and all of them have this case.
bool all_cased_upper(std::string_view text);
bool all_cased_lower(std::string_view text);

// Centred in a field, as by Python's str.center.
std::string centered(std::string_view text, std::int64_t width, std::string_view fill);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_TEXT_SEARCH_H_
