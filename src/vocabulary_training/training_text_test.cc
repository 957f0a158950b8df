// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/training_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"
#include "vocabulary_training/test_texts.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

class TrainingTextTest : public ::testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& bytes) {
    const fs::path path = directory_.path() / name;
    test::write_bytes(path, bytes);
    return path;
  }
  static Lines sample(const TrainingText& text, std::int64_t max_lines, std::uint64_t seed) {
    LineSample lines(text, max_lines, seed);
    Lines parts;
    for (std::string part; lines.next(part);) parts.push_back(part);
    return parts;
  }
  std::string refusal(const std::vector<fs::path>& files) {
    try {
      const TrainingText text(files);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  test::TemporaryDirectory directory_;
};

TEST_F(TrainingTextTest, LinesOfAllFilesInOrder) {
  const TrainingText text(
      {file("a", "one\r\n\n two  \n\r\nthree"), file("b", ""), file("c", "\n\nfo\rur\n")});
  EXPECT_EQ(sample(text, 0, 0), (Lines{"one", " two  ", "three", "fo\rur"}));
  EXPECT_EQ(text.n_lines(), 4);
  EXPECT_EQ(text.n_bytes(), 20 + 8);
}

TEST_F(TrainingTextTest, RefusesWhatIsNoText) {
  const fs::path good = file("good", "text\n");
  EXPECT_THAT(refusal({good, directory_.path() / "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(refusal({good, directory_.path()}), HasSubstr("regular file"));
  EXPECT_THAT(refusal({file("empty", "")}), HasSubstr("empty: expected at least one line"));
  EXPECT_THAT(refusal({file("blank", "\n\r\n\n")}), HasSubstr("empty lines only"));
  EXPECT_THAT(refusal({good, file("binary", "ab\nc\n\xFE x")}),
              HasSubstr("binary: expected UTF-8 text, got byte 0xFE in line 3"));
  EXPECT_THAT(refusal({file("cut", "ab\xE2\x82")}), HasSubstr("0xE2 in line 1"));
}

TEST_F(TrainingTextTest, ASampleIsAsManyLinesAsAskedForInTheirOrder) {
  std::string bytes;
  for (int line = 100; line < 200; ++line) bytes += std::to_string(line) + "\n";
  const TrainingText text({file("a", bytes)});
  std::set<Lines> seen;
  std::set<std::string> lines;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Lines drawn = sample(text, 10, seed);
    EXPECT_EQ(drawn.size(), 10U);
    EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
    EXPECT_EQ(drawn, sample(text, 10, seed));
    EXPECT_EQ(LineSample(text, 10, seed).n_lines(), 10);
    lines.insert(drawn.begin(), drawn.end());
    seen.insert(drawn);
  }
  EXPECT_EQ(seen.size(), 50U);
  // A line is missing from all 50 draws with probability 0.9^50 = 0.5 %. So of a hundred lines more
  // than 90 are seen, unless something is badly wrong (the seeds are fixed).
  EXPECT_GT(lines.size(), 90U);
  EXPECT_EQ(sample(text, 100, 5), sample(text, 0, 0));
  EXPECT_EQ(sample(text, 1000, 5), sample(text, 0, 0));
}

TEST_F(TrainingTextTest, ALongLineIsCutBetweenItsWords) {
  constexpr std::size_t kLongest = LineSample::kLongestPart_bytes;
  const std::string word(kLongest - 10, 'a');
  const TrainingText text({file("a", word + "   bb " + std::string(100, 'c') + " d")});
  EXPECT_EQ(sample(text, 0, 0), (Lines{word + "   bb", std::string(100, 'c') + " d"}));
  const TrainingText blanks({file("b", word + " " + std::string(20, ' ') + "b")});
  EXPECT_EQ(sample(blanks, 0, 0), (Lines{word, std::string(20, ' ') + "b"}));
}

TEST_F(TrainingTextTest, AWordLongerThanAPartIsCutBetweenItsCharacters) {
  constexpr std::size_t kLongest = LineSample::kLongestPart_bytes;
  std::string word;  // three-byte characters, which do not divide a part's size
  while (word.size() < 3 * kLongest) word += "\xE4\xBD\xA0";
  const TrainingText text({file("a", word)});
  const Lines parts = sample(text, 0, 0);
  std::string whole;
  for (const std::string& part : parts) {
    EXPECT_LE(part.size(), kLongest);
    EXPECT_EQ(part.size() % 3, 0U);
    whole += part;
  }
  EXPECT_EQ(whole, word);
}

}  // namespace
}  // namespace outrider
