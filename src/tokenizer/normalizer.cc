#include "tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "outrider/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

// What a normaliser may make of a text. Honest ones make less than 66 times as much of it: of one
// byte Unicode's forms make 11 at the most (U+FDFA), the byte-level alphabet two, a mark in the
// place of a blank three. A file that has a text doubled in each of forty steps means no tokenizer.
std::size_t most_normalized_bytes(std::size_t n_raw_bytes) {
  constexpr std::size_t kMostGrowth = 128;
  constexpr std::size_t kAlways_bytes = std::size_t{1} << 16;
  constexpr std::size_t kEver_bytes = std::size_t{1} << 30;  // positions in it have 32 bits
  return std::min(kAlways_bytes + kMostGrowth * std::min(n_raw_bytes, kEver_bytes), kEver_bytes);
}

struct Work {
  MatchScratch& match;
  std::size_t most_bytes;
};

void require_at_most(std::size_t most_bytes, std::size_t n_bytes) {
  if (n_bytes <= most_bytes) return;
  throw Error("rewrite text", "the tokenizer's replacements",
              fmt::format("at most {} bytes of text", most_bytes), fmt::format("{}", n_bytes));
}

void step(const PrependText& prepend, std::string& text, Work&) {
  if (!text.empty()) text.insert(0, prepend.text);
}

void step(const ReplaceAll& replace, std::string& text, Work& work) {
  replace_all(text, replace.pattern, replace.content, work.most_bytes, work.match);
}

// utf8proc puts combining marks into canonical order by swapping neighbours, which is quadratic in
// the length of a run of marks. Runs longer than any writing has are sorted before.
constexpr std::size_t kLongRun = 32;  // marks; Unicode's Stream-Safe Text Format allows 30

void sort_long_mark_runs(std::string& text) {
  struct Mark {
    int combining_class;
    std::size_t begin;
    int n_bytes;
  };
  std::vector<Mark> run;
  const auto finish_run = [&] {
    if (run.size() > kLongRun) {
      const std::size_t begin = run.front().begin;
      std::stable_sort(run.begin(), run.end(), [](const Mark& a, const Mark& b) {
        return a.combining_class < b.combining_class;
      });
      std::string sorted;
      for (const Mark& mark : run) {
        sorted.append(text, mark.begin, static_cast<std::size_t>(mark.n_bytes));
      }
      text.replace(begin, sorted.size(), sorted);
    }
    run.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    const int combining_class =
        character.value < 0x300
            ? 0
            : utf8proc_get_property(static_cast<utf8proc_int32_t>(character.value))
                  ->combining_class;
    if (combining_class == 0) {
      finish_run();
    } else {
      run.push_back({combining_class, at, character.n_bytes});
    }
    at += static_cast<std::size_t>(character.n_bytes);
  }
  finish_run();
}

void step(const UnicodeForm& form, std::string& text, Work&) {
  // ASCII is the same in all four forms.
  if (std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; })) return;
  sort_long_mark_runs(text);
  int options = UTF8PROC_STABLE | (form.compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (form.compatibility) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                          static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                          static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, FreeMemory> owner(mapped);
  if (n == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (n < 0) throw Error("normalize text", "Unicode normal form", utf8proc_errmsg(n));
  text.assign(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(n));
}

void step(const LowercaseText&, std::string& text, Work&) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    at += static_cast<std::size_t>(character.n_bytes);
    if (character.value == 0x130) {  // the one character whose full lower case is longer
      out.append("i\xCC\x87");
    } else {
      append_utf8(
          static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.value))),
          out);
    }
  }
  text = std::move(out);
}

void step(const StripWhitespace& strip, std::string& text, Work&) {
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
  text = text.substr(begin, end - begin);
}

void step(const StripMarks&, std::string& text, Work&) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    const auto n_bytes = static_cast<std::size_t>(character.n_bytes);
    if (!is_mark(character.value)) out.append(text, at, n_bytes);
    at += n_bytes;
  }
  text = std::move(out);
}

void step(const SpellBytes&, std::string& text, Work&) {
  std::string out;
  append_byte_level(text, out);
  text = std::move(out);
}

}  // namespace

void replace_all(std::string& text, const Pattern& pattern, std::string_view content,
                 std::size_t most_bytes, MatchScratch& scratch) {
  std::vector<TextRange> matches;
  pattern.find_all(text, scratch, matches);
  if (matches.empty()) return;
  std::size_t n_bytes = text.size() + matches.size() * content.size();
  for (const TextRange& match : matches) n_bytes -= match.end - match.begin;
  require_at_most(most_bytes, n_bytes);
  std::string out;
  out.reserve(n_bytes);
  std::size_t done = 0;
  for (const TextRange& match : matches) {
    out.append(text, done, match.begin - done);
    out.append(content);
    done = match.end;
  }
  out.append(text, done);
  text = std::move(out);
}

void Normalizer::apply(std::string& text, MatchScratch& scratch) const {
  Work work{.match = scratch, .most_bytes = most_normalized_bytes(text.size())};
  for (const NormalizerStep& one : steps_) {
    std::visit([&](const auto& kind) { step(kind, text, work); }, one);
    require_at_most(work.most_bytes, text.size());
  }
}

}  // namespace outrider
