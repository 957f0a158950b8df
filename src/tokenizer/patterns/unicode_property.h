// SPDX-License-Identifier: Apache-2.0
// Oniguruma's named sets of characters (\p{..} and [:..:] in patterns), written for PCRE2.
// Thread-safe.
#ifndef OUTRIDER_TOKENIZER_PATTERNS_UNICODE_PROPERTY_H_
#define OUTRIDER_TOKENIZER_PATTERNS_UNICODE_PROPERTY_H_

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// Contents of a PCRE2 character class (options UTF, UCP).
struct UnicodeProperty {
  std::string within;
  std::string without;  // the other characters; empty if contents of a class cannot express them
};

// By general category (short or long name), POSIX name, binary property or script; case, blanks,
// hyphens and underscores are ignored. nullopt if there cannot be such a name; PCRE2 checks the
// names of scripts.
std::optional<UnicodeProperty> find_unicode_property(std::string_view name);

// [:name:] within a class; Oniguruma adds "word" and "ascii" to POSIX's. nullopt if there is none.
std::optional<UnicodeProperty> find_posix_class(std::string_view name);

// Oniguruma's \w within a class; and by itself, or for \b, which includes some numbers of Latin-1.
#define OUTRIDER_WORD_CHARACTERS                                                           \
  R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169})" \
  R"(\x{1f170}-\x{1f189})"
inline constexpr std::string_view kWordInClass = OUTRIDER_WORD_CHARACTERS;
inline constexpr std::string_view kWordAlone =
    OUTRIDER_WORD_CHARACTERS R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
#undef OUTRIDER_WORD_CHARACTERS

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PATTERNS_UNICODE_PROPERTY_H_
