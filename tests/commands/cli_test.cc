// SPDX-License-Identifier: Apache-2.0
// The program as its users see it: exit statuses, the use of both output streams, refused flags,
// `tokenize` and `inspect`. (generate: cli_generate_test.cc, chat: cli_chat_test.cc.)
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/models/cli_models.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct UsageCase {
  Words words;
  std::string message;
};

TEST(CommandLine, EveryUsageErrorIsOneLineAndStatus2) {
  const std::string model = CliModels::get().target();
  const Words base = {"generate", "--model", model, "--prompt", "a"};
  const auto with = [&base](const Words& more) {
    Words words = base;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<UsageCase> cases = {
      {{"serve"}, "serve"},
      {{"generat", "--model", model}, "expected one of generate, chat"},
      {{"--frobnicate"}, "--frobnicate"},
      {{"generate"}, "--model"},
      {{"generate", "--prompt", "a"}, "--model"},
      {{"generate", "--model", model}, "--prompt"},
      {{"generate", "--model"}, "--model"},
      {with({"--prompt-file", "x"}), "--prompt"},
      {with({"--no-such-flag"}), "--no-such-flag"},
      {with({"stray"}), "stray"},
      {with({"--max-tokens", "-1"}), "--max-tokens"},
      {with({"--max-tokens", "ten"}), "--max-tokens"},
      {with({"--max-tokens", "3.5"}), "--max-tokens"},
      {with({"--max-tokens", "99999999999999999999"}), "--max-tokens"},
      {with({"--max-tokens", ""}), "--max-tokens"},
      {with({"--temperature", "nan"}), "--temperature"},
      {with({"--temperature", "-0.1"}), "--temperature"},
      {with({"--temperature", "inf"}), "--temperature"},
      {with({"--temperature", "warm"}), "--temperature"},
      {with({"--top-k", "-3"}), "--top-k"},
      {with({"--top-p", "0"}), "(0, 1]"},
      {with({"--top-p", "1.5"}), "(0, 1]"},
      {with({"--top-p", "nan"}), "(0, 1]"},
      {with({"--min-p", "-0.5"}), "[0, 1]"},
      {with({"--min-p", "2"}), "[0, 1]"},
      {with({"--repetition-penalty", "0"}), "--repetition-penalty"},
      {with({"--presence-penalty", "inf"}), "--presence-penalty"},
      {with({"--frequency-penalty", "x"}), "--frequency-penalty"},
      {with({"--seed", "-1"}), "--seed"},
      {with({"--seed", "18446744073709551616"}), "--seed"},
      {with({"--stop", ""}), "--stop"},
      {with({"--weights", "int3"}), "f32, bf16, int8, int4"},
      {with({"--kv", "f64"}), "f32, bf16, int8"},
      {with({"--kv-memory", "-1"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "much"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "12Q"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "G"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "12.5"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "12iB"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "nan"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "1e300G"}), "--kv-memory: expected bytes, as in"},
      {with({"--kv-memory", "0.25k"}), "--kv-memory: expected at least"},
      {with({"--experts", "disk"}), "memory, mapped"},
      {with({"--experts-memory", "1G"}), "--experts-memory: expected --experts mapped beside it"},
      {with({"--experts-memory", "1X"}), "--experts-memory: expected bytes, as in"},
      {with({"--experts", "mapped"}), "--experts mapped: expected a mixture of experts, got"},
      {with({"--threads", "-2"}), "--threads"},
      {with({"--threads", "many"}), "--threads"},
      {with({"--verify", "hope"}), "exact, block, traversal, coupled"},
      {with({"--raw", "--chat"}), "--raw"},
      {with({"--draft", "d", "--drafter", "none"}), "--draft"},
      {with({"--draft", ""}), "--draft"},
      {with({"--logits", ""}), "--logits"},
      {with({"--drafter", "oracle"}), "oracle"},
      {with({"--drafter", "own"}), "expected a program that brings the drafter"},
      {with({"--drafter", "first:own,suffix"}), "expected a program that brings the drafter"},
      {with({"--rule", "whatever"}), "exact, chow, diff, opt, token-v1"},
      {with({"--rule", "chow:alpha=0.1"}), "model:PATH"},
      {with({"--draft", CliModels::get().draft(), "--rule", "chow:alpha=2"}), "from -1 to 1"},
      {with({"--draft", CliModels::get().draft(), "--rule", "bild", "--temperature", "0.5"}),
       "temperature: expected 0"},
      {with({"--draft", CliModels::get().draft(), "--rule", "fly"}),
       "fly: expected drafts of 7 tokens or more (--tree) or a shorter window=, got 5"},
      {with({"--draft", CliModels::get().draft(), "--rule", "relaxed:open=[THINK]"}),
       "relaxed: expected a vocabulary with the tokens [THINK] and </think>"},
      {with({"--draft", CliModels::get().draft(), "--tree", "bush:width=3"}), "bush"},
      {with({"--draft", CliModels::get().draft(), "--tree", "chain:length=0"}), "length"},
      {with({"--draft", CliModels::get().draft(), "--tree", "chain:depth=2"}), "depth"},
      {with({"--draft", "d", "--tree", "widths:4,0"}), "from 1 to 255, got 0"},
      {with({"--draft", "d", "--tree", "static:oak"}), "static:medusa"},
      {with({"--draft", "d", "--tree", "widths:2,2", "--verify", "block"}), "a chain"},
      // Specs are parsed before any model is loaded.
      {{"generate", "--model", "/nowhere", "--prompt", "a", "--tree", "bush"}, "bush"},
      {{"generate", "--model", "/nowhere", "--prompt", "a", "--rule", "whatever"}, "whatever"},
      {{"chat", "--model", "/nowhere", "--drafter", "oracle"}, "oracle"},
      {with({"--show-draft", "--json"}), "--json"},
      {with({"--color", "mauve"}), "auto, always, never"},
      {with({"--max-tokens", "1\n2"}), "--max-tokens"},
      {{"tokenize", "--text", "a"}, "--model"},
      {{"tokenize", "--model", model}, "--text"},
      {{"tokenize", "--model", model, "--text", "a", "--decode", "1"}, "--decode"},
      {{"tokenize", "--model", model, "--decode", "1 x"}, "x"},
      {{"tokenize", "--model", model, "--text", "a", "--keep-special"}, "--keep-special"},
      {{"drafters", "oracle"}, "oracle: expected one of model, pard, eagle"},
      {{"drafters", "none"}, "expected one of model"},
      {{"drafters", ""}, "expected the name of a drafter"},
      {{"rules", "whatever"}, "whatever: expected one of exact, chow, diff"},
      {{"trees", "oak"}, "oak: expected one of auto, own, chain, widths"},
      {{"inspect"}, "expected PATH, --pair TARGET DRAFTER or --kernels"},
      {{"inspect", model, model}, model},
      {{"inspect", model, "--model", model}, "--model: expected at most 1, got 2"},
      {{"inspect", model, "--kernels"}, "--kernels"},
      {{"datastore"}, "build or inspect"},
      {{"datastore", "bogus"}, "expected one of build, inspect, got bogus"},
      {{"datastore", "bogus", "--out", "x"}, "expected one of build, inspect, got bogus"},
      {{"datastore", "--bogus"}, "--bogus"},
      {{"train", "bogus"}, "expected one of tokenizer, answers, lm"},
      {{"inspect", "--kernels", "--model", model}, "--kernels"},
      {{"frob", "--help"}, "expected one of generate, chat"},
      {{"frob", "generate", "--help"}, "expected one of generate, chat"},
      {{"datastore", "frob", "--help"},
       "expected one of build, inspect, got frob (see outrider datas"},
      {{"datastore", "inspect"}, "see outrider datastore inspect --help"},
      {with({"--prompt", "b"}), "--prompt: expected at most 1, got 2"},
      {with({"--tree", "chain:length=3"}), "--tree: expected a drafter (--drafter SPEC or --draft"},
      {with({"--verify", "block"}), "--verify: expected a drafter"},
      {{"chat"}, "--model"},
      {{"chat", "--model", model, "--json"}, "--json"},
  };
  for (const UsageCase& usage : cases) {
    SCOPED_TRACE(::testing::PrintToString(usage.words));
    expect_refused(run_program(usage.words), 2, usage.message);
  }
}

TEST(CommandLine, WhatCannotBeReadIsOneLineAndStatus1) {
  const std::string model = CliModels::get().target();
  const std::string nowhere = (CliModels::get().root() / "nowhere").string();
  const std::string latin = (CliModels::get().root() / "latin").string();
  std::ofstream(latin) << "caf\xe9";
  const std::vector<UsageCase> cases = {
      {{"generate", "--model", nowhere, "--prompt", "a"}, "nowhere"},
      {{"generate", "--model", model, "--prompt-file", nowhere}, "nowhere"},
      {{"generate", "--model", model, "--prompt-file", model}, "directory"},
      {{"generate", "--model", model, "--prompt", "a", "--draft", nowhere}, "nowhere"},
      {{"generate", "--model", model, "--prompt", "a", "--logits", nowhere + "/f"}, "nowhere"},
      {{"generate", "--model", model, "--prompt", "a", "--logits", model}, "directory"},
      {{"generate", "--model", model, "--prompt", "a", "--chat"}, "chat template"},
      {{"generate", "--model", model, "--prompt", "a", "--chat", "--show-draft"}, "chat template"},
      {{"chat", "--model", model}, "chat template"},
      {{"tokenize", "--model", nowhere, "--text", "a"}, "nowhere"},
      {{"tokenize", "--model", model, "--decode", "1 100000"}, "100000"},
      {{"tokenize", "--model", model, "--decode", "-- -5"}, ""},
      {{"generate", "--model", model, "--prompt", "a\nb\xe9"},
       "UTF-8 text, got byte 0xE9 in line 2"},
      {{"generate", "--model", model, "--prompt-file", latin},
       "UTF-8 text, got byte 0xE9 in line 1"},
      {{"generate", "--model", model, "--prompt", "a", "--drafter", "reference:file=" + latin},
       "latin: expected UTF-8 text, got byte 0xE9 in line 1"},
      {{"tokenize", "--model", model, "--text", "\xe9"}, "UTF-8 text, got byte 0xE9"},
      {{"tokenize", "--model", model, "--text-file", latin}, "UTF-8 text, got byte 0xE9"},
      {{"chat", "--model", model, "--system", "\xe9"}, "UTF-8 text, got byte 0xE9"},
      {{"inspect", "--model", nowhere}, "nowhere"},
      {{"inspect", "--model", CliModels::get().root().string()}, "config.json"},
  };
  for (const UsageCase& usage : cases) {
    SCOPED_TRACE(::testing::PrintToString(usage.words));
    const ProgramRun run = run_program(usage.words);
    expect_refused(run, usage.words[2] == model && usage.words.back() == "-- -5" ? 2 : 1,
                   usage.message);
  }
}

// The commands that a help text lists: names in lower case before two spaces, up to the examples.
std::vector<std::string> listed_commands(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line) && line != "Examples:";) {
    if (!line.starts_with("  ") || line.size() < 3 || line[2] < 'a' || line[2] > 'z') continue;
    const std::size_t end = line.find(' ', 2);
    if (end != std::string::npos && line.substr(end, 2) == "  ") {
      names.push_back(line.substr(2, end - 2));
    }
  }
  return names;
}

