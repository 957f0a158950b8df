// `outrider train seq2seq` as its users meet it: pairs in, a directory and a BLEU out; killed, and
// given what does not belong together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_tokenizer.h"

namespace outrider::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class TrainSeq2Seq : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider-train")) {
      GTEST_SKIP() << "built without libtorch: no outrider-train";
    }
    fs::create_directories(root_.path() / "tokenizer");
    write("tokenizer/tokenizer.json", tokenizer_json(make_tiny_vocabulary(300)));
    write("tokenizer/tokenizer_config.json",
          R"({"bos_token": "<|begin|>", "eos_token": "<|end|>"})");
    write("source", "eins zwei\ndrei\nvier und\nsechs\n");
    write("target",
          "one two red blue\nthree old green cats\nfour more big dogs\nsix small white mice\n");
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_.path() / name, std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(root_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string at(const std::string& name) const { return (root_.path() / name).string(); }
  Words words(const std::string& out, const Words& more = {}) const {
    Words all = {"train",    "seq2seq",    "--source",        at("source"),
                 "--target", at("target"), "--tokenizer",     at("tokenizer"),
                 "--layers", "1",          "--dim",           "32",
                 "--heads",  "2",          "--head-dim",      "16",
                 "--hidden", "64",         "--batch",         "4",
                 "--length", "64",         "--threads",       "1",
                 "--export", "f32",        "--learning-rate", "1e-2",
                 "--out",    at(out)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TemporaryDirectory root_;
};

TEST_F(TrainSeq2Seq, LearnsByHeartAndSaysSo) {
  const ProgramRun run = run_program(
      words("out", {"--steps", "200", "--held-out-source", at("source"), "--held-out-target",
                    at("target"), "--test-source", at("source"), "--test-target", at("target")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("4 pairs"), HasSubstr("held out 0.0")));
  EXPECT_THAT(run.out, StartsWith("BLEU 100.00 [100.00, 100.00] of 4 texts (nrefs:1|"));
  EXPECT_EQ(read("out/training/test_answers.txt"), read("target"));
  const auto config = nlohmann::json::parse(read("out/config.json"));
  EXPECT_EQ(config["model_type"], "t5");
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["eos_token_id"], 1);
  EXPECT_EQ(config["decoder_start_token_id"], config["pad_token_id"]);
  EXPECT_EQ(nlohmann::json::parse(read("out/tokenizer_config.json"))["pad_token"], "<|begin|>");
}

TEST_F(TrainSeq2Seq, StoppedItGoesOnBitForBit) {
  const Words flags = {"--steps", "40", "--dropout", "0.1", "--checkpoint-every", "9"};
  ASSERT_EQ(run_program(words("whole", flags)).status, 0);
  Words resumed = words("parts", flags);
  resumed.emplace_back("--resume");
  // Each run is given a little longer than the one before: the last ones train and are stopped.
  int n_stopped = 0;
  for (int wait = 300; wait < 20000; wait = wait * 5 / 4) {
    const ProgramRun part =
        run_program(resumed, {.interrupt_after = std::chrono::milliseconds(wait)});
    if (part.status == 0) break;
    EXPECT_EQ(part.status, 130) << part.err;
    ++n_stopped;
  }
  EXPECT_GE(n_stopped, 1);
  const std::string expected = read("whole/model.safetensors");
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(read("parts/model.safetensors"), expected);
  EXPECT_EQ(read("parts/tokenizer_config.json"), read("whole/tokenizer_config.json"));
  // Other texts are another run.
  write("target", "1\n2\n3\n4\n");
  const ProgramRun other = run_program(resumed);
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("tokens: expected"));
}

TEST_F(TrainSeq2Seq, RefusesWhatCannotBeMeant) {
  const auto expect_refused = [&](const Words& all, int status, const std::string& what) {
    const ProgramRun run = run_program(all);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, AllOf(StartsWith("outrider-train: "), HasSubstr(what)));
    EXPECT_FALSE(fs::exists(at("out")));
  };
  write("three", "a\nb\nc\n");
  write("gap", "a\n\nc\nd\n");
  const auto with_target = [&](const std::string& target) {
    Words all = words("out");
    std::replace(all.begin(), all.end(), at("target"), at(target));
    return all;
  };
  expect_refused(with_target("three"), 1, "expected 4 lines");
  expect_refused(with_target("gap"), 1, "gap line 2: expected a sentence");
  expect_refused(with_target("nowhere"), 1, "nowhere");
  expect_refused(words("out", {"--held-out-source", at("source")}), 2, "held-out-target");
  expect_refused(words("out", {"--test-target", at("source")}), 2, "test-source");
  expect_refused(words("out", {"--test-source", at("source"), "--test-target", at("three")}), 1,
                 "expected 4 lines");
  expect_refused(words("out", {"--dropout", "1"}), 2, "[0, 1)");
  expect_refused(words("out", {"--init", at("nowhere")}), 1, "nowhere");
  expect_refused(words("out", {"--teacher", at("nowhere")}), 1, "nowhere");
  Words wide = words("out");
  std::replace(wide.begin(), wide.end(), std::string("4"), std::string("100000"));
  expect_refused(wide, 2, "vocabulary: expected at most 41 tokens");
  Words short_texts = words("out");
  std::replace(short_texts.begin(), short_texts.end(), std::string("64"), std::string("2"));
  expect_refused(short_texts, 1, "texts of at most 2 tokens");
}

}  // namespace
}  // namespace outrider::testing
