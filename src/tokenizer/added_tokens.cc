#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace outrider {
namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(code_point_at(text, last_character(text)).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(code_point_at(text, 0).value);
}

}  // namespace

std::int32_t AddedTokens::find_child(std::int32_t first, char byte) const {
  while (first >= 0 && nodes_[static_cast<std::size_t>(first)].byte != byte) {
    first = nodes_[static_cast<std::size_t>(first)].sibling;
  }
  return first;
}

void AddedTokens::add(const AddedToken& token) {
  std::int32_t node = -1;
  for (const char byte : token.content) {
    std::int32_t& root = roots_[static_cast<unsigned char>(byte)];
    const std::int32_t first = node < 0 ? root : nodes_[static_cast<std::size_t>(node)].child;
    std::int32_t found = find_child(first, byte);
    if (found < 0) {
      found = static_cast<std::int32_t>(nodes_.size());
      if (node < 0) {
        root = found;
      } else {
        nodes_[static_cast<std::size_t>(node)].child = found;
      }
      nodes_.push_back({byte, -1, node < 0 ? -1 : first, -1});
    }
    node = found;
  }
  if (node < 0 || nodes_[static_cast<std::size_t>(node)].token >= 0) return;
  nodes_[static_cast<std::size_t>(node)].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back({token.id, token.single_word, token.lstrip, token.rstrip});
}

void AddedTokens::split(std::string_view text, std::span<const TextRange> literal,
                        std::vector<Span>& spans) const {
  spans.clear();
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    while (!literal.empty() &&
           (literal.front().end <= at || literal.front().begin == literal.front().end)) {
      literal = literal.subspan(1);
    }
    if (!literal.empty() && literal.front().begin <= at) {
      at = literal.front().end;
      continue;
    }
    const std::size_t limit = literal.empty() ? text.size() : literal.front().begin;
    std::int32_t node = roots_[static_cast<unsigned char>(text[at])];
    std::int32_t longest = -1;
    std::size_t end = at;
    for (std::size_t i = at + 1; node >= 0; ++i) {
      const Node& here = nodes_[static_cast<std::size_t>(node)];
      if (here.token >= 0) {
        longest = here.token;
        end = i;
      }
      if (i == limit) break;
      node = find_child(here.child, text[i]);
    }
    if (longest < 0) {
      ++at;
      continue;
    }
    const Token& token = tokens_[static_cast<std::size_t>(longest)];
    const TextRange spelling{at, end};
    TextRange range = spelling;
    at = end;
    if (range.begin < done) continue;  // in white space that the token before took along
    if (token.single_word &&
        (ends_with_word(text.substr(0, range.begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
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
    if (done < range.begin) spans.push_back({{done, range.begin}, kNoToken, {}});
    spans.push_back({range, token.id, spelling});
    done = range.end;
  }
  if (done < text.size()) spans.push_back({{done, text.size()}, kNoToken, {}});
}

}  // namespace outrider
