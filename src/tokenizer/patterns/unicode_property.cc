// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/patterns/unicode_property.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace outrider {
namespace {

constexpr std::string_view kSpace =
    R"(\t-\r\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
    R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

// Categories have one name in PCRE2 and others here.
struct Category {
  std::string_view name;
  std::string_view code;
};
constexpr Category kCategories[] = {
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"privateuse", "Co"},
    {"surrogate", "Cs"},
    {"letter", "L"},
    {"casedletter", "L&"},
    {"lc", "L&"},
    {"lowercaseletter", "Ll"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"titlecaseletter", "Lt"},
    {"uppercaseletter", "Lu"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"nonspacingmark", "Mn"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"closepunctuation", "Pe"},
    {"finalpunctuation", "Pf"},
    {"initialpunctuation", "Pi"},
    {"otherpunctuation", "Po"},
    {"openpunctuation", "Ps"},
    {"symbol", "S"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"mathsymbol", "Sm"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"spaceseparator", "Zs"},
};

// Names of the same set in both.
constexpr std::string_view kShared[] = {
    "any",      "alphabetic", "lowercase",         "uppercase",     "emoji",     "ideographic",
    "hexdigit", "dash",       "emojipresentation", "emojimodifier", "diacritic", "asciihexdigit"};

// POSIX's names mean the same in \p{..}, except "punct", which does not include symbols there.
struct Posix {
  std::string_view name;
  std::string_view within;
  std::string_view without;
};
constexpr Posix kPosix[] = {
    {"alnum", R"(\p{Alphabetic}\p{Nd})", ""},
    {"alpha", R"(\p{Alphabetic})", R"(\P{Alphabetic})"},
    {"ascii", R"(\x{0}-\x{7f})", R"(\x{80}-\x{10ffff})"},
    {"blank", R"(\t\p{Zs})", ""},
    {"cntrl", R"(\p{Cc})", R"(\P{Cc})"},
    {"digit", R"(\p{Nd})", R"(\P{Nd})"},
    {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})", ""},
    {"lower", R"(\p{Lowercase})", R"(\P{Lowercase})"},
    {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})", ""},
    {"punct", R"(\p{P}\p{S})", ""},
    {"space", kSpace, kNotSpace},
    {"upper", R"(\p{Uppercase})", R"(\P{Uppercase})"},
    {"word", kWordInClass, ""},
    {"xdigit", "0-9A-Fa-f", R"(\x{0}-/:-@G-`g-\x{10ffff})"},
};

UnicodeProperty of_pcre(std::string_view name) {
  return {.within = "\\p{" + std::string(name) + "}", .without = "\\P{" + std::string(name) + "}"};
}

// C, Cc, ...: PCRE2's own names, in any case.
bool is_category_code(std::string_view plain) {
  constexpr std::string_view kMembers[] = {
      "c cc cf cn co cs",       "l ll lm lo lt lu", "m mc me mn", "n nd nl no",
      "p pc pd pe pf pi po ps", "s sc sk sm so",    "z zl zp zs"};
  for (std::string_view group : kMembers) {
    while (!group.empty()) {
      const std::size_t end = std::min(group.find(' '), group.size());
      if (group.substr(0, end) == plain) return true;
      group.remove_prefix(std::min(end + 1, group.size()));
    }
  }
  return false;
}

}  // namespace

std::optional<UnicodeProperty> find_posix_class(std::string_view name) {
  for (const Posix& one : kPosix) {
    if (one.name == name) {
      return UnicodeProperty{std::string(one.within), std::string(one.without)};
    }
  }
  return std::nullopt;
}

std::optional<UnicodeProperty> find_unicode_property(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    if (!std::isalnum(static_cast<unsigned char>(c))) return std::nullopt;
    plain.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  if (plain.empty()) return std::nullopt;
  if (plain == "punct") return of_pcre("P");
  if (const auto posix = find_posix_class(plain == "whitespace" ? "space" : plain)) return posix;
  if (is_category_code(plain)) {
    plain[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(plain[0])));
    return of_pcre(plain);
  }
  for (const Category& one : kCategories) {
    if (one.name == plain) return of_pcre(one.code);
  }
  if (plain == "assigned") return UnicodeProperty{R"(\P{Cn})", R"(\p{Cn})"};
  if (std::find(std::begin(kShared), std::end(kShared), plain) != std::end(kShared)) {
    return of_pcre(plain);
  }
  // The script itself. PCRE2's \p{Han} would also match characters shared by several scripts.
  return of_pcre("sc:" + plain);
}

}  // namespace outrider
