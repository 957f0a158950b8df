// SPDX-License-Identifier: Apache-2.0
#include "grammar/token_trie.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "grammar/limits.h"

namespace outrider {
namespace {

// Tokens longer than a node's depth can express are left out; vocabularies have none.
constexpr std::size_t kLongestToken_bytes = std::numeric_limits<std::uint16_t>::max();

std::vector<std::string> bytes_of_tokens(const Tokenizer& tokenizer, int n_ids) {
  std::vector<std::string> tokens(static_cast<std::size_t>(n_ids));
  for (TokenId id = 0; id < n_ids; ++id) {
    if (!tokenizer.has(id) || tokenizer.is_special(id) || tokenizer.is_added(id)) continue;
    tokens[static_cast<std::size_t>(id)] = tokenizer.bytes(id);
  }
  return tokens;
}

}  // namespace

TokenTrie::TokenTrie(const Tokenizer& tokenizer, int n_ids, std::span<const TokenId> end_tokens)
    : TokenTrie(bytes_of_tokens(tokenizer, n_ids), end_tokens) {}

TokenTrie::TokenTrie(const std::vector<std::string>& tokens, std::span<const TokenId> end_tokens)
    : end_tokens_(end_tokens.begin(), end_tokens.end()) {
  std::erase_if(end_tokens_, [&tokens](TokenId id) {
    return id < 0 || static_cast<std::size_t>(id) >= tokens.size();
  });
  first_byte_.reserve(tokens.size() + 1);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    first_byte_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    const bool is_text =
        tokens[id].size() <= kLongestToken_bytes && !is_end(static_cast<TokenId>(id));
    if (is_text) bytes_ += tokens[id];
  }
  first_byte_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  std::vector<TokenId> few_bytes;
  std::vector<TokenId> many_bytes;
  for (TokenId id = 0; id < n_ids(); ++id) {
    if (bytes(id).empty()) continue;
    (bytes(id).size() <= kLongestShortToken_bytes ? few_bytes : many_bytes).push_back(id);
  }
  short_tokens_.build(*this, std::move(few_bytes));
  long_tokens_.build(*this, std::move(many_bytes));
}

void TokenTrie::Part::build(const TokenTrie& trie, std::vector<TokenId> tokens) {
  tokens_ = std::move(tokens);
  std::sort(tokens_.begin(), tokens_.end(), [&trie](TokenId a, TokenId b) {
    const int order = trie.bytes(a).compare(trie.bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  std::vector<std::size_t> open;  // the nodes of the last token's bytes
  std::string_view last;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view token = trie.bytes(tokens_[i]);
    const auto shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), token.begin(), token.end()).first - last.begin());
    for (; open.size() > shared; open.pop_back()) {
      nodes_[open.back()].end = static_cast<std::int32_t>(nodes_.size());
    }
    for (std::size_t at = shared; at < token.size(); ++at) {
      open.push_back(nodes_.size());
      // Tokens before the last byte's node belong to earlier nodes.
      nodes_.push_back({.first_token = static_cast<std::int32_t>(i),
                        .depth = static_cast<std::uint16_t>(at),
                        .byte = static_cast<std::uint8_t>(token[at])});
    }
    // A node without tokens: its first token is the next node's.
    depth_ = std::max(depth_, static_cast<int>(token.size()));
    last = token;
  }
  for (const std::size_t node : open) nodes_[node].end = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({.first_token = static_cast<std::int32_t>(tokens_.size())});
}

std::string_view TokenTrie::bytes(TokenId id) const {
  if (id < 0 || id >= n_ids()) return {};
  const auto index = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(first_byte_[index],
                                         first_byte_[index + 1] - first_byte_[index]);
}

TokenId TokenTrie::longest(std::string_view text) const {
  const TokenId found = long_tokens_.longest(text);
  return found != kNoToken ? found : short_tokens_.longest(text);
}

TokenId TokenTrie::Part::longest(std::string_view text) const {
  TokenId best = kNoToken;
  std::size_t first = 0;  // among the children of the current node
  std::size_t end = nodes_.size() - 1;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    while (first < end && nodes_[first].byte != byte) {
      first = static_cast<std::size_t>(nodes_[first].end);
    }
    if (first >= end) break;
    if (!tokens_at(first).empty()) best = tokens_at(first).front();
    end = static_cast<std::size_t>(nodes_[first].end);
    ++first;
  }
  return best;
}

bool TokenTrie::is_end(TokenId id) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), id) != end_tokens_.end();
}

}  // namespace outrider
