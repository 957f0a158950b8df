// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/texts.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider::eval {
namespace {

constexpr const char* kBlanks = " \t\r\n";

std::string read_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    throw Error("read text", path.string(), "a readable file", "a directory");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error("read text", path.string(), "a readable file",
                std::generic_category().message(errno));
  }
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw Error("read text", path.string(), "cannot be read to its end");
  require_utf8(text, "read text", path.string());
  return text;
}

}  // namespace

std::vector<std::string> read_documents(std::span<const std::filesystem::path> files,
                                        std::string_view separator, int n_texts) {
  std::vector<std::string> documents;
  const std::size_t most = n_texts > 0 ? static_cast<std::size_t>(n_texts) : SIZE_MAX;
  for (const std::filesystem::path& path : files) {
    const std::string text = read_file(path);
    for (std::size_t begin = 0; begin < text.size() && documents.size() < most;) {
      const std::size_t end =
          separator.empty() ? text.size() : std::min(text.find(separator, begin), text.size());
      const std::string_view document(text.data() + begin, end - begin);
      const std::size_t first = document.find_first_not_of(kBlanks);
      if (first != std::string_view::npos) {
        const std::size_t last = document.find_last_not_of(kBlanks);
        documents.emplace_back(document.substr(first, last - first + 1));
      }
      begin = separator.empty() ? text.size() : end + separator.size();
    }
  }
  if (documents.empty()) {
    throw Error("read text", files.empty() ? "texts" : files.front().string(), "some text",
                files.empty() ? "no file" : "nothing but blanks");
  }
  return documents;
}

std::vector<Window> windows_of(const Passage& passage, const Tokenizer& tokenizer, int n_tokens) {
  const std::vector<TokenId> tokens = tokenizer.encode(passage.given + passage.text, true);
  std::size_t first = 1;
  if (!passage.given.empty()) {
    // The tokens of the given text that stay the same when the scored text follows.
    const std::vector<TokenId> given = tokenizer.encode(passage.given, true);
    const auto differs = std::mismatch(given.begin(), given.end(), tokens.begin(), tokens.end());
    first = std::max<std::size_t>(1, static_cast<std::size_t>(differs.first - given.begin()));
  }
  const bool has_first =
      !tokens.empty() && tokenizer.bos_token() != kNoToken && tokens[0] == tokenizer.bos_token();
  const auto most = static_cast<std::size_t>(n_tokens);
  std::vector<Window> windows;
  for (std::size_t next = first; next < tokens.size();) {
    const std::size_t n_given = next == first && next < most ? next : most / 2;
    const std::size_t n_new = std::min(tokens.size() - next, most - n_given);
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(next - n_given);
    Window window{.tokens = {begin, begin + static_cast<std::ptrdiff_t>(n_given + n_new)},
                  .n_given = static_cast<int>(n_given)};
    if (has_first) window.tokens.front() = tokens.front();
    windows.push_back(std::move(window));
    next += n_new;
  }
  return windows;
}

std::vector<Window> windows_behind_encoder(const Passage& passage, const Tokenizer& tokenizer,
                                           TokenId start_token) {
  Window window{.tokens = {start_token},
                .n_given = 1,
                .encoder_tokens = tokenizer.encode(passage.given, true)};
  if (passage.given.empty() || window.encoder_tokens.empty()) {
    throw Error("measure rules", "texts", "something that the model's encoder reads (--task)",
                "nothing");
  }
  const std::size_t begin = std::min(passage.text.find_first_not_of(' '), passage.text.size());
  const std::vector<TokenId> tokens = tokenizer.encode(passage.text.substr(begin), false);
  if (tokens.empty()) return {};
  window.tokens.insert(window.tokens.end(), tokens.begin(), tokens.end());
  return {std::move(window)};
}

}  // namespace outrider::eval
