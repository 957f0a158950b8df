// SPDX-License-Identifier: Apache-2.0
#include "measure/text_beginnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/files/text_documents.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// More bytes than n tokens of ordinary text have; a beginning is truncated there before it is
// tokenised.
constexpr std::size_t kBytesPerToken = 16;

// The least length of a piece: a few words.
constexpr std::size_t kMinPiece_bytes = 64;

// The most beginnings held at a time. If there are more, every second one is kept, then every
// fourth, and so on.
constexpr std::size_t kMaxPlaces = 65'536;

// At most n_bytes, without splitting a character.
std::string beginning(std::string_view text, std::size_t n_bytes) {
  if (text.size() <= n_bytes) return std::string(text);
  while (n_bytes > 0 && (static_cast<unsigned char>(text[n_bytes]) & 0xC0U) == 0x80U) --n_bytes;
  return std::string(text.substr(0, n_bytes));
}

// The beginnings of documents, and of the pieces of long ones.
struct Places {
  std::vector<std::string> beginnings;
  std::size_t longest_bytes = 0;  // of a piece
};

Places places_of(const ContinuedTexts& texts, std::size_t piece_bytes) {
  const std::size_t n_bytes = kBytesPerToken * static_cast<std::size_t>(texts.prompt_tokens);
  TextDocuments documents(texts.paths, texts.separator, piece_bytes);
  Places all;
  std::vector<std::string>& places = all.beginnings;
  std::size_t step = 1;
  for (std::size_t number = 0; const auto piece = documents.next(); ++number) {
    all.longest_bytes = std::max(all.longest_bytes, piece->text.size());
    if (number % step != 0) continue;
    places.push_back(beginning(piece->text, n_bytes));
    if (places.size() < kMaxPlaces) continue;
    for (std::size_t at = 1; 2 * at < places.size(); ++at) places[at] = std::move(places[2 * at]);
    places.resize(places.size() / 2);
    step *= 2;
  }
  return all;
}

// The requested number, evenly chosen, or all.
std::vector<std::vector<TokenId>> beginnings_of(const std::vector<std::string>& places,
                                                const Tokenizer& tokenizer,
                                                const ContinuedTexts& texts) {
  const auto wanted = static_cast<std::size_t>(texts.count);
  const auto n_tokens = static_cast<std::size_t>(texts.prompt_tokens);
  std::vector<std::vector<TokenId>> found;
  std::vector<bool> tried(places.size(), false);
  const auto try_place = [&](std::size_t at) {
    if (found.size() == wanted || tried[at]) return;
    tried[at] = true;
    std::vector<TokenId> tokens = tokenizer.encode(places[at], true);
    if (tokens.size() < n_tokens) return;
    tokens.resize(n_tokens);
    found.push_back(std::move(tokens));
  };
  for (std::size_t i = 0; i < wanted && !places.empty(); ++i) try_place(i * places.size() / wanted);
  for (std::size_t at = 0; at < places.size(); ++at) try_place(at);
  return found;
}

}  // namespace

std::vector<std::vector<TokenId>> text_beginnings(const Tokenizer& tokenizer,
                                                  const ContinuedTexts& texts,
                                                  const char* operation) {
  // A shorter piece rarely has the requested tokens.
  const std::size_t shortest =
      std::max(kMinPiece_bytes, static_cast<std::size_t>(texts.prompt_tokens));
  std::size_t most = 0;
  for (std::size_t piece_bytes = TextDocuments::kPiece_bytes; piece_bytes >= shortest;) {
    const Places places = places_of(texts, piece_bytes);
    auto found = beginnings_of(places.beginnings, tokenizer, texts);
    if (found.size() == static_cast<std::size_t>(texts.count)) return found;
    most = std::max(most, found.size());
    // Shorter documents are not split.
    piece_bytes = std::min(piece_bytes, places.longest_bytes) / 2;
  }
  throw Error(operation, "texts",
              fmt::format("{} places with {} tokens each (--texts and --prompt-tokens ask for "
                          "fewer)",
                          texts.count, texts.prompt_tokens),
              fmt::format("{}", most));
}

void check_texts(const Model& model, const ContinuedTexts& texts, int min_tokens, int n_rows,
                 const char* operation) {
  const auto require = [operation](const char* what, int value, int least) {
    if (value >= least) return;
    throw UsageError(operation, what, fmt::format("{} or more", least), fmt::format("{}", value));
  };
  if (texts.paths.empty()) throw UsageError(operation, "texts", "at least one", "none");
  require("texts", texts.count, 1);
  require("prompt", texts.prompt_tokens, 1);
  require("max_tokens", texts.max_tokens, min_tokens);
  const int room = model.summary().context_length;
  if (middle_of(texts) <= room - n_rows) return;
  throw UsageError(operation, "tokens of prompts and continuations",
                   fmt::format("room for {} rows in the model's context of {} behind a prompt and "
                               "half its continuation",
                               n_rows, room),
                   fmt::format("{} tokens", middle_of(texts)));
}

std::int64_t middle_of(const ContinuedTexts& texts) {
  return std::int64_t{texts.prompt_tokens} + texts.max_tokens / 2;
}

}  // namespace outrider
