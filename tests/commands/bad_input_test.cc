// SPDX-License-Identifier: Apache-2.0
// Paths that are no models, drafters that do not fit, prompts that cannot be run and outputs that
// cannot be written, given to the real program: exit status 1 or 2, one line of bounded length that
// names the problem, and an empty standard output. (Flags alone: cli_test.cc.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/broken_model.h"

namespace outrider::test {
namespace {

TEST(BadInput, PathsThatAreNoModelAreRefused) {
  const fs::path root = Good::get().root();
  write_text(root / "text.gguf", "once upon a time");
  write_text(root / "text.txt", "once upon a time");
  fs::create_directory(root / "folder.gguf");
  fs::create_symlink(root / "nowhere", root / "dangling.gguf");
  fs::create_symlink(root / "circle.gguf", root / "circle.gguf");
  ASSERT_EQ(::mkfifo((root / "pipe.gguf").c_str(), 0600), 0);
  for (const std::string name : {"text.gguf", "text.txt", "folder.gguf", "dangling.gguf",
                                 "circle.gguf", "pipe.gguf", "good/config.json"}) {
    SCOPED_TRACE(name);
    expect_refused(run_program(generate_words(root / name)), 1, fs::path(name).filename());
    expect_others_hold(root / name);
  }
  for (const std::string& name : {std::string(300, 'n'), std::string(5000, 'n'),
                                  std::string(400, '\n'), std::string("/dev/null")}) {
    SCOPED_TRACE(name.size());
    expect_refused(run_program(generate_words(name)), 1, name.substr(0, 5) == "/dev/" ? name : "");
    expect_others_hold(name);
  }
}

TEST(BadInput, UnreadableFilesAreRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const fs::path directory = Good::get().root() / "unreadable";
  for (const std::string name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    SCOPED_TRACE(name);
    fs::remove_all(directory);
    fs::copy(Good::get().directory(), directory);
    fs::permissions(directory / name, fs::perms::none);
    expect_refused(run_program(generate_words(directory)), 1, name);
  }
}

// ---- drafters, prompts, outputs

TEST(BadInput, DraftersThatDoNotFitAreRefused) {
  const fs::path root = Good::get().root();
  TinyShape larger;
  larger.vocabulary_size = kVocabulary + 20;
  write_hugging_face(make_tiny_model(larger), root / "larger");
  // The same number of tokens, two of which have swapped places.
  fs::copy(Good::get().directory(), root / "swapped");
  edited("tokenizer.json", [](json& t) {
    std::swap(t["model"]["vocab"]["a"], t["model"]["vocab"]["b"]);
  })(root / "swapped");
  fs::copy(root / "larger", root / "mute");
  fs::remove(root / "mute" / "tokenizer.json");

  struct Case {
    Words words;
    int status;
    std::string names;
  };
  const std::string good = Good::get().directory().string();
  for (const Case& one : std::vector<Case>{
           {{"--draft", (root / "larger").string()}, 1, "larger"},
           {{"--draft", (root / "swapped").string()}, 1, "swapped"},
           {{"--draft", (root / "mute").string()}, 1, "one of 320"},
           {{"--draft", (root / "larger").string()}, 1, ",vocabulary=shared drafts"},
           {{"--drafter", "model:" + (root / "mute").string() + ",vocabulary=shared"},
            1,
            "tokenizer.json"},
           {{"--drafter", "model:" + good + ",vocabulary=other"}, 2, "same, shared or text"},
           {{"--drafter", "model:" + good + ",vocabulary=text,confidence=0.5"}, 2, "confidence"},
           {{"--drafter", "model:" + good + ",vocabulary=text", "--rule", "chow:alpha=0.1"},
            2,
            "got the drafter model with vocabulary=text"},
           {{"--draft", "/nowhere/at/all"}, 1, "/nowhere/at/all"},
           {{"--drafter", "model:"}, 2, "got nothing"},
           {{"--drafter", "model"}, 2, "got nothing"},
           {{"--drafter", ""}, 2, "drafter"},
           {{"--drafter", ":"}, 2, "drafter"},
           {{"--drafter", "none:confidence=1"}, 2, "confidence"},
           {{"--drafter", "model:" + good + ",confidence=nan"}, 2, "confidence"},
           {{"--drafter", "model:" + good + ",confidence=2"}, 2, "confidence"},
           {{"--drafter", "model:" + good + ",confidence=1,confidence=1"}, 2, "twice"},
           {{"--drafter", "model:" + good + ",,"}, 2, "comma"},
           {{"--drafter", "model:" + good + ",len=3"}, 2, "len"},
           {{"--drafter", "model:" + good + ",length=0"}, 2, "length"},
           {{"--drafter", "model:" + good + ",length=256"}, 2, "length"},
           {{"--drafter", "model:" + good + ",schedule=often"}, 2, "constant, heuristic"},
           {{"--drafter", "relay:ngram"}, 2, "two or more"},
           {{"--tree", "sequoia"}, 2, "outrider tune tree"},
           {{"--drafter", std::string(3000, 'x')}, 2, "xxx"},
           {{"--tree", "chain:length=1e9"}, 2, "length"},
           {{"--tree", "chain:length=2.5"}, 2, "whole"},
           {{"--tree", "chain:length="}, 2, "length"},
           {{"--tree", "chain:length=2,length=3"}, 2, "twice"},
           {{"--rule", "exact:alpha=1"}, 2, "alpha"},
           {{"--threads", "1000000"}, 2, "threads"},
           {{std::string(5000, 'x')}, 2, "xxx"}}) {
    SCOPED_TRACE(one.words.back().substr(0, 100));
    expect_refused(run_program(generate_words(good, one.words)), one.status, one.names);
  }
}

TEST(BadInput, AnUnknownKernelTableIsRefused) {
  ASSERT_EQ(::setenv("OUTRIDER_KERNELS", "abacus", 1), 0);
  const ProgramRun run = run_program(generate_words(Good::get().directory()));
  ::unsetenv("OUTRIDER_KERNELS");
  expect_refused(run, 2, "abacus");
}

TEST(BadInput, PromptsThatCannotBeRunAreRefused) {
  const fs::path root = Good::get().root();
  const fs::path good = Good::get().directory();
  write_text(root / "long.txt", std::string(4 * kContext, '~'));
  // A token that the tokenizer has and the embedding lacks.
  fs::copy(good, root / "added");
  edited("tokenizer.json", [](json& t) {
    json token = t["added_tokens"][0];
    token["id"] = kVocabulary;
    token["content"] = "<|late|>";
    t["added_tokens"].push_back(token);
  })(root / "added");

  struct Case {
    fs::path model;
    Words words;
    std::string names;
  };
  for (const Case& one : std::vector<Case>{
           {good, {"--prompt-file", good.string()}, good.string()},
           {good, {"--prompt-file", (root / "nowhere").string()}, "nowhere"},
           {good, {"--prompt-file", (root / "long.txt").string()}, "context"},
           {good, {"--prompt-file", "/dev/zero"}, "/dev/zero"},
           {good, {"--chat"}, "chat template"},
           {good, {"--logits", (root / "nowhere" / "rows").string()}, "nowhere"},
           {good, {"--logits", good.string()}, "good"},
           {good, {"--logits", (good / "config.json" / "rows").string()}, "rows"},
           {root / "added", {"--prompt-file", (root / "late.txt").string()}, "300"}}) {
    SCOPED_TRACE(::testing::PrintToString(one.words));
    write_text(root / "late.txt", "a<|late|>");
    expect_refused(run_program(generate_words(one.model, one.words)), 1, one.names);
  }
  EXPECT_EQ(run_program(generate_words(root / "added")).status, 0);
}

// With --json nothing is printed before the rows are written. A streamed text is already printed by
// then; the exit status and the file report the failure.
TEST(BadInput, AFullDiskLeavesNoPartOfTheLogits) {
  const fs::path folder = Good::get().root() / "full";
  fs::create_directory(folder);
  const std::string rows = (folder / "rows").string();
  write_text(rows, "old");
  // A limit on file size, of 2 blocks of 512 bytes or 1024, simulates a full disk.
  const std::string command = "ulimit -f 2; exec \"$0\" \"$@\"";
  for (const bool as_json : {false, true}) {
    SCOPED_TRACE(as_json);
    for (const std::string& file : {rows, std::string("/dev/full")}) {
      Words words = {"-c", command, OUTRIDER_PROGRAM};
      for (const std::string& word :
           generate_words(Good::get().directory(), {"--ignore-eos", "--logits", file})) {
        words.push_back(word);
      }
      if (as_json) words.emplace_back("--json");
      const ProgramRun run = run_program(words, {.program = "/bin/sh"});
      EXPECT_EQ(run.status, 1) << run.err;
      EXPECT_THAT(run.err, ::testing::StartsWith("outrider: [write logits] "));
      EXPECT_THAT(run.err, ::testing::HasSubstr(file == rows ? "full/rows: " : "/dev/full: "));
      EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
      EXPECT_EQ(run.out.empty(), as_json) << run.out;
      EXPECT_EQ(read_text(rows), "old");
      EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
    }
  }
}

// If the object of --json cannot be printed, no file appears either.
TEST(BadInput, AFullOutputLeavesNoLogits) {
  const fs::path rows = Good::get().root() / "unprinted.f32";
  Words words = {"-c", "exec \"$0\" \"$@\" > /dev/full", OUTRIDER_PROGRAM};
  for (const std::string& word : generate_words(
           Good::get().directory(), {"--ignore-eos", "--json", "--logits", rows.string()})) {
    words.push_back(word);
  }
  expect_refused(run_program(words, {.program = "/bin/sh"}), 1, "standard output");
  for (const auto& entry : fs::directory_iterator(Good::get().root())) {
    EXPECT_EQ(entry.path().string().find("unprinted"), std::string::npos) << entry.path();
  }
}

// A load of about a second: weights that are one hole in the file.
TEST(BadInput, AnInterruptedLoadEndsQuietly) {
  const fs::path directory = Good::get().root() / "large";
  fs::copy(Good::get().directory(), directory);
  static constexpr std::uint64_t kWidth = 1024;
  static constexpr std::uint64_t kHidden = 32768;
  edited("config.json", [](json& keys) {
    keys["hidden_size"] = kWidth;
    keys["intermediate_size"] = kHidden;
    keys["num_hidden_layers"] = 1;
  })(directory);
  json tensors = json::object();
  std::uint64_t at = 0;
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::uint64_t n_bytes = 2;
    for (const std::uint64_t extent : shape) n_bytes *= extent;
    tensors[name + ".weight"] = {
        {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {at, at + n_bytes}}};
    at += n_bytes;
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens", {kVocabulary, kWidth});
  add("lm_head", {kVocabulary, kWidth});
  add("model.norm", {kWidth});
  add(layer + "input_layernorm", {kWidth});
  add(layer + "post_attention_layernorm", {kWidth});
  add(layer + "self_attn.q_proj", {64, kWidth});
  add(layer + "self_attn.k_proj", {32, kWidth});
  add(layer + "self_attn.v_proj", {32, kWidth});
  add(layer + "self_attn.o_proj", {kWidth, 64});
  add(layer + "mlp.gate_proj", {kHidden, kWidth});
  add(layer + "mlp.up_proj", {kHidden, kWidth});
  add(layer + "mlp.down_proj", {kWidth, kHidden});
  const fs::path weights = directory / "model.safetensors";
  write_text(weights, as_text(test::safetensors(tensors.dump(), {})));
  fs::resize_file(weights, fs::file_size(weights) + at);

  int n_within = 0;
  for (const int wait : {5, 20, 50, 100, 200, 400}) {
    SCOPED_TRACE(wait);
    const ProgramRun run = run_program(generate_words(directory, {"--weights", "int4", "--json"}),
                                       {.interrupt_after = std::chrono::milliseconds(wait)});
    EXPECT_THAT(run.err, ::testing::IsEmpty());
    EXPECT_TRUE(run.status == 130 || run.status == 0) << run.status;
    if (run.status == 130 && run.out.empty()) ++n_within;
  }
  EXPECT_GT(n_within, 0);
}

// A conversation during which the weights are truncated: the first answer exists, the embeddings of
// the second message do not.
TEST(BadInput, AFileCutShortInUseIsRefused) {
  const fs::path folder = Good::get().root() / "vanishing";
  fs::copy(Good::get().directory(), folder);
  write_text(folder / "tokenizer_config.json",
             json{{"chat_template", "<|im_start|>{{ messages[-1]['content'] }}<|im_end|>"}}.dump());
  const fs::path out = folder / "out";
  const std::string command =
      "{ echo hello; n=0;"
      " until test -s \"$OUT\" || test $((n += 1)) -gt 6000; do sleep 0.01; done;"
      " : > \"$WEIGHTS\"; echo hello; } | \"$0\" \"$@\" > \"$OUT\"";
  const Words words = {"-c",
                       "OUT='" + out.string() + "'; WEIGHTS='" +
                           (folder / "model.safetensors").string() + "'; " + command,
                       OUTRIDER_PROGRAM,
                       "chat",
                       "--model",
                       folder.string(),
                       "--ignore-eos",
                       "--max-tokens",
                       "8"};
  const ProgramRun run = run_program(words, {.program = "/bin/sh"});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_FALSE(read_text(out).empty());
  // The first answer may have left its own note that it ended at --max-tokens.
  const std::size_t line = run.err.find("outrider: [read file] ");
  ASSERT_NE(line, std::string::npos) << run.err;
  EXPECT_THAT(run.err.substr(line), ::testing::HasSubstr("cut short"));
  EXPECT_EQ(run.err.find('\n', line), run.err.size() - 1) << run.err;
}

// ---- input that looks broken but is not

TEST(BadInput, PaddedEmbeddingsAndHolesWork) {
  const fs::path root = Good::get().root();
  // Rows without tokens, likelier than any others: their text is empty.
  TinyShape shape;
  shape.vocabulary_size = kVocabulary + 84;
  TinyModel model = make_tiny_model(shape);
  std::vector<float>& head = model.at("lm_head.weight").values;
  for (std::size_t i = kVocabulary * 64U; i < head.size(); ++i) head[i] *= 20;
  write_hugging_face(model, root / "padded");
  fs::copy(Good::get().directory() / "tokenizer.json", root / "padded" / "tokenizer.json",
           fs::copy_options::overwrite_existing);
  const ProgramRun padded = run_program(generate_words(
      root / "padded", {"--json", "--draft", (root / "padded").string(), "--temperature", "1"}));
  ASSERT_EQ(padded.status, 0) << padded.err;
  const json ids = json::parse(padded.out)["ids"];
  EXPECT_TRUE(std::any_of(ids.begin(), ids.end(), [](const json& id) {
    return id.get<int>() >= kVocabulary;
  })) << padded.out;

  // An id without a token, in both target and drafter.
  fs::copy(Good::get().directory(), root / "holes");
  tokenizer([](json& t) {
    json& vocabulary = t["model"]["vocab"];
    vocabulary[std::string("spare")] = kVocabulary + 3;
  })(root / "holes");
  const ProgramRun holes =
      run_program(generate_words(root / "holes", {"--draft", (root / "holes").string()}));
  EXPECT_EQ(holes.status, 0) << holes.err;
}

TEST(BadInput, ADraftersEndedContextIsNoError) {
  const fs::path root = Good::get().root();
  fs::copy(Good::get().directory(), root / "short");
  config("max_position_embeddings", 4)(root / "short");
  const ProgramRun run =
      run_program(generate_words(Good::get().directory(), {"--draft", (root / "short").string()}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, run_program(generate_words(Good::get().directory())).out);
}

}  // namespace
}  // namespace outrider::test