// Checks and counts the help of the command that these words name, and of all commands below it.
// The help of outrider-train is left out if that program is not built.
void check_helps(const Words& words, int& n_checked) {
  SCOPED_TRACE(::testing::PrintToString(words));
  const auto help_by = [&words](const char* flag) {
    Words with_flag = words;
    with_flag.emplace_back(flag);
    return run_program(with_flag);
  };
  const ProgramRun run = help_by("--help");
  if (!words.empty() && words.front() == "train" && run.status == 1 &&
      run.err.find("outrider-train") != std::string::npos) {
    return;
  }
  ++n_checked;
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, HasSubstr("Example"));
  EXPECT_THAT(run.out, HasSubstr(":\n  outrider "));
  EXPECT_LE(n_lines(run.out), 50) << run.out;
  const ProgramRun all = help_by("--help-all");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_GE(all.out.size(), run.out.size());
  // If there are more flags to show, the help says how.
  EXPECT_EQ(run.out.find("--help-all") != std::string::npos, all.out != run.out);
  for (const std::string& text : {run.out, all.out}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
  for (const std::string& name : listed_commands(run.out)) {
    Words below = words;
    below.push_back(name);
    check_helps(below, n_checked);
  }
}

TEST(CommandLine, EveryHelpFitsAScreenAndShowsExamples) {
  int n_checked = 0;
  check_helps({}, n_checked);
  // The program, its commands, and those of datastore, tune and train that it runs itself.
  EXPECT_GE(n_checked, 1 + 17 + 2 + 2 + 2);
  EXPECT_THAT(run_program({"--version"}).out, StartsWith("outrider "));
}

