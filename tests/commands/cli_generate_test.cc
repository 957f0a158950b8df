// SPDX-License-Identifier: Apache-2.0
// `outrider generate`: the contract of --json, streams, sources of prompts, ends of texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kContext = 1024;  // of the tiny pair
constexpr int kVocabulary = 384;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

Words generate_words(const Words& more) {
  Words words = {"generate", "--model", CliModels::get().target()};
  if (std::find(more.begin(), more.end(), "--max-tokens") == more.end()) {
    words.insert(words.end(), {"--max-tokens", "12"});
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json generate_json(const Words& more, const ProgramInput& input = {}) {
  Words words = generate_words(more);
  words.push_back("--json");
  const ProgramRun run = run_program(words, input);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  return json::parse(run.out);
}

// A given flag applies; otherwise the recommendation of the model's files.
TEST(Generate, ModelDefaultsStandInForFlags) {
  const TemporaryDirectory directory;
  const fs::path model = directory.path() / "model";
  fs::copy(CliModels::get().target(), model, fs::copy_options::recursive);
  std::ofstream(model / "generation_config.json")
      << R"({"do_sample": true, "temperature": 1.5, "top_k": 40, "no_repeat_ngram_size": 2})";
  const auto text_of = [&](const Words& more, const std::string& said) {
    Words words = {"generate",     "--model", model,    "--prompt", "ab",
                   "--max-tokens", "40",      "--seed", "3"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, said.empty() ? ::testing::Matcher<std::string>(IsEmpty())
                                      : ::testing::Matcher<std::string>(HasSubstr(said)));
    return run.out;
  };
  const std::string sampled = text_of({"--temperature", "1.5", "--top-k", "40"}, "");
  EXPECT_EQ(text_of({"--model-defaults"}, "recommend --temperature 1.5, --top-k 40\n"), sampled);
  EXPECT_EQ(text_of({"--model-defaults"}, "no_repeat_ngram_size 2, which is not supported\n"),
            sampled);
  const std::string greedy = text_of({}, "");
  EXPECT_NE(greedy, sampled);
  EXPECT_EQ(text_of({"--model-defaults", "--temperature", "0"}, "recommend --top-k 40\n"), greedy);
}

TEST(Generate, JsonHasExactlyTheContractsFields) {
  const json object = generate_json({"--prompt", "ab", "--draft", CliModels::get().draft()});
  const auto keys = [](const json& value) {
    std::set<std::string> names;
    for (const auto& [name, member] : value.items()) names.insert(name);
    return names;
  };
  EXPECT_EQ(keys(object), (std::set<std::string>{"text", "ids", "finish_reason", "stats",
                                                 "rule_scope", "accepted_per_round"}));
  const json& stats = object["stats"];
  EXPECT_EQ(keys(stats),
            (std::set<std::string>{"target_passes", "drafter_passes", "drafted", "accepted",
                                   "emitted", "tau", "acceptance_rate", "rule_kl", "rule_tv",
                                   "deferral_rate", "prefill_seconds", "decode_seconds",
                                   "tokens_per_second", "draft_seconds", "verify_seconds"}));
  for (const auto& [name, value] : stats.items()) EXPECT_TRUE(value.is_number()) << name;
  EXPECT_EQ(object["ids"].size(), stats["emitted"].get<std::size_t>());
  EXPECT_DOUBLE_EQ(stats["tau"].get<double>(),
                   stats["emitted"].get<double>() / stats["target_passes"].get<double>());
  int accepted = 0;
  for (const json& round : object["accepted_per_round"]) accepted += round.get<int>();
  EXPECT_EQ(accepted, stats["accepted"].get<int>());
  EXPECT_EQ(object["accepted_per_round"].size(), stats["target_passes"].get<std::size_t>());
}

TEST(Generate, StreamsTheTextOfTheJsonAndALineEnd) {
  const std::string text = generate_json({"--prompt", "ab", "--ignore-eos"})["text"];
  const ProgramRun run = run_program(generate_words({"--prompt", "ab", "--ignore-eos"}));
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, text + "\n");
  EXPECT_THAT(run.err, IsEmpty());
}

TEST(Generate, DraftsChangeNothingButTheFigures) {
  for (const Words& more : {Words{}, Words{"--temperature", "0.9", "--seed", "5"}}) {
    Words plain = {"--prompt", "abc", "--ignore-eos"};
    plain.insert(plain.end(), more.begin(), more.end());
    Words drafted = plain;
    for (const char* word : {"--tree", "chain:length=3", "--verify", "coupled", "--draft"}) {
      drafted.emplace_back(word);
    }
    drafted.push_back(CliModels::get().draft());
    const json expected = generate_json(plain);
    const json object = generate_json(drafted);
    EXPECT_EQ(object["ids"], expected["ids"]);
    EXPECT_EQ(object["text"], expected["text"]);
    EXPECT_GT(object["stats"]["drafted"].get<int>(), 0);
    EXPECT_EQ(expected["stats"]["drafted"].get<int>(), 0);
  }
}

// Sampled texts, too, equal those without drafts, whatever the drafts' depth.
TEST(Generate, DraftsOfTheirOwnDepthChangeNothing) {
  for (const char* const temperature : {"0", "1"}) {
    const Words words = {"--prompt", "ab",           "--temperature", temperature,   "--seed",
                         "7",        "--max-tokens", "120",           "--ignore-eos"};
    const json plain = generate_json(words);
    for (const Words& drafter :
         {Words{"--draft", CliModels::get().draft()}, Words{"--drafter", "suffix"},
          Words{"--drafter", "suffix", "--tree", "auto"}}) {
      Words drafted = words;
      drafted.insert(drafted.end(), drafter.begin(), drafter.end());
      for (int time = 0; time < 2; ++time) EXPECT_EQ(generate_json(drafted)["ids"], plain["ids"]);
    }
  }
}

// The file keeps what was learnt about drafting, and nothing of any text.
TEST(Generate, ProfilesAreKeptReadAndReplaced) {
  const fs::path file = CliModels::get().root() / "profile.json";
  const Words words = {
      "--prompt",  "abc",        "--ignore-eos", "--draft", CliModels::get().draft(),
      "--profile", file.string()};
  const json first = generate_json(words);
  ASSERT_TRUE(fs::exists(file));
  const auto learnt = [&file] {
    std::ifstream stream(file);
    return json::parse(stream);
  };
  const json profile = learnt();
  EXPECT_FALSE(profile["passes"].empty());
  EXPECT_EQ(profile["drafters"].size(), 1U);
  EXPECT_EQ(generate_json(words)["ids"], first["ids"]);
  EXPECT_NE(learnt(), profile);

  std::ofstream(file) << "{";
  const ProgramRun run = run_program(generate_words(words));
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("profile.json: expected JSON, got"));
  EXPECT_EQ(learnt()["drafters"].size(), 1U);  // another in its place
}

