// SPDX-License-Identifier: Apache-2.0
// `outrider train seq2seq` as its users see it: pairs in, a directory and a BLEU score out; stopped
// and killed, from a model and a teacher, and with mismatched input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/tiny_tokenizer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
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

  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read(name)); }

  // "padded": an untrained model of 2,000 rows, with the tokenizer of 300 tokens.
  void make_padded_model() {
    fs::create_directories(root_.path() / "wide");
    write("wide/tokenizer.json", tokenizer_json(make_tiny_vocabulary(2000)));
    write("wide/tokenizer_config.json", read("tokenizer/tokenizer_config.json"));
    Words all = words("padded", {"--steps", "1"});
    std::replace(all.begin(), all.end(), at("tokenizer"), at("wide"));
    const ProgramRun run = run_program(all);
    ASSERT_EQ(run.status, 0) << run.err;
    write("padded/tokenizer.json", read("tokenizer/tokenizer.json"));
  }
  void change_config(const char* key, const nlohmann::json& value) {
    nlohmann::json config = json("padded/config.json");
    config[key] = value;
    write("padded/config.json", config.dump());
  }
  // A run that gets a signal when its log has a given number of lines, however fast it is.
  ProgramRun signalled_behind_steps(int n_steps, const std::string& signal, const std::string& out,
                                    const Words& all) const {
    // The shell becomes the program; its child watches the log.
    constexpr const char* kScript =
        "pid=$$; log=$1; n=$2; signal=$3; shift 3\n"
        "( while kill -0 $pid && [ \"$(cat \"$log\" | wc -l)\" -lt $n ]; do sleep 0.01; done\n"
        "  kill -$signal $pid ) > /dev/null 2>&1 &\n"
        "exec \"$@\"\n";
    Words shell = {
        "-c",   kScript,         "sh", at(out + "/training/log.jsonl"), std::to_string(n_steps),
        signal, OUTRIDER_PROGRAM};
    shell.insert(shell.end(), all.begin(), all.end());
    return run_program(shell, {.program = "/bin/sh"});
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

// In the middle of its steps, by a user and by the system.
TEST_F(TrainSeq2Seq, StoppedOrKilledItGoesOnBitForBit) {
  constexpr std::int64_t kSteps = 120;
  const Words flags = {"--steps", std::to_string(kSteps), "--dropout",
                       "0.1",     "--checkpoint-every",   "9"};
  ASSERT_EQ(run_program(words("whole", flags)).status, 0);
  const std::string expected = read("whole/model.safetensors");
  ASSERT_FALSE(expected.empty());
  struct Case {
    const char* signal;
    int status;
  };
  for (const Case& one : {Case{"INT", 130}, Case{"KILL", 137}}) {
    SCOPED_TRACE(one.signal);
    const std::string out = std::string("parts") + one.signal;
    Words resumed = words(out, flags);
    resumed.emplace_back("--resume");
    const ProgramRun part = signalled_behind_steps(20, one.signal, out, resumed);
    EXPECT_EQ(part.status, one.status) << part.err;
    const std::string log = read(out + "/training/log.jsonl");
    const auto n_steps = std::count(log.begin(), log.end(), '\n');
    EXPECT_GE(n_steps, 20);
    EXPECT_LT(n_steps, kSteps);
    EXPECT_FALSE(fs::exists(at(out + "/model.safetensors")));
    const ProgramRun rest = run_program(resumed);
    ASSERT_EQ(rest.status, 0) << rest.err;
    EXPECT_EQ(read(out + "/model.safetensors"), expected);
    EXPECT_EQ(read(out + "/tokenizer_config.json"), read("whole/tokenizer_config.json"));
  }
  // Other texts make another run.
  write("target", "1\n2\n3\n4\n");
  Words other = words("partsINT", flags);
  other.emplace_back("--resume");
  const ProgramRun refused = run_program(other);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("tokens: expected"));
}

