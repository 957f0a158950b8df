// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// A text is searched in parts of this size (or of the longest token's), each extended by the
// longest token's length, so that matches of a part stay in L1.
constexpr std::size_t kPart_bytes = 16384;

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(code_point_at(text, last_character(text)).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(code_point_at(text, 0).value);
}

}  // namespace

void AddedTokens::add(const AddedToken& token) {
  if (token.content.empty()) return;
  tokens_.push_back(
      {token.id, token.single_word, token.lstrip, token.rstrip, token.content.size()});
  contents_.push_back(token.content);
  n_longest_ = std::max(n_longest_, token.content.size());
}

std::int32_t AddedTokens::find_child(std::int32_t node, char byte) const {
  const auto at = static_cast<std::size_t>(node);
  const auto first = static_cast<std::size_t>(nodes_[at].first_child);
  const auto behind = static_cast<std::size_t>(nodes_[at + 1].first_child);
  const std::size_t found = std::string_view(bytes_).substr(first, behind - first).find(byte);
  return found == std::string_view::npos ? 0 : static_cast<std::int32_t>(first + found);
}

std::int32_t AddedTokens::find_longer(std::int32_t node, char byte, std::uint64_t* n_steps) const {
  while (node != 0) {
    const std::int32_t child = find_child(node, byte);
    if (child != 0) return child;
    node = nodes_[static_cast<std::size_t>(node)].shorter;
    if (n_steps != nullptr) ++*n_steps;
  }
  return roots_[static_cast<unsigned char>(byte)];
}

void AddedTokens::finish() {
  // Tokens ordered by their reversed spellings: those of a node and of all nodes below it are
  // contiguous. Among equals the first comes first.
  std::vector<std::int32_t> order(contents_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto content = [&](std::int32_t token) -> const std::string& {
    return contents_[static_cast<std::size_t>(token)];
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::lexicographical_compare(content(a).rbegin(), content(a).rend(), content(b).rbegin(),
                                        content(b).rend());
  });
  struct Branch {  // a range of `order`, and its node's depth
    std::size_t begin, end, depth;
  };
  std::deque<Branch> branches = {{0, order.size(), 0}};
  nodes_.assign(1, Node{});
  bytes_.assign(1, '\0');
  for (std::size_t at = 0; at < bytes_.size(); ++at) {
    Branch branch = branches.front();
    branches.pop_front();
    Node& node = nodes_[at];
    node.first_child = static_cast<std::int32_t>(bytes_.size());
    node.longest = nodes_[static_cast<std::size_t>(node.shorter)].longest;
    const auto ends_here = [&](std::size_t i) { return content(order[i]).size() == branch.depth; };
    if (branch.begin < branch.end && ends_here(branch.begin)) node.longest = order[branch.begin];
    while (branch.begin < branch.end && ends_here(branch.begin)) ++branch.begin;
    const auto byte_of = [&](std::size_t i) { return content(order[i]).rbegin()[branch.depth]; };
    while (branch.begin < branch.end) {
      const char byte = byte_of(branch.begin);
      std::size_t end = branch.begin + 1;
      while (end < branch.end && byte_of(end) == byte) ++end;
      branches.push_back({branch.begin, end, branch.depth + 1});
      branch.begin = end;
      const auto child = static_cast<std::int32_t>(bytes_.size());
      // Nodes with less depth have their children already.
      const std::int32_t shorter = at == 0 ? 0 : find_longer(nodes_[at].shorter, byte, nullptr);
      if (at == 0) roots_[static_cast<unsigned char>(byte)] = child;
      bytes_.push_back(byte);
      nodes_.push_back({0, shorter, -1});
    }
  }
  nodes_.emplace_back().first_child = static_cast<std::int32_t>(bytes_.size());
  contents_ = {};
}

void AddedTokens::find_starts(std::string_view text, std::size_t begin, std::size_t end,
                              Scratch& scratch) const {
  scratch.n_steps += end - begin;
  std::int32_t node = 0;
  for (std::size_t at = end; at > begin;) {
    // In most texts, most bytes end no token.
    while (node == 0) {
      if (at == begin) return;
      node = roots_[static_cast<unsigned char>(text[--at])];
    }
    for (;;) {
      const std::int32_t longest = nodes_[static_cast<std::size_t>(node)].longest;
      if (longest >= 0) scratch.starts.push_back({at, longest});
      if (at == begin) return;
      node = find_longer(node, text[--at], &scratch.n_steps);
      if (node == 0) break;
    }
  }
}

void AddedTokens::find_starts_outside(std::string_view text, TextRange part,
                                      std::span<const TextRange> literal, Scratch& scratch) const {
  while (part.begin < part.end) {
    // The last range with a byte in this part.
    while (!literal.empty() &&
           (literal.back().begin >= part.end ||
            (literal.back().begin == literal.back().end && literal.back().begin >= part.begin))) {
      literal = literal.first(literal.size() - 1);
    }
    if (literal.empty() || literal.back().end <= part.begin) {
      return find_starts(text, part.begin, part.end, scratch);
    }
    if (literal.back().end < part.end) {
      find_starts(text, literal.back().end, part.end, scratch);
    }
    part.end = literal.back().begin;
  }
}

TextRange AddedTokens::with_white_space(const Token& token, const TextRange& spelling,
                                        std::string_view text, std::size_t done) const {
  TextRange range = spelling;
  while (token.lstrip && range.begin > done) {
    const std::size_t last = last_character(text.substr(0, range.begin));
    if (!is_white_space(code_point_at(text, last).value)) break;
    range.begin = last;
  }
  while (token.rstrip && range.end < text.size()) {
    const CodePoint character = code_point_at(text, range.end);
    if (!is_white_space(character.value)) break;
    range.end += static_cast<std::size_t>(character.n_bytes);
  }
  return range;
}

void AddedTokens::split(std::string_view text, std::span<const TextRange> literal, Scratch& scratch,
                        std::vector<Span>& spans) const {
  spans.clear();
  std::size_t done = 0;
  const std::size_t part_bytes = std::max(kPart_bytes, n_longest_);
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    const std::size_t part_end = std::min(at + part_bytes, text.size());
    const std::size_t end = std::min(part_end + n_longest_ - 1, text.size());
    const auto behind =
        std::partition_point(literal.begin(), literal.end(),
                             [end](const TextRange& range) { return range.begin < end; });
    scratch.starts.clear();
    find_starts_outside(text, {at, end}, {literal.begin(), behind}, scratch);
    for (; !scratch.starts.empty(); scratch.starts.pop_back()) {
      const auto [begin, longest] = scratch.starts.back();
      if (begin >= part_end) break;
      if (begin < at) continue;  // begins within the previous token
      const Token& token = tokens_[static_cast<std::size_t>(longest)];
      const TextRange spelling{begin, begin + token.n_bytes};
      at = spelling.end;
      if (begin < done) continue;  // begins in white space that the previous token has taken
      if (token.single_word &&
          (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(spelling.end)))) {
        continue;
      }
      const TextRange range = with_white_space(token, spelling, text, done);
      if (done < range.begin) spans.push_back({{done, range.begin}, kNoToken, {}});
      spans.push_back({range, token.id, spelling});
      done = range.end;
    }
    at = std::max(at, part_end);
  }
  if (done < text.size()) spans.push_back({{done, text.size()}, kNoToken, {}});
}

}  // namespace outrider