TEST(Generate, WhoSaysThereIsNoDrafterMayShapeDrafts) {
  const json plain = generate_json({"--prompt", "ab"});
  const json shaped = generate_json(
      {"--prompt", "ab", "--drafter", "none", "--tree", "chain:length=3", "--verify", "block"});
  EXPECT_EQ(shaped["ids"], plain["ids"]);
}

// A path may contain characters which are punctuation in the spec language.
TEST(Generate, DraftTakesAnyPath) {
  const fs::path odd = CliModels::get().root() / "odd,key=value\\end";
  fs::create_directory_symlink(CliModels::get().draft(), odd);
  const json object =
      generate_json({"--prompt", "ab", "--draft", odd.string(), "--tree", "chain:length=5"});
  EXPECT_GT(object["stats"]["drafted"].get<int>(), 0);
}

TEST(Generate, ShowDraftMarksTokensWithoutChangingThem) {
  const Words words =
      generate_words({"--prompt", "ab", "--ignore-eos", "--draft", CliModels::get().draft(),
                      "--tree", "chain:length=5", "--show-draft"});
  const ProgramRun marked = run_program(words);
  EXPECT_EQ(marked.status, 0);
  EXPECT_THAT(marked.err, HasSubstr("[accepted draft]"));
  EXPECT_EQ(marked.out.find('\x1b'), std::string::npos);
  EXPECT_NE(marked.out.find_first_of("[<{"), std::string::npos);

  Words coloured = words;
  coloured.insert(coloured.end(), {"--color", "always"});
  std::string text = run_program(coloured).out;
  EXPECT_NE(text.find("\x1b["), std::string::npos);
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b')) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  EXPECT_EQ(text, run_program(generate_words({"--prompt", "ab", "--ignore-eos"})).out);
}

TEST(Generate, LogitsAreOneRowBehindEachId) {
  const fs::path file = CliModels::get().root() / "rows.f32";
  std::ofstream(file) << "old";
  const json object = generate_json({"--prompt", "ab", "--ignore-eos", "--logits", file.string()});
  const std::string bytes = read_file(file);
  ASSERT_EQ(bytes.size(), object["ids"].size() * kVocabulary * sizeof(float));
  std::vector<float> rows(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(rows.data()));
  for (std::size_t row = 0; row < object["ids"].size(); ++row) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row * kVocabulary);
    EXPECT_EQ(std::max_element(begin, begin + kVocabulary) - begin, object["ids"][row].get<int>());
  }
  // No temporary file is left beside it.
  for (const auto& entry : fs::directory_iterator(CliModels::get().root())) {
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
  }
}