// A teacher with more rows than tokens, as published T5 models have. The trained model has as many
// rows, and never emits a row without a token.
TEST_F(TrainSeq2Seq, LearnsFromATeacherWithMoreRowsThanTokens) {
  make_padded_model();
  const ProgramRun run =
      run_program(words("out", {"--steps", "1", "--teacher", at("padded"), "--test-source",
                                at("source"), "--test-target", at("target")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("BLEU "));
  EXPECT_EQ(json("out/config.json")["vocab_size"], 2000);

  ProgramRun refused =
      run_program(words("smooth", {"--teacher", at("padded"), "--label-smoothing", "0.1"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("label-smoothing: expected 0 with --teacher"));
  change_config("eos_token_id", 2);
  refused = run_program(words("end", {"--teacher", at("padded")}));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("eos_token_id of " + at("padded") +
                                     ": expected 1, the tokenizer's end token, got 2"));
  change_config("decoder_start_token_id", 90000);
  refused = run_program(words("start", {"--teacher", at("padded")}));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("decoder_start_token_id in"));
}

TEST_F(TrainSeq2Seq, GoesOnWithAModelAsItsConfigSays) {
  make_padded_model();
  change_config("relative_attention_max_distance", 20);
  change_config("layer_norm_epsilon", 1e-5);
  change_config("decoder_start_token_id", 3);
  const auto expected = json("padded/config.json");
  // The shape may be omitted.
  const Words flags = {"train",      "seq2seq",     "--source",      at("source"), "--target",
                       at("target"), "--tokenizer", at("tokenizer"), "--init",     at("padded"),
                       "--batch",    "4",           "--length",      "64",         "--steps",
                       "1",          "--export",    "f32",           "--threads",  "1",
                       "--out",      at("out"),     "--test-source", at("source"), "--test-target",
                       at("target")};
  const ProgramRun run = run_program(flags);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(json("out/config.json"), expected);
  // If given, it must be the model's.
  EXPECT_EQ(run_program(words("same", {"--init", at("padded"), "--steps", "1"})).status, 0);
  for (const auto& [flag, own] : {std::pair("--dim", "32"), std::pair("--hidden", "64"),
                                  std::pair("--layers", "1"), std::pair("--head-dim", "16"),
                                  std::pair("--decoder-layers", "1"), std::pair("--heads", "2")}) {
    Words other = flags;
    std::replace(other.begin(), other.end(), at("out"), at("other"));
    other.insert(other.end(), {flag, "8"});
    const ProgramRun refused = run_program(other);
    EXPECT_EQ(refused.status, 2) << flag;
    EXPECT_THAT(refused.err, HasSubstr(std::string(flag).substr(2) + ": expected " + own +
                                       ", as the model of --init has"));
  }
}

TEST_F(TrainSeq2Seq, SaysWhatIsLeftOut) {
  const std::string longer = std::string(100, 'z') + "\n";
  write("source", read("source") + longer + longer);
  write("target", read("target") + "1\n2\n");
  write("held.source", "eins\n" + longer);
  write("held.target", "one\n1\n");
  const ProgramRun run =
      run_program(words("out", {"--steps", "1", "--held-out-source", at("held.source"),
                                "--held-out-target", at("held.target")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(" 4 pairs of "));
  EXPECT_THAT(run.err,
              HasSubstr("(2 left out: a text longer than 64 tokens); held out 1 pair of "));
  EXPECT_THAT(run.err, HasSubstr("(1 left out: a text longer than 64 tokens)\n"));
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
  // Two heads' scores of 5,792 tokens take 256 MiB.
  write("long", "a\n" + std::string(6000, 'z') + "\nc\nd\n");
  expect_refused(words("out", {"--test-source", at("long"), "--test-target", at("target")}), 1,
                 "long line 2: expected at most 5792 tokens");
  expect_refused(words("out", {"--dropout", "1"}), 2, "[0, 1)");
  expect_refused(words("out", {"--init", at("nowhere")}), 1, "nowhere");
  expect_refused(words("out", {"--teacher", at("nowhere")}), 1, "nowhere");
  Words wide = words("out");
  std::replace(wide.begin(), wide.end(), std::string("4"), std::string("100000"));
  expect_refused(wide, 2, "vocabulary: expected at most 41 tokens");
  Words short_texts = words("out");
  std::replace(short_texts.begin(), short_texts.end(), std::string("64"), std::string("2"));
  expect_refused(short_texts, 1, at("source") + ": expected a pair of texts of at most 2 tokens");
}

}  // namespace
}  // namespace outrider::test
