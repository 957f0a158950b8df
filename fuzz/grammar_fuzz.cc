// SPDX-License-Identifier: Apache-2.0
// Any bytes as a grammar: the first byte selects the language, the rest up to a zero byte is the
// grammar's text. The result is an Error, or a grammar which matches the bytes after the zero byte.
// Exactly the tokens that the mask allows are accepted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "outrider/error.h"
#include "outrider/grammar.h"

namespace {

constexpr outrider::TokenId kEndToken = 256;

// Every single byte, and some texts of several bytes.
const outrider::TokenTrie& trie() {
  static const outrider::TokenTrie the_trie = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.emplace_back();
    for (const char* const text :
         {"\": ", "\", \"", "{\"", "}", "true", "\xC3\xA9", "ab", "  ", "[["}) {
      tokens.emplace_back(text);
    }
    return outrider::TokenTrie(tokens, std::vector<outrider::TokenId>{kEndToken});
  }();
  return the_trie;
}

std::shared_ptr<const outrider::Grammar> read(char language, std::string_view text) {
  switch (static_cast<unsigned char>(language) % 3) {
    case 0:
      return outrider::Grammar::from_gbnf(text);
    case 1:
      return outrider::Grammar::from_json_schema(text);
    default:
      return outrider::Grammar::from_regex(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = bytes.find('\0', 1);
  const std::string_view text =
      zero == std::string_view::npos ? std::string_view() : bytes.substr(zero + 1);
  try {
    const auto grammar =
        read(bytes[0], bytes.substr(1, zero == std::string_view::npos ? zero : zero - 1));
    outrider::GrammarMatcher matcher(grammar->compiled(), trie());
    int state = matcher.start();
    std::vector<outrider::TokenId> forced;
    for (std::size_t i = 0; i < text.size() && i < 32; ++i) {
      const auto mask = matcher.allowed(state);
      bool any = false;
      for (const std::uint64_t word : mask) any = any || word != 0;
      // All bytes are tokens: a text that has met no limit can continue or end.
      if (!any && matcher.failure().empty()) std::abort();
      if (!any) return 0;
      const auto byte = static_cast<outrider::TokenId>(static_cast<unsigned char>(text[i]));
      const bool allowed = (mask[static_cast<std::size_t>(byte) / 64] >> (byte % 64) & 1) != 0;
      const int next = matcher.advance(state, byte);
      if (allowed != (next != outrider::GrammarMatcher::kNotAllowed)) std::abort();
      matcher.forced(state, 4, forced);
      for (int at = state; const outrider::TokenId token : forced) {
        at = matcher.advance(at, token);
        if (at == outrider::GrammarMatcher::kNotAllowed) std::abort();
      }
      if (!allowed) break;
      state = next;
    }
  } catch (const outrider::Error&) {
  }
  return 0;
}
