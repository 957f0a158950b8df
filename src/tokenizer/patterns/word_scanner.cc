// SPDX-License-Identifier: Apache-2.0
// Splits words as GPT-2's pattern does, and later patterns based on it: one scanner per set of
// rules. Every character of a text is in some word. Comments quote the patterns' alternatives, in
// order.
#include <cstdint>

#include "tokenizer/patterns/character_class.h"
#include "tokenizer/patterns/cutting_patterns.h"
#include "tokenizer/patterns/pattern_scanner.h"

namespace outrider {
namespace {

enum class Words {
  kSpaced,  // " ?" before letters, numbers and other characters: GPT-2's
  kLed,     // one character before letters that is no letter, number or line end: cl100k's
  kCased,   // the same, with capitals before small letters: o200k's
};
// 's 't 're 've 'm 'll 'd: in lower case; in any case; in any case of ASCII.
enum class Contractions { kNone, kSmall, kAnyCase, kAnyAsciiCase };
// What other words include after them.
enum class Behind { kNothing, kLineEnds, kLineEndsAndSlashes };
enum class Blanks {
  kRuns,    // \s+(?!\S)|\s+
  kLines,   // \s*[\r\n]+ before these
  kPowers,  // \s*[\r\n]+, then 512, 256 and so on of the remaining ones
};

struct WordRules {
  Words words = Words::kLed;
  Contractions contractions = Contractions::kAnyAsciiCase;
  bool contractions_end_words = false;               // otherwise they are separate words
  std::uint16_t letters = kLetter;                   // classes of letters
  std::uint16_t apart = kLetter | kNumber | kBlank;  // classes that belong to other words
  bool ascii_case = false;  // for kCased: letters outside ASCII count as capital and small
  int n_numbers = 1;        // the most digits per word; for kSpaced, all
  Behind behind = Behind::kLineEnds;
  Blanks blanks = Blanks::kLines;
};

// Functions named behind_... take a position where something may begin and return its end, or that
// position if there is nothing.
template <WordRules kRules>
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  // The end of the word that begins at `at`.
  std::size_t behind_word(std::size_t at, PatternSearch& search) const {
    const ClassifiedCharacter first = classify(text_, at);
    std::size_t end = at;
    if (!kRules.contractions_end_words) {
      end = behind_contraction(at);
      if (end > at) return end;
    }
    if (kRules.words == Words::kSpaced) {
      end = behind_spaced(at, first);
    } else {
      end = kRules.words == Words::kLed ? behind_led(at, first) : behind_cased(at, first);
      if (end > at) return kRules.contractions_end_words ? behind_contraction(end) : end;
      end = (first.classes & kNumber) != 0 ? behind_numbers(at) : behind_others(at, first);
    }
    return end > at ? end : behind_blanks(at, search);
  }

 private:
  bool is_in(std::size_t at, std::uint16_t classes) const {
    return at < text_.size() && (classify(text_, at).classes & classes) != 0;
  }
  std::size_t behind_run(std::size_t at, std::uint16_t classes) const {
    while (at < text_.size()) {
      const ClassifiedCharacter character = classify(text_, at);
      if ((character.classes & classes) == 0) break;
      at += character.n_bytes;
    }
    return at;
  }
  std::size_t behind_run_of_others(std::size_t at) const {
    while (at < text_.size()) {
      const ClassifiedCharacter character = classify(text_, at);
      if ((character.classes & kRules.apart) != 0) break;
      at += character.n_bytes;
    }
    return at;
  }