// Flags which --help leaves out are in --help-all, and are accepted all the same.
TEST(CommandLine, FurtherFlagsAreShownByHelpAll) {
  const std::string help = run_program({"generate", "--help"}).out;
  const std::string all = run_program({"generate", "--help-all"}).out;
  for (const char* const flag : {"--kv-memory BYTES", "--verify exact|", "--stop TEXT"}) {
    EXPECT_THAT(help, Not(HasSubstr(flag)));
    EXPECT_THAT(all, HasSubstr(flag));
  }
  // --help shows the first sentence about a common flag, --help-all the others too.
  EXPECT_THAT(help, HasSubstr("as stored)\n"));
  EXPECT_THAT(all, HasSubstr("as stored). The\n"));
}

TEST(CommandLine, WithoutAWordItShowsItsHelp) {
  const ProgramRun bare = run_program({});
  EXPECT_EQ(bare.status, 0);
  EXPECT_THAT(bare.err, IsEmpty());
  EXPECT_EQ(bare.out, run_program({"--help"}).out);
}

TEST(CommandLine, NothingIsListedThatDoesNotExist) {
  const std::string help = run_program({"--help"}).out;
  const std::size_t begin = help.find("Commands:\n");
  ASSERT_NE(begin, std::string::npos) << help;
  std::istringstream lines(help.substr(begin));
  std::string line;
  std::getline(lines, line);
  int n_commands = 0;
  while (std::getline(lines, line) && line.starts_with("  ")) {
    const std::string command = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_EQ(run_program({command, "--help"}).status, 0) << command;
    ++n_commands;
  }
  EXPECT_EQ(n_commands, 17);
}

