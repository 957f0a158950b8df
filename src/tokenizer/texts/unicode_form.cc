// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

// Characters that Unicode 10 to 15 added and that have a decomposition or a combining class, or
// compose with others: here utf8proc (2.8, of Unicode 15) differs from a library of Unicode 9.
// Their ages are those of DerivedAge.txt.
struct CharacterRange {
  char32_t first, last;
};
constexpr CharacterRange kNewer[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},
    {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x11935, 0x11935},
    {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1},
    {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// utf8proc sorts combining marks by swapping neighbours, which is quadratic in the length of a run.
// Runs longer than in any writing system are sorted before.
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

std::string formed(const UnicodeForm& form, std::string_view part) {
  std::string text(part);
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
  return text;
}

}  // namespace

bool is_newer_than_forms(char32_t value) {
  const auto* const range =
      std::partition_point(std::begin(kNewer), std::end(kNewer),
                           [value](const CharacterRange& one) { return one.last < value; });
  return range != std::end(kNewer) && range->first <= value;
}

void bring_to_form(const UnicodeForm& form, std::string& text) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint character = code_point_at(text, at);
    const auto n_bytes = static_cast<std::size_t>(character.n_bytes);
    if (is_newer_than_forms(character.value)) {
      const std::string_view whole = text;
      out.append(formed(form, whole.substr(begin, at - begin))).append(whole.substr(at, n_bytes));
      begin = at + n_bytes;
    }
    at += n_bytes;
  }
  out.append(formed(form, std::string_view(text).substr(begin)));
  text = std::move(out);
}

}  // namespace outrider
