#include "measure/text_beginnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "engine/text_documents.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// More bytes than n tokens of running text have; a beginning is cut there before it is tokenised.
constexpr std::size_t kBytesPerToken = 16;

// So many beginnings are looked at and no more: enough to be spread over any collection, and few
// enough to be held.
constexpr std::size_t kMostPlaces = 100'000;

// At most n_bytes, not through a character.
std::string beginning(std::string_view text, std::size_t n_bytes) {
  if (text.size() <= n_bytes) return std::string(text);
  while (n_bytes > 0 && (static_cast<unsigned char>(text[n_bytes]) & 0xC0U) == 0x80U) --n_bytes;
  return std::string(text.substr(0, n_bytes));
}

}  // namespace

std::vector<std::vector<TokenId>> text_beginnings(const Tokenizer& tokenizer,
                                                  std::span<const std::filesystem::path> texts,
                                                  const std::string& separator, int n_texts,
                                                  int n_tokens, const char* operation) {
  TextDocuments documents(texts, separator);
  std::vector<std::string> places;
  while (const auto piece = documents.next()) {
    places.push_back(beginning(piece->text, kBytesPerToken * static_cast<std::size_t>(n_tokens)));
    if (places.size() == kMostPlaces) break;
  }
  const auto wanted = static_cast<std::size_t>(n_texts);
  std::vector<std::vector<TokenId>> found;
  // Every stride-th place from the first on, then from the second: evenly spread if all are long
  // enough, and none tried twice.
  const std::size_t stride = std::max<std::size_t>(places.size() / wanted, 1);
  for (std::size_t first = 0; first < stride && found.size() < wanted; ++first) {
    for (std::size_t at = first; at < places.size() && found.size() < wanted; at += stride) {
      std::vector<TokenId> tokens = tokenizer.encode(places[at], true);
      if (tokens.size() < static_cast<std::size_t>(n_tokens)) continue;
      tokens.resize(static_cast<std::size_t>(n_tokens));
      found.push_back(std::move(tokens));
    }
  }
  if (found.size() < wanted) {
    throw Error(operation, "texts",
                fmt::format("{} documents, or long ones, of at least {} tokens", wanted, n_tokens),
                fmt::format("{}", found.size()));
  }
  return found;
}

}  // namespace outrider
