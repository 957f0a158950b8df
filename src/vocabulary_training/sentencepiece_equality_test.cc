// SPDX-License-Identifier: Apache-2.0
// Compares the exported tokenizer with SentencePiece's own encoder and decoder for the same pieces.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <random>

#include "tests/support/temporary_directory.h"
#include "tokenizer/formats/tokenizer_json.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/texts/utf8.h"
#include "vocabulary_training/test_texts.h"
#include "vocabulary_training/train_vocabulary.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

struct Pair {
  std::unique_ptr<PipelineTokenizer> ours;
  sentencepiece::SentencePieceProcessor theirs;

  Pair(const fs::path& file, const PieceOptions& options, std::int64_t max_lines = 0) {
    const TrainingText text({file});
    LineSample lines(text, max_lines, 0);
    const TrainedVocabulary vocabulary = train_vocabulary(lines, options);
    ours = std::make_unique<PipelineTokenizer>(
        parse_tokenizer_json(vocabulary.tokenizer_json, "test"));
    EXPECT_TRUE(theirs.LoadFromSerializedProto(vocabulary.tokenizer_model).ok());
  }

  // Both encode alike, and both decode to the original text (in which U+2581, the mark of a blank,
  // is equivalent to one). Returns the number of tokens.
  std::size_t compare(const std::string& text) {
    const Ids ids = ours->encode(text, false);
    Ids expected;
    EXPECT_TRUE(theirs.Encode(text, &expected).ok());
    EXPECT_EQ(ids, expected) << ::testing::PrintToString(text.substr(0, 200));
    std::string back = text;
    for (std::size_t at = back.find(kLowerBlock); at != std::string::npos;
         at = back.find(kLowerBlock)) {
      back.erase(at, kLowerBlock.size() - 1);
      back[at] = ' ';
    }
    EXPECT_EQ(ours->decode(ids), back);
    std::string decoded;
    EXPECT_TRUE(theirs.Decode(expected, &decoded).ok());
    EXPECT_EQ(decoded, back);
    return ids.size();
  }
};

const std::string kZeros("\0 \0\0", 4);
const std::string kOddTexts[] = {
    "",
    " ",
    "  ",
    "a",
    " a",
    "a ",
    "   a   b    ",
    "\n",
    "\n\n\n",
    " \n \n",
    "a\nb\n",
    "\t",
    "\r\n",
    "1234567890",
    "3.14159",
    "<0x41>",
    "x<0x0A>y",
    "\xE2\x96\x81",
    "\xE2\x96\x81\xE2\x96\x81 a",
    "\xE2\x96\x85",
    "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C\xE4\xB8\x96\xE7\x95\x8C",
    kZeros,
    "\xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80",
    "na\xC3\xAFve caf\x65\xCC\x81",
    "\xC2\xA0\xE3\x80\x80",
    "\xEF\xBF\xBD",
    "\xEF\xBB\xBF"
    "bom",
    "--------------------",
    "ha ha ha",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "<",
    "</",
    "< s>",
    "'\"`\\/",
    "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xD0\xBF\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 "
    "\xE0\xA4\xA8\xE0\xA4\xAE"};

TEST(SentencePieceEquality, OnOddTexts) {
  const test::TemporaryDirectory root;
  const fs::path file = root.path() / "text";
  // The training text has runs of blanks and repetitions, so that pieces of them are learnt.
  std::string text = test::made_up_text(300);
  for (int line = 0; line < 40; ++line) text += "    ha ha haha ------ aaaa  x   aaaaaaa\n";
  test::write_bytes(file, text);
  std::mt19937 random(5);
  for (const int size : {300, 420, 600}) {
    Pair pair(file, {.vocabulary_size = size});
    for (const std::string& odd : kOddTexts) pair.compare(odd);
    pair.compare(text);
    // And mixtures of all of these.
    for (int mixture = 0; mixture < 300; ++mixture) {
      std::string mixed;
      for (unsigned n = random() % 12; n > 0; --n) {
        mixed += kOddTexts[random() % std::size(kOddTexts)];
        if (random() % 2 == 0) mixed += text.substr(random() % 2000, random() % 9);
        if (random() % 3 == 0) mixed.append(random() % 6, " a-\nh"[random() % 5]);
      }
      pair.compare(repair_utf8(mixed));
    }
  }
}

// Whole texts at once, and line by line: stories, and novels that were not used for training.
TEST(SentencePieceEquality, OnStoriesAndNovels) {
  const fs::path folder = fs::path(OUTRIDER_SHARED_DATA) / "text";
  const fs::path stories = folder / "tinystories_2MiB.txt";
  if (!fs::exists(stories)) GTEST_SKIP() << "no " << stories;
  std::vector<fs::path> files = {stories, folder / "wagahaiwa_nekodearu.txt"};
  for (const auto& entry : fs::directory_iterator(folder / "eltec_eng")) files.push_back(entry);
  std::sort(files.begin() + 2, files.end());
  files.resize(std::min<std::size_t>(files.size(), 8));
  for (const fs::path& source : {stories, files.back()}) {
    Pair pair(source, {.vocabulary_size = 2000, .character_coverage = 0.9995}, 5000);
    std::size_t n_tokens = 0;
    for (const fs::path& file : files) {
      SCOPED_TRACE(file);
      std::string text = test::read_bytes(file).substr(0, 200000);
      text.resize(scan_utf8(text).n_valid);  // the cut may have split a character
      n_tokens += pair.compare(text);
      for (std::size_t at = 0; at < text.size() && !HasFailure();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        pair.compare(text.substr(at, end - at));
        at = end + 1;
      }
    }
    EXPECT_GT(n_tokens, 100000U);
    RecordProperty("tokens", std::to_string(n_tokens));
  }
}

}  // namespace
}  // namespace outrider
