#include "tokenizer/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "outrider/error.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

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

}  // namespace

void bring_to_form(const UnicodeForm& form, std::string& text) {
  sort_long_mark_runs(text);
  int options = UTF8PROC_STABLE | (form.compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (form.compatibility) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                          static_cast<utf8proc_ssize_t>(text.size()), &result,
                                          static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, FreeMemory> owner(result);
  if (n == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (n < 0) throw Error("normalize text", "Unicode normal form", utf8proc_errmsg(n));
  text.assign(reinterpret_cast<const char*>(result), static_cast<std::size_t>(n));
}

}  // namespace outrider
