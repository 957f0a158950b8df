// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each letter is a token; texts begin with token 0 if requested.
class Letters : public Tokenizer {
 public:
  explicit Letters(bool begins) : begins_(begins) {}
  std::vector<TokenId> encode(std::string_view text, bool add_special) const override {
    std::vector<TokenId> ids;
    if (begins_ && add_special) ids.push_back(0);
    for (const char c : text) ids.push_back(c - 'a' + 1);
    return ids;
  }
  std::unique_ptr<Decoding> start_decoding(bool) const override { return nullptr; }
  bool has(TokenId) const override { return true; }
  std::string_view piece(TokenId) const override { return {}; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string bytes(TokenId) const override { return {}; }
  int vocabulary_size() const override { return 27; }
  bool is_special(TokenId id) const override { return id == 0; }
  TokenId bos_token() const override { return begins_ ? 0 : kNoToken; }
  TokenId eos_token() const override { return kNoToken; }
  const std::string& chat_template() const override { return template_; }

 private:
  bool begins_;
  std::string template_;
};

TEST(Windows, OneForAShortText) {
  const auto windows = windows_of({.text = "abc"}, Letters(true), 8);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_THAT(windows[0].tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(windows[0].n_given, 1);
  EXPECT_THAT(windows_of({.text = "abc"}, Letters(false), 8)[0].tokens, ElementsAre(1, 2, 3));
  EXPECT_TRUE(windows_of({.text = ""}, Letters(true), 8).empty());
  EXPECT_TRUE(windows_of({.text = "a"}, Letters(false), 8).empty());
}

TEST(Windows, LaterOnesBeginWithHalfAWindowOfWhatWasBefore) {
  const auto windows = windows_of({.text = "abcdefgh"}, Letters(true), 5);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_THAT(windows[0].tokens, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(windows[1].tokens, ElementsAre(0, 4, 5, 6, 7));
  EXPECT_EQ(windows[1].n_given, 2);
  EXPECT_THAT(windows[2].tokens, ElementsAre(0, 7, 8));
}

TEST(Windows, PredictEveryTokenButTheFirstOnce) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (const bool begins : {false, true}) {
    for (int n_tokens = 2; n_tokens < 30; ++n_tokens) {
      std::vector<TokenId> predicted;
      for (const Window& window : windows_of({.text = text}, Letters(begins), n_tokens)) {
        EXPECT_LE(static_cast<int>(window.tokens.size()), n_tokens);
        EXPECT_GE(window.n_given, 1);
        predicted.insert(predicted.end(), window.tokens.begin() + window.n_given,
                         window.tokens.end());
      }
      std::vector<TokenId> all = Letters(begins).encode(text, true);
      all.erase(all.begin());
      EXPECT_EQ(predicted, all) << n_tokens;
    }
  }
}

TEST(Windows, PredictTheTextAndNotWhatIsGiven) {
  const auto windows = windows_of({.given = "abc", .text = "de"}, Letters(true), 8);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_THAT(windows[0].tokens, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(windows[0].n_given, 4);
  EXPECT_TRUE(windows_of({.given = "abc", .text = ""}, Letters(true), 8).empty());
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (const bool begins : {false, true}) {
    for (int n_tokens = 2; n_tokens < 30; ++n_tokens) {
      for (std::size_t n_given = 1; n_given < text.size(); n_given += 3) {
        const Passage passage = {.given = text.substr(0, n_given), .text = text.substr(n_given)};
        std::vector<TokenId> predicted;
        for (const Window& window : windows_of(passage, Letters(begins), n_tokens)) {
          EXPECT_LE(static_cast<int>(window.tokens.size()), n_tokens);
          EXPECT_GE(window.n_given, 1);
          predicted.insert(predicted.end(), window.tokens.begin() + window.n_given,
                           window.tokens.end());
        }
        EXPECT_EQ(predicted, Letters(false).encode(passage.text, false)) << n_tokens;
      }
    }
  }
}

// Here "c" and what follows are one token, as after merges.
TEST(Windows, PredictATokenThatBothHaveAPartOf) {
  class Merging final : public Letters {
   public:
    Merging() : Letters(false) {}
    std::vector<TokenId> encode(std::string_view text, bool) const override {
      std::vector<TokenId> ids;
      for (std::size_t i = 0; i < text.size(); ++i) {
        const bool merged = text[i] == 'c' && i + 1 < text.size();
        ids.push_back(merged ? 26 : text[i] - 'a' + 1);
        if (merged) ++i;
      }
      return ids;
    }
  };
  const auto windows = windows_of({.given = "abc", .text = "de"}, Merging(), 8);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_THAT(windows[0].tokens, ElementsAre(1, 2, 26, 5));
  EXPECT_EQ(windows[0].n_given, 2);
}

TEST(Documents, AreCutAtTheSeparatorAndStripped) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path first = directory.path() / "first.txt";
  const std::filesystem::path second = directory.path() / "second.txt";
  std::ofstream(first) << "one\n\n##\n  two words \n##\n \n##three";
  std::ofstream(second) << "four";
  const std::array files = {first, second};
  EXPECT_THAT(read_documents(files, "##", 0), ElementsAre("one", "two words", "three", "four"));
  EXPECT_THAT(read_documents(files, "##", 2), ElementsAre("one", "two words"));
  EXPECT_EQ(read_documents(files, "", 0).size(), 2U);
  EXPECT_THROW(read_documents(std::array{directory.path() / "none"}, "", 0), Error);
  EXPECT_THROW(read_documents(std::array{directory.path()}, "", 0), Error);
  std::ofstream(first, std::ios::trunc) << " \n";
  EXPECT_THROW(read_documents(std::array{first}, "", 0), Error);
}

TEST(Documents, MustBeUtf8) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "latin.txt";
  std::ofstream(file) << "one\ncaf\xe9\n";
  try {
    read_documents(std::array{file}, "", 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("latin.txt: expected UTF-8 text, got byte 0xE9 in line 2"));
  }
}

}  // namespace
}  // namespace outrider::eval
