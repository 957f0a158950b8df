// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/sentencepiece_rules.h"

#include <string_view>
#include <utility>

#include "tokenizer/texts/normalizer.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// The beginning of a text: a symbol, the input of a rule, or a character.
struct Beginning {
  std::size_t n_bytes;
  std::string_view becomes;
};

Beginning beginning_of(std::string_view text, const SentencePieceRules& rules) {
  if (rules.symbols != nullptr) {
    const std::size_t n_bytes = rules.symbols->longest_prefix(text);
    if (n_bytes > 0) return {n_bytes, text.substr(0, n_bytes)};
  }
  if (rules.map != nullptr) {
    if (const auto rule = rules.map->longest(text)) return {rule->n_bytes, rule->text};
  }
  const auto n_bytes = static_cast<std::size_t>(code_point_at(text, 0).n_bytes);
  return {n_bytes, text.substr(0, n_bytes)};
}

}  // namespace

void apply_rules(const SentencePieceRules& rules, std::string& text, std::size_t max_bytes,
                 TextEdits* edits) {
  const auto changed = [&](const TextRange& before, const TextRange& after) {
    if (edits != nullptr) edits->add(before, after);
  };
  const std::string_view whole = text;
  std::size_t at = 0;
  bool behind_blank = rules.single_blanks;
  while (behind_blank && at < whole.size()) {
    const Beginning first = beginning_of(whole.substr(at), rules);
    if (first.becomes != " ") break;
    at += first.n_bytes;
  }
  if (at > 0) changed({0, at}, {0, 0});
  if (at == whole.size()) {
    text.clear();
    return;
  }
  const std::string_view blank = rules.mark_blanks ? kLowerBlock : " ";
  std::string out;
  out.reserve((whole.size() - at) * 3 / 2);
  if (rules.add_blank && !rules.blank_is_suffix) {
    out.append(blank);
    changed({at, at}, {0, out.size()});
  }
  while (at < whole.size()) {
    Beginning next = beginning_of(whole.substr(at), rules);
    const TextRange range{at, at + next.n_bytes};
    const std::size_t begin = out.size();
    at = range.end;
    while (behind_blank && next.becomes.starts_with(' ')) next.becomes.remove_prefix(1);
    if (!next.becomes.empty()) behind_blank = rules.single_blanks && next.becomes.ends_with(' ');
    for (const char byte : next.becomes) {
      if (byte == ' ') {
        out.append(blank);
      } else {
        out.push_back(byte);
      }
    }
    require_normalized_size(out.size(), max_bytes);
    if (edits != nullptr && out.compare(begin, out.npos, whole, range.begin, next.n_bytes) != 0) {
      edits->add(range, {begin, out.size()});
    }
  }
  // A mark at the end of the text itself is removed, too.
  const std::size_t n_bytes = out.size();
  while (rules.single_blanks && out.ends_with(blank)) out.erase(out.size() - blank.size());
  if (edits != nullptr && out.size() < n_bytes) edits->cut_after(whole.size(), out.size());
  if (rules.add_blank && rules.blank_is_suffix) {
    out.append(blank);
    changed({whole.size(), whole.size()}, {out.size() - blank.size(), out.size()});
  }
  text = std::move(out);
}

}  // namespace outrider
