// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "outrider/error.h"
#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/form_stretches.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// The largest plausible result of a normaliser. Real ones lengthen a text less than 66 times: per
// byte, Unicode's forms give at most 11 (U+FDFA), the byte-level alphabet two, a mark for a blank
// three. A file that doubles a text in each of forty steps is no tokenizer.
std::size_t max_normalized_bytes(std::size_t n_raw_bytes) {
  constexpr std::size_t kMaxGrowth = 128;
  constexpr std::size_t kAlways_bytes = std::size_t{1} << 16;
  constexpr std::size_t kEver_bytes = std::size_t{1} << 30;  // positions have 32 bits
  return std::min(kAlways_bytes + kMaxGrowth * std::min(n_raw_bytes, kEver_bytes), kEver_bytes);
}

struct Work {
  MatchScratch& match;
  std::size_t max_bytes;
  TextEdits* edits;  // of this step; null if not wanted

  void changed(const TextRange& before, const TextRange& after) {
    if (edits != nullptr) edits->add(before, after);
  }
};

void step(const PrependText& prepend, std::string& text, Work& work) {
  if (text.empty()) return;
  text.insert(0, prepend.text);
  work.changed({0, 0}, {0, prepend.text.size()});
}

void step(const ReplaceAll& replace, std::string& text, Work& work) {
  replace_all(text, replace.pattern, replace.content, work.max_bytes, work.match, work.edits);
}

void step(const UnicodeForm& form, std::string& text, Work& work) {
  bring_stretches_to_form(form, text, work.edits);
}

void step(const LowercaseText&, std::string& text, Work& work) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    const auto n_bytes = static_cast<std::size_t>(character.n_bytes);
    const std::size_t begin = out.size();
    if (character.value == 0x130) {  // the one character whose full lower case is longer
      out.append("i\xCC\x87");
    } else {
      append_utf8(
          static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.value))),
          out);
    }
    if (out.size() - begin != n_bytes) work.changed({at, at + n_bytes}, {begin, out.size()});
    at += n_bytes;
  }
  text = std::move(out);
}

void step(const StripWhitespace& strip, std::string& text, Work& work) {
  std::size_t begin = 0;
  while (strip.left && begin < text.size()) {
    const CodePoint character = code_point_at(text, begin);
    if (!is_white_space(character.value)) break;
    begin += static_cast<std::size_t>(character.n_bytes);
  }
  std::size_t end = text.size();
  while (strip.right && end > begin) {
    const std::size_t last = last_character(std::string_view(text).substr(0, end));
    if (!is_white_space(code_point_at(text, last).value)) break;
    end = last;
  }
  if (begin > 0) work.changed({0, begin}, {0, 0});
  if (end < text.size()) work.changed({end, text.size()}, {end - begin, end - begin});
  text = text.substr(begin, end - begin);
}

void step(const StripMarks&, std::string& text, Work& work) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    const auto n_bytes = static_cast<std::size_t>(character.n_bytes);
    if (is_mark(character.value)) {
      work.changed({at, at + n_bytes}, {out.size(), out.size()});
    } else {
      out.append(text, at, n_bytes);
    }
    at += n_bytes;
  }
  text = std::move(out);
}

void step(const SpellBytes&, std::string& text, Work& work) {
  std::string out;
  append_byte_level(text, out);
  if (work.edits != nullptr) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const auto n_bytes = static_cast<std::size_t>(code_point_at(out, begin).n_bytes);
      if (n_bytes > 1) work.changed({at, at + 1}, {begin, begin + n_bytes});
      begin += n_bytes;
    }
  }
  text = std::move(out);
}

void step(const MapGraphemes& graphemes, std::string& text, Work& work) {
  map_graphemes(*graphemes.map, text, work.max_bytes, work.edits);
}

bool is_dropped_control(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool is_cleaned_to_blank(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

void step(const CleanControls&, std::string& text, Work& work) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    const auto n_bytes = static_cast<std::size_t>(character.n_bytes);
    const std::size_t begin = out.size();
    if (is_cleaned_to_blank(character.value)) {
      out.push_back(' ');
    } else if (!is_dropped_control(character.value)) {
      out.append(text, at, n_bytes);
    }
    if (out.size() - begin != n_bytes) work.changed({at, at + n_bytes}, {begin, out.size()});
    at += n_bytes;
  }
  text = std::move(out);
}

void step(const SentencePieceRules& rules, std::string& text, Work& work) {
  apply_rules(rules, text, work.max_bytes, work.edits);
}

}  // namespace

void require_normalized_size(std::size_t n_bytes, std::size_t max_bytes) {
  if (n_bytes <= max_bytes) return;
  throw Error("rewrite text", "the tokenizer's replacements",
              fmt::format("at most {} bytes of text", max_bytes), fmt::format("{}", n_bytes));
}

void replace_all(std::string& text, const Pattern& pattern, std::string_view content,
                 std::size_t max_bytes, MatchScratch& scratch, TextEdits* edits) {
  std::vector<TextRange> matches;
  pattern.find_all(text, scratch, matches);
  if (matches.empty()) return;
  std::size_t n_bytes = text.size() + matches.size() * content.size();
  for (const TextRange& match : matches) n_bytes -= match.end - match.begin;
  require_normalized_size(n_bytes, max_bytes);
  std::string out;
  out.reserve(n_bytes);
  std::size_t done = 0;
  for (const TextRange& match : matches) {
    out.append(text, done, match.begin - done);
    if (edits != nullptr) edits->add(match, {out.size(), out.size() + content.size()});
    out.append(content);
    done = match.end;
  }
  out.append(text, done);
  text = std::move(out);
}

void Normalizer::apply(std::string& text, MatchScratch& scratch) const {
  apply_steps(text, scratch, nullptr);
}

void Normalizer::apply(std::string& text, MatchScratch& scratch,
                       std::vector<TextEdits>& edits) const {
  apply_steps(text, scratch, &edits);
}

void Normalizer::apply_steps(std::string& text, MatchScratch& scratch,
                             std::vector<TextEdits>* edits) const {
  const std::size_t max_bytes = max_normalized_bytes(text.size());
  for (const NormalizerStep& one : steps_) {
    Work work{scratch, max_bytes, edits == nullptr ? nullptr : &edits->emplace_back()};
    std::visit([&](const auto& kind) { step(kind, text, work); }, one);
    require_normalized_size(text.size(), max_bytes);
  }
}

}  // namespace outrider
