// Named sets of characters as Oniguruma has them (\p{..} and [:..:] in patterns), spelled for
// PCRE2. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_UNICODE_PROPERTY_H_
#define OUTRIDER_TOKENIZER_UNICODE_PROPERTY_H_

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// Insides of a character class of PCRE2 (options UTF, UCP).
struct UnicodeProperty {
  std::string within;
  std::string without;  // the other characters; empty where no class inside says it
};

// By general category (short or long name), POSIX name, binary property or script; case, blanks,
// hyphens and underscores do not count. nullopt if there cannot be such a name; PCRE2 knows which
// scripts there are.
std::optional<UnicodeProperty> find_unicode_property(std::string_view name);

// [:name:] within a class; to POSIX's, Oniguruma adds "word" and "ascii". nullopt if there is none.
std::optional<UnicodeProperty> find_posix_class(std::string_view name);

// What \w is to Oniguruma within a class, and what it is by itself, or to \b: some numbers of
// Latin-1, too.
#define OUTRIDER_WORD_CHARACTERS                                                           \
  R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169})" \
  R"(\x{1f170}-\x{1f189})"
inline constexpr std::string_view kWordInClass = OUTRIDER_WORD_CHARACTERS;
inline constexpr std::string_view kWordAlone =
    OUTRIDER_WORD_CHARACTERS R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
#undef OUTRIDER_WORD_CHARACTERS

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_UNICODE_PROPERTY_H_
