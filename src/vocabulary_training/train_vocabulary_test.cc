// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/train_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tests/support/temporary_directory.h"
#include "vocabulary_training/test_texts.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

class TrainVocabulary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_sentencepiece(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  fs::path text_file(const std::string& bytes) {
    test::write_bytes(root() / "text", bytes);
    return root() / "text";
  }
  const fs::path& root() const { return root_.path(); }

  TrainedVocabulary train(const std::string& bytes, const PieceOptions& options,
                          std::int64_t max_lines = 0, std::uint64_t seed = 0) {
    const TrainingText text({text_file(bytes)});
    LineSample lines(text, max_lines, seed);
    return train_vocabulary(lines, options);
  }
  // A UsageError's message, with its "expected X, got Y".
  std::string refusal(const std::string& bytes, const PieceOptions& options) {
    try {
      train(bytes, options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

 private:
  test::TemporaryDirectory root_;
};

TEST_F(TrainVocabulary, GivesADirectoryThatTheTokenizerReads) {
  const std::string text = test::made_up_text(400);
  for (const int size : {300, 450, 600}) {
    const TrainedVocabulary vocabulary = train(text, {.vocabulary_size = size});
    EXPECT_EQ(vocabulary.n_pieces, size);
    EXPECT_EQ(vocabulary.n_pieces, 3 + 256 + vocabulary.n_merged + vocabulary.n_characters);
    const fs::path directory = root() / std::to_string(size);
    VocabularyDirectory(directory, {}).write(vocabulary);
    const auto tokenizer = Tokenizer::load(directory);
    EXPECT_EQ(tokenizer->vocabulary_size(), size);
    EXPECT_EQ(tokenizer->bos_token(), 1);
    EXPECT_EQ(tokenizer->eos_token(), 2);
    EXPECT_EQ(tokenizer->piece(0), "<unk>");
    EXPECT_EQ(tokenizer->piece(3 + 0x0A), "<0x0A>");
    for (const TokenId special : {0, 1, 2}) EXPECT_TRUE(tokenizer->is_special(special));
    for (const std::string& odd :
         {text, std::string(""), std::string("  a   b  "), std::string("a\n\nb\t\r\n"),
          std::string("\xE4\xBD\xA0 \xF0\x9F\x98\x80"), std::string("\xE2\x96\x85 12345")}) {
      const Ids ids = tokenizer->encode(odd, true);
      EXPECT_EQ(ids.front(), 1);
      EXPECT_EQ(tokenizer->decode(ids), odd);
    }
    // The result is useful: the largest one covers two bytes and more per token.
    if (size == 600) {
      EXPECT_LT(tokenizer->encode(text, false).size() * 2, text.size());
    }
  }
}

TEST_F(TrainVocabulary, TheSameLinesGiveTheSameBytes) {
  const std::string text = test::made_up_text(300);
  const auto bytes = [](const TrainedVocabulary& vocabulary) {
    return vocabulary.tokenizer_json + vocabulary.tokenizer_config_json +
           vocabulary.tokenizer_model;
  };
  const std::string once = bytes(train(text, {.vocabulary_size = 400}));
  EXPECT_EQ(bytes(train(text, {.vocabulary_size = 400})), once);
  const std::string sampled = bytes(train(text, {.vocabulary_size = 330}, 60, 1));
  EXPECT_EQ(bytes(train(text, {.vocabulary_size = 330}, 60, 1)), sampled);
  EXPECT_NE(bytes(train(text, {.vocabulary_size = 330}, 60, 2)), sampled);
}

TEST_F(TrainVocabulary, SaysWhichSizesATextAllows) {
  // Six characters, including a blank; and the few pieces of such a short text, "_c", "_ca", ...
  const std::string text = "cat act tac\n cob";
  const std::string too_small = refusal(text, {.vocabulary_size = 260});
  EXPECT_THAT(too_small, HasSubstr("at least 265 "));
  const std::string too_large = refusal(text, {.vocabulary_size = 30000});
  EXPECT_THAT(too_large, HasSubstr("at most "));
  const int most = std::stoi(too_large.substr(too_large.find("at most ") + 8));
  // And the numbers are right.
  EXPECT_EQ(train(text, {.vocabulary_size = 265}).n_pieces, 265);
  EXPECT_EQ(train(text, {.vocabulary_size = most}).n_pieces, most);
  EXPECT_THAT(refusal(text, {.vocabulary_size = 264}), HasSubstr("at least"));
  EXPECT_THAT(refusal(text, {.vocabulary_size = most + 1}), HasSubstr("at most"));
}

TEST_F(TrainVocabulary, CoverageLeavesRareCharactersToBytes) {
  std::string text = test::made_up_text(300);
  text += "\xE4\xBD\xA0\n";
  const auto has_piece = [](const TrainedVocabulary& vocabulary) {
    return nlohmann::json::parse(vocabulary.tokenizer_json)["model"]["vocab"].contains(
        "\xE4\xBD\xA0");
  };
  EXPECT_TRUE(has_piece(train(text, {.vocabulary_size = 400, .character_coverage = 1})));
  EXPECT_FALSE(has_piece(train(text, {.vocabulary_size = 400, .character_coverage = 0.999})));
}

// SentencePiece drops lines with its mark of unknown characters, and lines that are too long.
TEST_F(TrainVocabulary, NoLineIsDropped) {
  const auto learns_the_word = [this](const std::string& text) {
    const TrainedVocabulary vocabulary = train(text, {.vocabulary_size = 273});
    return nlohmann::json::parse(vocabulary.tokenizer_json)["model"]["vocab"].contains(
        "\xE2\x96\x81hedgehog");
  };
  EXPECT_TRUE(learns_the_word("hedgehog\xE2\x96\x85hedgehog"));
  std::string longer;
  while (longer.size() < 5 * LineSample::kLongestPart_bytes) longer += "hedgehog ";
  EXPECT_TRUE(learns_the_word(longer));
  EXPECT_EQ(train(std::string(200000, 'a'), {.vocabulary_size = 265}).n_pieces, 265);
}

TEST_F(TrainVocabulary, OddTextsAreTextsToo) {
  const std::string zeros("a\0b ab\0", 7);
  for (const std::string& text :
       {std::string("   \n"), zeros, std::string("\t\t\n"), std::string("</s> <0x41> <unk>"),
        std::string("\xE2\x96\x85\xE2\x96\x85\n"),
        std::string("\xEF\xBB\xBF"
                    "a\n")}) {
    SCOPED_TRACE(::testing::PrintToString(text));
    try {
      const TrainedVocabulary vocabulary = train(text, {.vocabulary_size = 263});
      EXPECT_EQ(vocabulary.n_pieces, 263);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      EXPECT_THAT(error.what(), HasSubstr("expected"));
    }
  }
}

// ---- the directory

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TrainedVocabulary with_contents(const std::string& contents) {
  TrainedVocabulary vocabulary;
  vocabulary.tokenizer_json = contents;
  vocabulary.tokenizer_config_json = contents + " config";
  vocabulary.tokenizer_model = contents + " model";
  return vocabulary;
}

std::string directory_refusal(const fs::path& path, const VocabularyDirectory::Options& options) {
  try {
    const VocabularyDirectory directory(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(VocabularyDirectory, IsMadeWithItsParents) {
  const test::TemporaryDirectory root;
  const fs::path path = root.path() / "a" / "b" / "";
  VocabularyDirectory(path, {}).write(with_contents("x"));
  EXPECT_THAT(names_in(root.path() / "a"), ElementsAre("b"));
  EXPECT_THAT(names_in(path), ElementsAre("tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(test::read_bytes(path / "tokenizer.json"), "x");
}

TEST(VocabularyDirectory, OtherFilesInItStay) {
  const test::TemporaryDirectory root;
  test::write_bytes(root.path() / "config.json", "mine");
  VocabularyDirectory(root.path(), {.keep_model = true}).write(with_contents("x"));
  EXPECT_THAT(names_in(root.path()), ElementsAre("config.json", "tokenizer.json", "tokenizer.model",
                                                 "tokenizer_config.json"));
}

TEST(VocabularyDirectory, ATokenizerThatIsThereStaysUnlessOverwritten) {
  const test::TemporaryDirectory root;
  VocabularyDirectory(root.path(), {.keep_model = true}).write(with_contents("old"));
  EXPECT_THAT(directory_refusal(root.path(), {}), HasSubstr("--force"));
  EXPECT_EQ(test::read_bytes(root.path() / "tokenizer.json"), "old");
  // The old model would contradict the new vocabulary.
  VocabularyDirectory(root.path(), {.overwrite = true}).write(with_contents("new"));
  EXPECT_THAT(names_in(root.path()), ElementsAre("tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(test::read_bytes(root.path() / "tokenizer.json"), "new");
}

TEST(VocabularyDirectory, RefusesBeforehandWhereItCannotWrite) {
  const test::TemporaryDirectory root;
  test::write_bytes(root.path() / "file", "");
  EXPECT_THAT(directory_refusal(root.path() / "file", {}), HasSubstr("Not a directory"));
  EXPECT_THAT(directory_refusal(root.path() / "file" / "below", {}), HasSubstr("Not a directory"));
  EXPECT_THROW(VocabularyDirectory("/proc/nowhere", {}).write(with_contents("x")), Error);
  if (::geteuid() != 0) {  // root may write anywhere
    fs::create_directory(root.path() / "closed");
    fs::permissions(root.path() / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_THAT(directory_refusal(root.path() / "closed" / "x", {}), HasSubstr("denied"));
  }
}

// The disk may become full at any file: existing files stay unchanged.
TEST(VocabularyDirectory, AFailedWriteLeavesEverythingAsItWas) {
  const test::TemporaryDirectory root;
  VocabularyDirectory(root.path(), {.keep_model = true}).write(with_contents("old"));
  const VocabularyDirectory directory(root.path(), {.overwrite = true, .keep_model = true});
  for (const char* const name : {"tokenizer_config.json", "tokenizer.model", "tokenizer.json"}) {
    // A directory at the place of a partial file simulates the full disk.
    const fs::path obstacle = root.path() / (std::string(name) + ".outrider-partial");
    fs::create_directory(obstacle);
    EXPECT_THROW(directory.write(with_contents("new")), Error);
    EXPECT_EQ(test::read_bytes(root.path() / "tokenizer.json"), "old");
    EXPECT_EQ(test::read_bytes(root.path() / "tokenizer.model"), "old model");
    EXPECT_EQ(test::read_bytes(root.path() / "tokenizer_config.json"), "old config");
    fs::remove(obstacle);
    EXPECT_EQ(names_in(root.path()).size(), 3U);
  }
}

}  // namespace
}  // namespace outrider
