// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/charsmap.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "outrider/error.h"
#include "tokenizer/texts/normalizer.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr std::uint32_t kIsValue = std::uint32_t{1} << 31;

std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (std::uint32_t{1} << 9)) >> 6);
}
bool ends_rule(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t label_of(std::uint32_t unit) { return unit & (kIsValue | 0xFF); }

// The length in bytes of the longest text with a rule. SentencePiece's own tables (nfkc, nmt_nfkc
// and those with case folding) have none above 10.
constexpr std::size_t kLongestKey_bytes = 256;

[[noreturn]] void fail(const std::string& place, std::string_view expected, std::string_view got) {
  throw Error("load tokenizer", place, expected, got);
}

[[noreturn]] void fail_longest(const std::string& place) {
  fail(place, fmt::format("rewrites of texts up to {} bytes", kLongestKey_bytes), "longer ones");
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& place) {
  constexpr std::size_t kUnit_bytes = 4;
  if (bytes.size() < kUnit_bytes) {
    fail(place, "a table of character rewrites", fmt::format("{} bytes", bytes.size()));
  }
  const std::size_t n_tree_bytes = little_endian(bytes);
  bytes.remove_prefix(kUnit_bytes);
  if (n_tree_bytes > bytes.size() || n_tree_bytes % kUnit_bytes != 0 || n_tree_bytes == 0) {
    fail(place, fmt::format("a tree of whole units within {} bytes", bytes.size()),
         fmt::format("{} bytes", n_tree_bytes));
  }
  units_.reserve(n_tree_bytes / kUnit_bytes);
  for (std::size_t at = 0; at < n_tree_bytes; at += kUnit_bytes) {
    units_.push_back(little_endian(bytes.substr(at)));
  }
  texts_ = bytes.substr(n_tree_bytes);
  if (!is_valid_utf8(texts_)) fail(place, "texts in UTF-8", "other bytes");
  require_no_loops(place);
}

// Visits everything reachable, depth first. Darts-clone lets texts share their endings, so several
// paths may lead to one position; none may lead back.
void Charsmap::require_no_loops(const std::string& place) const {
  const std::size_t n = units_.size();
  // Unit i with label c is a child of any unit whose offset leads to i ^ c: its parents' position.
  const auto parents_of = [&](std::size_t i) {
    const std::uint32_t label = label_of(units_[i]);
    return label == 0 || label >= kIsValue ? n : std::min(i ^ label, n);
  };
  std::vector<std::uint32_t> first(n + 1);  // the first child of each position
  for (std::size_t i = 0; i < n; ++i) {
    if (const std::size_t behind = parents_of(i); behind < n) ++first[behind + 1];
  }
  for (std::size_t behind = 0; behind < n; ++behind) first[behind + 1] += first[behind];
  std::vector<std::uint32_t> children(first[n]);
  std::vector<std::uint32_t> filled(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t behind = parents_of(i);
    if (behind < n) children[filled[behind]++] = static_cast<std::uint32_t>(i);
  }

  constexpr std::uint32_t kNew = ~std::uint32_t{0};
  constexpr std::uint32_t kOnTheWay = kNew - 1;
  // Length in bytes of the longest text from each position on.
  std::vector<std::uint32_t> longest(n, kNew);
  struct Step {
    std::size_t behind;
    std::uint32_t next_child;
    std::uint32_t longest;
  };
  std::vector<Step> way;
  const auto enter = [&](std::size_t behind) {
    longest[behind] = kOnTheWay;
    way.push_back({behind, first[behind], 0});
    if (way.size() > kLongestKey_bytes + 1) fail_longest(place);
  };
  if (offset_of(units_[0]) < n) enter(offset_of(units_[0]));
  while (!way.empty()) {
    Step& here = way.back();
    if (here.next_child == first[here.behind + 1]) {
      longest[here.behind] = here.longest;
      const std::uint32_t n_bytes = here.longest + 1;
      way.pop_back();
      if (!way.empty()) way.back().longest = std::max(way.back().longest, n_bytes);
      if (n_bytes > kLongestKey_bytes + 1) fail_longest(place);
      continue;
    }
    const std::uint32_t child = children[here.next_child++];
    const std::size_t behind = child ^ offset_of(units_[child]);
    if (ends_rule(units_[child])) require_rule(behind, place);
    if (behind >= n) continue;  // leads nowhere
    if (longest[behind] == kOnTheWay) fail(place, "a tree", "a loop");
    if (longest[behind] == kNew) {
      enter(behind);
    } else {
      here.longest = std::max(here.longest, longest[behind] + 1);
    }
  }
}

void Charsmap::require_rule(std::size_t at, const std::string& place) const {
  if (at < units_.size() && (units_[at] & kIsValue) != 0) {
    const std::size_t begin = units_[at] & ~kIsValue;
    if (begin < texts_.size() && !continues_character(texts_[begin])) return;
  }
  fail(place, "rules that begin within the texts", "one that does not");
}

std::optional<Charsmap::Rule> Charsmap::find(std::string_view text, bool stop_at_first) const {
  std::optional<Rule> found;
  std::size_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) break;
    // Rules apply to whole characters; others could produce invalid text.
    if (!ends_rule(unit) || (i + 1 < text.size() && continues_character(text[i + 1]))) continue;
    const std::size_t begin = units_[at] & ~kIsValue;
    const std::size_t end = std::min(texts_.find('\0', begin), texts_.size());
    found = {i + 1, std::string_view(texts_).substr(begin, end - begin)};
    if (stop_at_first) break;
  }
  return found;
}

std::optional<Charsmap::Rule> Charsmap::longest(std::string_view text) const {
  return find(text, /*stop_at_first=*/false);
}

std::optional<Charsmap::Rule> Charsmap::shortest(std::string_view text) const {
  return find(text, /*stop_at_first=*/true);
}

namespace {

// The end of the grapheme that begins at text[begin].
std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  CodePoint last = code_point_at(text, begin);
  std::size_t end = begin + static_cast<std::size_t>(last.n_bytes);
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const CodePoint next = code_point_at(text, end);
    // ASCII characters are separate, except for a line end of two characters.
    if (last.value < 0x80 && next.value < 0x80 && next.value != '\n') break;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    end += static_cast<std::size_t>(next.n_bytes);
    last = next;
  }
  return end;
}

}  // namespace

void map_graphemes(const Charsmap& map, std::string& text, std::size_t max_bytes,
                   TextEdits* edits) {
  constexpr std::size_t kLookedUpWhole_bytes = 6;
  std::string out;
  out.reserve(text.size());
  const std::string_view whole = text;
  const auto append = [&](const std::optional<Charsmap::Rule>& rule, const TextRange& range) {
    const std::string_view part = whole.substr(range.begin, range.end - range.begin);
    const std::size_t begin = out.size();
    out.append(rule ? rule->text : part);
    require_normalized_size(out.size(), max_bytes);
    if (edits != nullptr && rule && rule->text != part) edits->add(range, {begin, out.size()});
  };
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = grapheme_end(whole, begin);
    if (end - begin < kLookedUpWhole_bytes) {
      if (const auto rule = map.shortest(whole.substr(begin, end - begin))) {
        append(rule, {begin, end});
        begin = end;
        continue;
      }
    }
    while (begin < end) {
      const auto n_bytes = static_cast<std::size_t>(code_point_at(whole, begin).n_bytes);
      append(map.shortest(whole.substr(begin, n_bytes)), {begin, begin + n_bytes});
      begin += n_bytes;
    }
  }
  text = std::move(out);
}

}  // namespace outrider