TEST(Tokenize, GoesThereAndBack) {
  const std::string model = CliModels::get().target();
  const std::string text = "Once upon a time \xc3\xbc";
  const ProgramRun ids = run_program({"tokenize", "--model", model, "--ids", "--text", text});
  ASSERT_EQ(ids.status, 0) << ids.err;
  EXPECT_EQ(n_lines(ids.out), 1);
  EXPECT_THAT(ids.out, StartsWith("0 "));  // the token that begins a text
  const ProgramRun bare =
      run_program({"tokenize", "--model", model, "--no-special", "--ids", "--text", text});
  EXPECT_EQ("0 " + bare.out, ids.out);

  const std::string list = ids.out.substr(0, ids.out.size() - 1);
  EXPECT_EQ(run_program({"tokenize", "--model", model, "--decode", list}).out, text + "\n");
  EXPECT_EQ(
      run_program({"tokenize", "--model", model, "--decode", "-"}, {.standard_input = ids.out}).out,
      text + "\n");
  EXPECT_EQ(run_program({"tokenize", "--model", model, "--ids", "--text-file", "-"},
                        {.standard_input = text})
                .out,
            ids.out);
  const ProgramRun pieces = run_program({"tokenize", "--model", model, "--text", text});
  EXPECT_EQ(n_lines(pieces.out), 1 + static_cast<int>(std::count(list.begin(), list.end(), ' ')));
  const ProgramRun empty =
      run_program({"tokenize", "--model", model, "--no-special", "--ids", "--text", ""});
  EXPECT_EQ(empty.status, 0);
  EXPECT_EQ(empty.out, "\n");
}