  std::size_t behind_contraction(std::size_t at) const {
    if (kRules.contractions == Contractions::kNone || at >= text_.size() || text_[at] != '\'') {
      return at;
    }
    const auto letter = [&](std::size_t i) {
      const char c = at + i < text_.size() ? text_[at + i] : '\0';
      const bool is_capital = c >= 'A' && c <= 'Z';
      return is_capital && kRules.contractions != Contractions::kSmall ? static_cast<char>(c | 0x20)
                                                                       : c;
    };
    const char one = letter(1);
    if (one == 's' || one == 't' || one == 'm' || one == 'd') return at + 2;
    const char two = letter(2);
    if ((one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l')) {
      return at + 3;
    }
    constexpr std::string_view kLongS = "\xC5\xBF";  // U+017F
    if (kRules.contractions == Contractions::kAnyCase && text_.substr(at + 1).starts_with(kLongS)) {
      return at + 1 + kLongS.size();
    }
    return at;
  }

  //  ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
  std::size_t behind_spaced(std::size_t at, ClassifiedCharacter first) const {
    std::size_t begin = at;
    if (text_[at] == ' ' && at + 1 < text_.size()) first = classify(text_, ++begin);
    if ((first.classes & kLetter) != 0) return behind_run(begin + first.n_bytes, kLetter);
    if ((first.classes & kNumber) != 0) return behind_run(begin + first.n_bytes, kNumber);
    if ((first.classes & kBlank) != 0) return at;
    return behind_run_of_others(begin + first.n_bytes);
  }

  static bool can_lead(ClassifiedCharacter character) {
    return (character.classes & (kLetter | kNumber | kLineEnd)) == 0;
  }

  // [^\r\n\p{L}\p{N}]?\p{L}+
  std::size_t behind_led(std::size_t at, ClassifiedCharacter first) const {
    const std::size_t second = at + first.n_bytes;
    if ((first.classes & kRules.letters) != 0) return behind_run(second, kRules.letters);
    if (!can_lead(first)) return at;
    const std::size_t end = behind_run(second, kRules.letters);
    return end > second ? end : at;
  }

  std::uint16_t cased_classes(std::size_t at, ClassifiedCharacter character) const {
    const bool has_no_case = kRules.ascii_case && static_cast<unsigned char>(text_[at]) >= 0x80;
    return has_no_case ? static_cast<std::uint16_t>(character.classes & ~(kCapital | kSmall))
                       : character.classes;
  }
  static bool may_be_capital(std::uint16_t classes) {
    return (classes & kRules.letters) != 0 && (classes & kSmall) == 0;
  }
  static bool may_be_small(std::uint16_t classes) {
    return (classes & kRules.letters) != 0 && (classes & kCapital) == 0;
  }

  // For the letters from `begin` on: the end of those that may be capital, and the end of a word
  // whose last letter may be small (`begin` if there is none).
  struct CasedEnds {
    std::size_t small, capitals;
  };
  CasedEnds cased_ends(std::size_t begin) const {
    CasedEnds ends{begin, begin};
    std::size_t at = begin;
    for (bool in_capitals = true; at < text_.size();) {
      const ClassifiedCharacter character = classify(text_, at);
      const std::uint16_t classes = cased_classes(at, character);
      in_capitals = in_capitals && may_be_capital(classes);
      if (!in_capitals && !may_be_small(classes)) break;
      at += character.n_bytes;
      if (in_capitals) ends.capitals = at;
      if (may_be_small(classes)) ends.small = at;
    }
    return ends;
  }
  // With U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W for [\p{Ll}\p{Lm}\p{Lo}\p{M}] and a leading
  // character c: c?U*W+|c?U+W*. A mark may be the leading character or part of the word.
  std::size_t behind_cased(std::size_t at, ClassifiedCharacter first) const {
    const std::size_t second = at + first.n_bytes;
    const CasedEnds led = can_lead(first) ? cased_ends(second) : CasedEnds{second, second};
    if (led.small > second) return led.small;
    const CasedEnds alone =
        (first.classes & kRules.letters) != 0 ? cased_ends(at) : CasedEnds{at, at};
    if (alone.small > at) return alone.small;
    return led.capitals > second ? led.capitals : alone.capitals;
  }

  // \p{N}{1,n_numbers}
  std::size_t behind_numbers(std::size_t at) const {
    for (int n = 0; n < kRules.n_numbers && is_in(at, kNumber); ++n) {
      at += classify(text_, at).n_bytes;
    }
    return at;
  }

  //  ?[^\s\p{L}\p{N}]+[\r\n]*
  std::size_t behind_others(std::size_t at, ClassifiedCharacter first) const {
    std::size_t begin = at;
    if (text_[at] == ' ' && at + 1 < text_.size()) first = classify(text_, ++begin);
    if ((first.classes & kRules.apart) != 0) return at;
    std::size_t end = behind_run_of_others(begin + first.n_bytes);
    const auto goes_along = [&](char c) {
      return c == '\r' || c == '\n' || (kRules.behind == Behind::kLineEndsAndSlashes && c == '/');
    };
    while (kRules.behind != Behind::kNothing && end < text_.size() && goes_along(text_[end])) ++end;
    return end;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+
  std::size_t behind_blanks(std::size_t at, PatternSearch& search) const {
    if (kRules.blanks == Blanks::kPowers && at < search.run_end) {
      return behind_power(at, search.run_end);  // in a run without line ends
    }
    std::size_t last = at;
    std::size_t line_end = at;
    std::size_t end = at;
    while (end < text_.size()) {
      const ClassifiedCharacter character = classify(text_, end);
      if ((character.classes & kBlank) == 0) break;
      last = end;
      end += character.n_bytes;
      if ((character.classes & kLineEnd) != 0) line_end = end;
    }
    if (kRules.blanks != Blanks::kRuns && line_end > at) return line_end;
    if (kRules.blanks == Blanks::kPowers) {
      search.run_end = end;
      return behind_power(at, end);
    }
    return end == text_.size() || last == at ? end : last;
  }

  // \s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s
  std::size_t behind_power(std::size_t at, std::size_t run_end) const {
    const auto behind_blank = [&](std::size_t from) {
      return from + classify(text_, from).n_bytes;
    };
    constexpr std::size_t kMax = 512;
    std::size_t n_blanks = 0;
    for (std::size_t next = at; next < run_end && n_blanks <= kMax; ++n_blanks) {
      next = behind_blank(next);
    }
    // One blank is left over, unless the text ends with them.
    const std::size_t n_free = run_end == text_.size() ? n_blanks : n_blanks - 1;
    std::size_t n_taken = kMax;
    while (n_taken > 1 && n_taken > n_free) n_taken /= 2;
    for (; n_taken > 0; --n_taken) at = behind_blank(at);
    return at;
  }

  std::string_view text_;
};

template <WordRules kRules>
bool scan_words(std::string_view text, std::size_t n_max, PatternSearch& search,
                std::vector<TextRange>& matches) {
  const Scan<kRules> scan(text);
  std::size_t at = search.at;
  for (; n_max > 0 && at < text.size(); --n_max) {
    const std::size_t end = scan.behind_word(at, search);
    matches.push_back({at, end});
    at = end;
  }
  search.at = at;
  return at < text.size();
}

constexpr std::uint16_t kLetterOrMark = kLetter | kMark;

constexpr WordRules kGpt2Rules = {
    .words = Words::kSpaced, .contractions = Contractions::kSmall, .blanks = Blanks::kRuns};
constexpr WordRules kQwen35Rules = {.letters = kLetterOrMark,
                                    .apart = kLetterOrMark | kNumber | kBlank};
constexpr WordRules kTinyAyaRules = {.contractions_end_words = true,
                                     .letters = kLetterOrMark,
                                     .n_numbers = 3,
                                     .behind = Behind::kLineEndsAndSlashes};
constexpr WordRules kTekkenRules = {.words = Words::kCased,
                                    .contractions = Contractions::kNone,
                                    .ascii_case = true,
                                    .behind = Behind::kLineEndsAndSlashes};

constexpr WordRules with_three_numbers(WordRules rules) {
  rules.n_numbers = 3;
  return rules;
}
constexpr WordRules with_one_number(WordRules rules) {
  rules.n_numbers = 1;
  return rules;
}
constexpr WordRules with_contractions(WordRules rules, Contractions contractions) {
  rules.contractions = contractions;
  return rules;
}
constexpr WordRules with_contractions_behind(WordRules rules, Contractions contractions) {
  rules.contractions = contractions;
  rules.contractions_end_words = true;
  rules.n_numbers = 3;
  return rules;
}
// Marks are letters of either case; Unicode defines which letters have one.
constexpr WordRules with_unicode_case(WordRules rules) {
  rules.letters = kLetterOrMark;
  rules.ascii_case = false;
  return rules;
}
constexpr WordRules with_marks(WordRules rules) {
  rules.letters = kLetterOrMark;
  return rules;
}

}  // namespace

std::vector<KnownScanner> word_scanners() {
  constexpr WordRules kOne = {};
  constexpr WordRules kThree = with_three_numbers({});
  constexpr Contractions kAny = Contractions::kAnyCase;
  constexpr WordRules kGpt4oRules =
      with_contractions_behind(kTekkenRules, Contractions::kAnyAsciiCase);
  return {
      {cut::kGpt2, scan_words<kGpt2Rules>},
      {cut::kLlama3, scan_words<kThree>},
      {cut::kQwen2, scan_words<kOne>},
      {cut::kQwen35, scan_words<kQwen35Rules>},
      {cut::kUfakzeka, scan_words<with_contractions(kOne, Contractions::kNone)>},
      {cut::kSeedCoder, scan_words<WordRules{.behind = Behind::kNothing}>},
      {cut::kJais2, scan_words<WordRules{.n_numbers = 3, .blanks = Blanks::kPowers}>},
      {cut::kTinyAya, scan_words<kTinyAyaRules>},
      {cut::kYoutuWord, scan_words<with_one_number(kTinyAyaRules)>},
      {cut::kTekken, scan_words<kTekkenRules>},
      {cut::kGpt4o, scan_words<kGpt4oRules>},
      {cut::kGraniteMultilingual, scan_words<with_marks(kGpt4oRules)>},
      {cut::kJsonLlama3, scan_words<with_contractions(kThree, kAny)>},
      {cut::kJsonCl100k, scan_words<with_contractions(kThree, kAny)>},
      {cut::kJsonQwen2, scan_words<with_contractions(kOne, kAny)>},
      {cut::kJsonBailing, scan_words<with_contractions(kOne, kAny)>},
      {cut::kJsonQwen35, scan_words<with_contractions(kQwen35Rules, kAny)>},
      {cut::kJsonO200k,
       scan_words<with_unicode_case(with_contractions_behind(kTekkenRules, kAny))>},
      {cut::kJsonTekken, scan_words<with_unicode_case(kTekkenRules)>},
  };
}

PatternScanner find_scanner(std::string_view pattern) {
  for (const std::vector<KnownScanner>& some : {word_scanners(), threes_scanners()}) {
    for (const KnownScanner& one : some) {
      if (one.pattern == pattern) return one.scanner;
    }
  }
  return nullptr;
}

}  // namespace outrider