TEST(Generate, LogitsGoToWhereALinkPoints) {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path();
  fs::create_directory(folder / "elsewhere");
  const auto generate = [&](const fs::path& logits) {
    return run_program(generate_words({"--prompt", "a", "--logits", logits.string()}));
  };
  fs::create_symlink("elsewhere/logits", folder / "link");
  fs::create_symlink(folder / "link", folder / "second");
  for (int times = 0; times < 2; ++times) {  // the file is there the second time
    EXPECT_EQ(generate(folder / "second").status, 0);
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_TRUE(fs::is_symlink(folder / "second"));
    EXPECT_GT(fs::file_size(folder / "elsewhere" / "logits"), 0U);
  }
  fs::create_symlink(folder / "circle", folder / "circle");
  const ProgramRun run = generate(folder / "circle");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("circle"));
  EXPECT_TRUE(fs::is_symlink(folder / "circle"));
}

TEST(Generate, LogitsReplaceNothingThatIsRead) {
  const TemporaryDirectory directory;
  const fs::path prompt = directory.path() / "prompt";
  std::ofstream(prompt) << "a";
  const std::string model = CliModels::get().target();
  const std::string weights = (fs::path(model) / "model.safetensors").string();
  const std::string before = read_file(weights);
  for (const std::string& out : {prompt.string(), weights}) {
    const ProgramRun run = run_program(
        {"generate", "--model", model, "--prompt-file", prompt.string(), "--logits", out});
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("another file than those that are read"));
  }
  EXPECT_EQ(read_file(prompt), "a");
  EXPECT_EQ(read_file(weights), before);
}

