// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/form_stretches.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tokenizer/texts/unicode_form.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

int combining_class_of(char32_t value) {
  if (value < 0x300) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class;
}

// A form's effect on single characters.
class FormTable {
 public:
  explicit FormTable(const UnicodeForm& form) : bits_(kEnd) {
    // A character at the end of some decomposition may join the one before it.
    std::vector<bool> may_join(kEnd);
    std::array<utf8proc_int32_t, 32> parts;  // at most 18 (U+FDFA)
    for (char32_t value = kFirst; value < kEnd; ++value) {
      const std::size_t n = decompose(value, UTF8PROC_DECOMPOSE, parts);
      const auto last = static_cast<char32_t>(parts[n - 1]);
      if (n > 1 && last < kEnd) may_join[last] = true;
    }
    const int options = UTF8PROC_DECOMPOSE | (form.compatibility ? UTF8PROC_COMPAT : 0);
    for (char32_t value = 0; value < kEnd; ++value) {
      if (is_newer_than_forms(value)) {
        bits_[value] = kBegins | kStays;
        continue;
      }
      const std::size_t n = decompose(value, options, parts);
      const auto first = static_cast<char32_t>(parts[0]);
      if (combining_class_of(first) == 0 && first < kEnd && !may_join[first]) {
        bits_[value] |= kBegins;
      }
      const bool stays = n == 1 ? first == value : form.compose && is_composed(form, value);
      if (stays) bits_[value] |= kStays;
    }
  }
  // It does not interact with the characters before it.
  bool begins(char32_t value) const { return value < kEnd && (bits_[value] & kBegins) != 0; }
  // It is in the form by itself.
  bool stays(char32_t value) const { return value < kEnd && (bits_[value] & kStays) != 0; }

 private:
  static constexpr unsigned char kBegins = 1;
  static constexpr unsigned char kStays = 2;
  static constexpr char32_t kFirst = 0x80;
  // Characters beyond always go through bring_to_form().
  static constexpr char32_t kEnd = 0x30000;

  static std::size_t decompose(char32_t value, int options,
                               std::array<utf8proc_int32_t, 32>& parts) {
    int boundary = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value), parts.data(), parts.size(),
                                static_cast<utf8proc_option_t>(options), &boundary);
    if (n < 1 || n > static_cast<utf8proc_ssize_t>(parts.size())) {
      parts[0] = static_cast<utf8proc_int32_t>(value);
      return 1;
    }
    return static_cast<std::size_t>(n);
  }

  static bool is_composed(const UnicodeForm& form, char32_t value) {
    std::string text;
    append_utf8(value, text);
    std::string formed = text;
    bring_to_form(form, formed);
    return formed == text;
  }

  std::vector<unsigned char> bits_;
};

template <bool kCompose, bool kCompatibility>
const FormTable& table() {
  static const FormTable only({kCompose, kCompatibility});
  return only;
}

const FormTable& table_of(const UnicodeForm& form) {
  if (form.compose) return form.compatibility ? table<true, true>() : table<true, false>();
  return form.compatibility ? table<false, true>() : table<false, false>();
}

// A text being rewritten to its form.
class Rewriting {
 public:
  Rewriting(const UnicodeForm& form, std::string& text, TextEdits* edits)
      : form_(form), text_(text), edits_(edits) {}
  // text[begin, end) may change, independently of the rest. Neighbouring ranges are changed
  // together, unless the caller wants the edits of each.
  void change(std::size_t begin, std::size_t end) {
    if (begin != waiting_.end || edits_ != nullptr) finish_waiting();
    if (waiting_.begin == waiting_.end) waiting_.begin = begin;
    waiting_.end = end;
  }
  void finish() {
    finish_waiting();
    if (done_ == 0) return;
    out_.append(text_, done_);
    text_ = std::move(out_);
  }

 private:
  void finish_waiting() {
    const TextRange range = std::exchange(waiting_, TextRange{waiting_.end, waiting_.end});
    if (range.begin == range.end) return;
    const std::string before = text_.substr(range.begin, range.end - range.begin);
    std::string after = before;
    bring_to_form(form_, after);
    if (after == before) return;
    out_.append(text_, done_, range.begin - done_);
    if (edits_ != nullptr) edits_->add(range, {out_.size(), out_.size() + after.size()});
    out_.append(after);
    done_ = range.end;
  }

  const UnicodeForm& form_;
  std::string& text_;
  TextEdits* edits_;
  std::string out_;
  std::size_t done_ = 0;  // how much of text_ is in out_
  TextRange waiting_{0, 0};
};

bool is_ascii(char byte) { return (byte & 0x80) == 0; }

}  // namespace

void bring_stretches_to_form(const UnicodeForm& form, std::string& text, TextEdits* edits) {
  // ASCII is the same in all forms.
  const auto first = std::find_if_not(text.begin(), text.end(), is_ascii);
  if (first == text.end()) return;
  const FormTable& table = table_of(form);
  Rewriting rewriting(form, text, edits);
  // A stretch is a character that begins one and the following ones that do not.
  std::size_t begin = 0;
  bool stays = true;
  std::size_t at = static_cast<std::size_t>(first - text.begin());
  if (at > 0) begin = at - 1;
  while (at < text.size()) {
    const CodePoint character = code_point_at(text, at);
    const auto end = at + static_cast<std::size_t>(character.n_bytes);
    if (table.begins(character.value)) {
      if (!stays) rewriting.change(begin, at);
      begin = at;
      stays = table.stays(character.value);
    } else {
      stays = at == 0 && table.stays(character.value);
    }
    at = end;
    while (stays && at + 1 < text.size() && is_ascii(text[at]) && is_ascii(text[at + 1])) {
      begin = at++;
    }
  }
  if (!stays) rewriting.change(begin, at);
  rewriting.finish();
}
}  // namespace outrider
