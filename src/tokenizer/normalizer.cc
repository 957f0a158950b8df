#include "tokenizer/normalizer.h"

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

void step(const PrependText& prepend, std::string& text, MatchScratch&) {
  if (!text.empty()) text.insert(0, prepend.text);
}

void step(const ReplaceAll& replace, std::string& text, MatchScratch& scratch) {
  replace_all(text, replace.pattern, replace.content, scratch);
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

void step(const UnicodeForm& form, std::string& text, MatchScratch&) {
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

void step(const LowercaseText&, std::string& text, MatchScratch&) {
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

void step(const StripWhitespace& strip, std::string& text, MatchScratch&) {
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

void step(const StripMarks&, std::string& text, MatchScratch&) {
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

void step(const SpellBytes&, std::string& text, MatchScratch&) {
  std::string out;
  append_byte_level(text, out);
  text = std::move(out);
}

}  // namespace

void replace_all(std::string& text, const Pattern& pattern, std::string_view content,
                 MatchScratch& scratch) {
  std::vector<TextRange> matches;
  pattern.find_all(text, scratch, matches);
  if (matches.empty()) return;
  std::string out;
  out.reserve(text.size() + matches.size() * content.size());
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
  for (const NormalizerStep& one : steps_) {
    std::visit([&](const auto& kind) { step(kind, text, scratch); }, one);
  }
}

}  // namespace outrider