TEST(Generate, LogitsMayGoToADevice) {
  EXPECT_EQ(run_program(generate_words({"--prompt", "a", "--logits", "/dev/null"})).status, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(Generate, PromptsComeFromFilesAndStandardInputToo) {
  const json expected = generate_json({"--prompt", "a prompt\n"});
  const fs::path file = CliModels::get().root() / "prompt.txt";
  std::ofstream(file) << "a prompt\n";
  EXPECT_EQ(generate_json({"--prompt-file", file.string()})["ids"], expected["ids"]);
  EXPECT_EQ(generate_json({"--prompt-file", "-"}, {.standard_input = "a prompt\n"})["ids"],
            expected["ids"]);
  EXPECT_NE(generate_json({"--prompt", "a prompt"})["ids"], expected["ids"]);
}

TEST(Generate, TakesOddPrompts) {
  for (const std::string prompt :
       {"", "--help", "[x]", "-1", "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "chat"}) {
    SCOPED_TRACE(::testing::PrintToString(prompt));
    const json object = generate_json({"--prompt", prompt, "--ignore-eos"});
    EXPECT_EQ(object["ids"].size(), 12U);
  }
  // An argument cannot contain NUL bytes, but a file can.
  const std::string zeros("a\0b", 3);
  EXPECT_EQ(generate_json({"--prompt-file", "-", "--ignore-eos"}, {.standard_input = zeros})["ids"]
                .size(),
            12U);
}

TEST(Generate, StopsWhereItIsTold) {
  const json none = generate_json({"--prompt", "ab", "--max-tokens", "0"});
  EXPECT_EQ(none["ids"].size(), 0U);
  EXPECT_EQ(none["text"], "");
  EXPECT_EQ(none["finish_reason"], "length");
  EXPECT_EQ(none["stats"]["tau"].get<double>(), 0);

  const std::string text = generate_json({"--prompt", "ab", "--ignore-eos"})["text"];
  ASSERT_GE(text.size(), 6U) << "the tiny model's text: " << text;
  // A whole character in the second half of the text.
  std::size_t at = text.size() / 2;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  std::size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  const std::string stop = text.substr(at, end - at);
  const json stopped =
      generate_json({"--prompt", "ab", "--ignore-eos", "--stop", "never seen", "--stop", stop});
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["finish_reason"], "stop");
}

TEST(Generate, EndsWithTheContext) {
  const json object = generate_json({"--prompt", "ab", "--ignore-eos", "--max-tokens", "100000"});
  EXPECT_EQ(object["finish_reason"], "length");
  EXPECT_LT(object["ids"].size(), static_cast<std::size_t>(kContext));
  // The reader is told that the text did not end by itself.
  const ProgramRun cut =
      run_program(generate_words({"--prompt", "ab", "--ignore-eos", "--max-tokens", "100000"}));
  EXPECT_EQ(cut.status, 0);
  EXPECT_EQ(cut.err, "(cut off: the context is full)\n");
  EXPECT_EQ(run_program(generate_words({"--prompt", "ab", "--ignore-eos"})).err, "");

  std::string longer;
  for (int word = 0; word < kContext; ++word) longer += " ~" + std::to_string(word);
  expect_refused(run_program(generate_words({"--prompt", longer})), 1, "context");
}

TEST(Generate, AnInterruptedTextIsStillAnAnswer) {
  const Words words = {"generate",     "--model", CliModels::get().patient(),
                       "--prompt",     "ab",      "--json",
                       "--max-tokens", "1000000", "--ignore-eos"};
  // On a slow machine the first waits may end within the load, where there is nothing to test.
  for (int wait = 1000; wait <= 32000; wait *= 2) {
    const ProgramRun run = run_program(words, {.interrupt_after = std::chrono::milliseconds(wait)});
    ASSERT_EQ(run.status, 130) << run.err;
    if (run.out.empty()) continue;
    const json object = json::parse(run.out);
    EXPECT_EQ(object["finish_reason"], "cancelled");
    EXPECT_GT(object["ids"].size(), 0U);
    EXPECT_EQ(object["ids"].size(), object["stats"]["emitted"].get<std::size_t>());
    EXPECT_THAT(run.err, IsEmpty());
    return;
  }
  FAIL() << "interrupted within the load every time";
}

// A prompt that would take hours is abandoned after the pass in progress.
TEST(Generate, AnInterruptionIsSeenWithinThePrompt) {
  const fs::path file = CliModels::get().root() / "long.txt";
  std::ofstream(file) << std::string(1'000'000, '~');
  const Words words = {"generate",      "--model",     CliModels::get().patient(),
                       "--prompt-file", file.string(), "--json"};
  for (int wait = 2000; wait <= 32000; wait *= 2) {
    const ProgramRun run = run_program(words, {.interrupt_after = std::chrono::milliseconds(wait)});
    ASSERT_EQ(run.status, 130) << run.err;
    if (run.out.empty()) continue;  // within the load
    const json object = json::parse(run.out);
    EXPECT_EQ(object["finish_reason"], "cancelled");
    EXPECT_THAT(object["ids"], IsEmpty());
    EXPECT_THAT(run.err, IsEmpty());
    return;
  }
  FAIL() << "interrupted within the load every time";
}

TEST(Generate, AnInterruptedStreamEndsWithALine) {
  const ProgramRun run = run_program({"generate", "--model", CliModels::get().patient(), "--prompt",
                                      "ab", "--max-tokens", "1000000", "--ignore-eos"},
                                     {.interrupt_at_output = true});
  EXPECT_EQ(run.status, 130);
  EXPECT_THAT(run.err, IsEmpty());
  ASSERT_FALSE(run.out.empty());
  EXPECT_EQ(run.out.back(), '\n');
}

TEST(Generate, AReaderThatLeavesEndsItQuietly) {
  const ProgramRun run = run_program({"generate", "--model", CliModels::get().patient(), "--prompt",
                                      "ab", "--max-tokens", "1000000", "--ignore-eos"},
                                     {.close_output_at_first_byte = true});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, IsEmpty());
}

// The size of a page is taken from the message that refuses less memory.
TEST(Generate, ATextThatNeedsMoreMemoryThanItMayHaveIsAnError) {
  const ProgramRun too_little = run_program(generate_words({"--prompt", "ab", "--kv-memory", "1"}));
  EXPECT_EQ(too_little.status, 2);
  const std::string before = "--kv-memory: expected at least ";
  const std::size_t at = too_little.err.find(before);
  ASSERT_NE(at, std::string::npos) << too_little.err;
  const long page_bytes = std::stol(too_little.err.substr(at + before.size()));
  const std::string two_pages = std::to_string(2 * page_bytes);
  const Words text = {"--prompt", "ab", "--ignore-eos", "--max-tokens"};
  const auto run = [&](const std::string& max_tokens, const std::string& memory) {
    Words words = text;
    words.insert(words.end(), {max_tokens, "--kv-memory", memory});
    return run_program(generate_words(words));
  };
  EXPECT_EQ(run("100", two_pages).status, 0);
  EXPECT_EQ(run("100", two_pages).out, run("100", "0.5g").out);
  EXPECT_EQ(run("200", "64MiB").status, 0);
  const ProgramRun exhausted = run("200", two_pages);
  EXPECT_EQ(exhausted.status, 1);
  EXPECT_THAT(exhausted.err,
              HasSubstr("KV cache: expected at most " + two_pages + " bytes (--kv-memory)"));
}

TEST(Generate, AClosedStandardOutputIsAnErrorAndNoFileGetsTheText) {
  const fs::path file = CliModels::get().root() / "beside_closed.f32";
  const ProgramRun run = run_program(generate_words({"--prompt", "a", "--logits", file.string()}),
                                     {.close_output_at_start = true});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(n_lines(run.err), 1) << run.err;
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace outrider::test
