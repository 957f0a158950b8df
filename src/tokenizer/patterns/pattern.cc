// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/patterns/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/patterns/cutting_patterns.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// Longer than any tokenizer's pattern; PCRE2's compile time grows with the length.
constexpr std::size_t kMaxPatternBytes = 16384;
// Backtracking steps per starting point: an allowance for short texts, and enough per byte for real
// tokenizers' patterns, which go back over a run of spaces once or twice.
constexpr std::uint64_t kFreeSteps = 100000;
constexpr std::uint64_t kStepsPerByte = 16;
// The state of one match, for patterns that repeat groups. Compiled code starts with 32 KiB of the
// machine's stack, and gets this much if that is too little. The interpreter, which runs if nothing
// can be compiled, keeps as much on the heap.
constexpr std::size_t kStateBytes = std::size_t{16} << 20;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

}  // namespace

struct Pattern::Code {
  ~Code() { pcre2_code_free(compiled); }
  pcre2_code* compiled = nullptr;
  bool just_in_time = false;
  std::string object;  // for messages
};

struct MatchScratch::Impl {
  // Only one pair is read; a match with groups then returns 0, which is fine.
  Impl() : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
    if (data == nullptr || context == nullptr) {
      pcre2_match_data_free(data);
      pcre2_match_context_free(context);
      throw std::bad_alloc();
    }
    pcre2_set_heap_limit(context, kStateBytes / 1024);
  }
  ~Impl() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  // Returns true the first time.
  bool enlarge_stack() {
    if (stack != nullptr) return false;
    stack = pcre2_jit_stack_create(32 * 1024, kStateBytes, nullptr);
    if (stack == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context, nullptr, stack);
    return true;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack = nullptr;
  std::uint32_t match_limit = 0;
};

MatchScratch::MatchScratch() : impl_(std::make_unique<Impl>()) {}
MatchScratch::~MatchScratch() = default;

Pattern Pattern::literal(std::string_view text) {
  Pattern result;
  result.literal_ = text;
  return result;
}

Pattern Pattern::regex(std::string_view pattern, std::string_view object) {
  Pattern result;
  result.scanner_ = find_scanner(pattern);
  if (result.scanner_ != nullptr) return result;
  if (pattern == cut::kJsonSpacesAtEnd) pattern = cut::kSpacesAtEnd;
  const std::string translated = translate_pattern(pattern, object);
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_max_pattern_length(context.get(), kMaxPatternBytes);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_shared<Code>();
  code->object = object;
  code->compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 options, &error, &offset, context.get());
  if (code->compiled == nullptr) {
    throw Error("compile pattern", object, "a regular expression",
                "\"" + std::string(pattern.substr(0, 200)) + "\" (" + error_text(error) + ")");
  }
  code->just_in_time = pcre2_jit_compile(code->compiled, PCRE2_JIT_COMPLETE) == 0;
  result.code_ = std::move(code);
  return result;
}

void Pattern::find_all(std::string_view text, MatchScratch& scratch,
                       std::vector<TextRange>& matches) const {
  PatternSearch search;
  find_next(text, std::numeric_limits<std::size_t>::max(), search, scratch, matches);
}

bool Pattern::find_next(std::string_view text, std::size_t n_max, PatternSearch& search,
                        MatchScratch& scratch, std::vector<TextRange>& matches) const {
  matches.clear();
  if (scanner_ != nullptr) return !text.empty() && scanner_(text, n_max, search, matches);
  if (code_ != nullptr) return find_next_compiled(text, n_max, search, scratch, matches);
  if (literal_.empty()) return false;
  for (; matches.size() < n_max; search.at = matches.back().end) {
    const std::size_t found = text.find(literal_, search.at);
    if (found == std::string_view::npos) return false;
    matches.push_back({found, found + literal_.size()});
  }
  return true;
}

bool Pattern::find_next_compiled(std::string_view text, std::size_t n_max, PatternSearch& search,
                                 MatchScratch& scratch, std::vector<TextRange>& matches) const {
  MatchScratch::Impl& run = *scratch.impl_;
  const std::uint64_t steps = kFreeSteps + kStepsPerByte * text.size();
  const auto match_limit = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(steps, std::numeric_limits<std::uint32_t>::max()));
  if (match_limit != run.match_limit) {
    pcre2_set_match_limit(run.context, match_limit);
    pcre2_set_depth_limit(run.context, match_limit);
    run.match_limit = match_limit;
  }
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(run.data);
  // The text is known to be well-formed; checking it again from every match on would make long
  // texts quadratic.
  std::size_t& at = search.at;
  while (at <= text.size() && matches.size() < n_max) {
    const auto match = [&] {
      return code_->just_in_time ? pcre2_jit_match(code_->compiled, subject, text.size(), at, 0,
                                                   run.data, run.context)
                                 : pcre2_match(code_->compiled, subject, text.size(), at,
                                               PCRE2_NO_UTF_CHECK, run.data, run.context);
    };
    int status = match();
    if (status == PCRE2_ERROR_JIT_STACKLIMIT && run.enlarge_stack()) status = match();
    if (status == PCRE2_ERROR_NOMATCH) return false;
    if (status < 0) {
      throw Error("match pattern", code_->object,
                  error_text(status) + " on a text of " + std::to_string(text.size()) + " bytes");
    }
    const std::size_t begin = found[0];
    const std::size_t end = found[1];
    if (begin > end || begin < at) {  // \K inside a look-around can cause that
      throw Error("match pattern", code_->object, "a match that starts outside itself");
    }
    if (begin == end && end == search.last_end) {
      at += at < text.size() ? static_cast<std::size_t>(code_point_at(text, at).n_bytes) : 1;
      continue;
    }
    matches.push_back({begin, end});
    at = end;
    search.last_end = end;
  }
  return at <= text.size();
}

}  // namespace outrider