TEST(Inspect, SaysWhatStatesTake) {
  const fs::path golden = fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "lfm2_tied";
  for (const fs::path& path : {golden, golden / "model.gguf"}) {
    const ProgramRun run = run_program({"inspect", path.string(), "--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    // Three layers of width 24; the last two products of each.
    EXPECT_EQ(json::parse(run.out)["facts"]["recurrent layers"],
              "3; a state of 576 bytes a text, 288 bytes a token of a pass");
  }
}

TEST(Inspect, ShowsTheSameTensorsOfBothFileForms) {
  const TinyModel model = make_tiny_model({});
  const fs::path gguf = CliModels::get().root() / "model.gguf";
  write_gguf(model, gguf);
  std::int64_t n_parameters = 0;
  for (const TinyTensor& tensor : model.tensors) {
    n_parameters += static_cast<std::int64_t>(tensor.values.size());
  }
  for (const std::string& path : {CliModels::get().chatty(), gguf.string()}) {
    SCOPED_TRACE(path);
    const ProgramRun run = run_program({"inspect", "--json", "--model", path});
    ASSERT_EQ(run.status, 0) << run.err;
    const json object = json::parse(run.out);
    EXPECT_EQ(object["n_tensors"].get<std::size_t>(), model.tensors.size());
    EXPECT_EQ(object["tensors"].size(), model.tensors.size());
    EXPECT_EQ(object["n_parameters"].get<std::int64_t>(), n_parameters);
    EXPECT_FALSE(object["metadata"].empty());
    const json& facts = object["facts"];
    EXPECT_EQ(facts["family"], "llama");
    EXPECT_EQ(facts["layers"], "2 of width 64; 4 heads of 16, 2 of keys and values; 96 hidden");
    EXPECT_EQ(facts["context"], "256 tokens");
    EXPECT_THAT(facts["weights"].get<std::string>(), HasSubstr("f32"));
    EXPECT_THAT(facts["drafters without files"].get<std::string>(),
                HasSubstr("layerskip:layers=N (1 to 1)"));
    EXPECT_TRUE(facts.contains("chat template"));
    EXPECT_TRUE(facts.contains("a text ends at"));
    EXPECT_EQ(run_program({"inspect", path, "--json"}).out, run.out);
    const ProgramRun table = run_program({"inspect", "--model", path});
    EXPECT_EQ(run_program({"inspect", path}).out, table.out);
    EXPECT_EQ(table.status, 0);
    for (const json& tensor : object["tensors"]) {
      EXPECT_THAT(table.out, HasSubstr(tensor["name"].get<std::string>()));
    }
  }
}

// For a mixture: its experts and the bytes that a token reads, in f32, with the head and without
// the embedding.
TEST(Inspect, SaysWhatATokenReadsOfAMixture) {
  TinyShape shape;
  shape.n_experts = 6;
  shape.n_experts_used = 2;
  const TinyModel model = make_tiny_model(shape);
  const fs::path directory = CliModels::get().root() / "mixture";
  write_hugging_face(model, directory);
  write_gguf(model, directory / "mixture.gguf");
  double n_weights = 0;
  double n_read = 0;
  for (const TinyTensor& tensor : model.tensors) {
    const auto size = static_cast<double>(tensor.values.size());
    n_weights += size;
    if (tensor.name == "model.embed_tokens.weight") continue;
    n_read += tensor.name.find(".experts.") == std::string::npos ? size : size / 3;
  }
  for (const std::string& path : {directory.string(), (directory / "mixture.gguf").string()}) {
    const ProgramRun run = run_program({"inspect", "--json", "--model", path});
    ASSERT_EQ(run.status, 0) << run.err;
    const json facts = json::parse(run.out)["facts"];
    EXPECT_EQ(facts["family"], "mixtral");
    EXPECT_EQ(facts["experts"], "6 in 2 of the layers, 96 hidden; a token uses 2");
    EXPECT_EQ(facts["a token reads"],
              fmt::format("{:.1f} of {:.1f} MB of weights", n_read * 4 / 1e6, n_weights * 4 / 1e6));
  }
}

// The larger model's vocabulary continues where the other's ends.
TEST(Inspect, SaysHowMuchVocabularyTwoModelsShare) {
  TinyShape shape;
  shape.vocabulary_size += 30;
  const std::string larger = (CliModels::get().root() / "larger").string();
  write_hugging_face(make_tiny_model(shape), larger);
  const ProgramRun pair =
      run_program({"inspect", "--json", "--pair", CliModels::get().chatty(), larger});
  ASSERT_EQ(pair.status, 0) << pair.err;
  const json object = json::parse(pair.out);
  EXPECT_EQ(object["target_tokens"], 300);
  EXPECT_EQ(object["drafter_tokens"], 330);
  EXPECT_EQ(object["shared_tokens"], 300);
  EXPECT_EQ(object["same_ids"], false);
  EXPECT_THAT(run_program({"inspect", "--pair", CliModels::get().chatty(), larger}).out,
              HasSubstr("model:" + larger + ",vocabulary=shared"));
  EXPECT_THAT(
      run_program({"inspect", "--pair", CliModels::get().target(), CliModels::get().draft()}).out,
      HasSubstr("one vocabulary"));
  EXPECT_EQ(run_program({"inspect", "--pair", larger}).status, 2);
  // With the larger model as the drafter.
  for (const char* vocabulary : {"shared", "text"}) {
    const ProgramRun run =
        run_program({"generate", "--model", CliModels::get().chatty(), "--drafter",
                     "model:" + larger + ",vocabulary=" + vocabulary, "--prompt", "Once upon",
                     "--max-tokens", "20", "--ignore-eos", "--json", "--threads", "1"});
    const ProgramRun plain =
        run_program({"generate", "--model", CliModels::get().chatty(), "--prompt", "Once upon",
                     "--max-tokens", "20", "--ignore-eos", "--json", "--threads", "1"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(json::parse(run.out)["ids"], json::parse(plain.out)["ids"]);
    EXPECT_GT(json::parse(run.out)["stats"]["drafted"].get<int>(), 0);
  }
}

TEST(Inspect, ListsKernelTables) {
  const ProgramRun run = run_program({"inspect", "--kernels", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  bool scalar_runs = false;
  for (const json& table : json::parse(run.out)) {
    if (table["name"] == "scalar") scalar_runs = table["runs_here"].get<bool>();
  }
  EXPECT_TRUE(scalar_runs);
}

}  // namespace
}  // namespace outrider::test
