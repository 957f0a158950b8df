// The program as its users meet it: exit statuses, what goes to which stream, and the contract of
// --json. Models are made on the spot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tiny_pair.h"

namespace outrider::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

constexpr int kContext = 1024;  // of the tiny pair
constexpr int kVocabulary = 384;

// A folder for this process, with a pair of models, a model of very long context and one that
// chats; removed at the end.
class Models {
 public:
  static const Models& get() {
    static const Models models;
    return models;
  }

  std::string target() const { return (root_ / "target").string(); }
  std::string draft() const { return (root_ / "draft").string(); }
  std::string patient() const { return (root_ / "patient").string(); }
  std::string chatty() const { return (root_ / "chatty").string(); }
  fs::path root() const { return root_; }

 private:
  Models()
      : root_(fs::temp_directory_path() / ("outrider_cli_test." + std::to_string(::getpid()))) {
    fs::create_directories(root_);
    write_tiny_pair(root_);
    TinyShape shape;
    shape.context_length = 1 << 20;  // long enough for any interruption
    write_hugging_face(make_tiny_model(shape), root_ / "patient");
    write_hugging_face(make_tiny_model({}), root_ / "chatty");
    const json config = {
        {"chat_template",
         "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
         "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{{ '<|im_start|>assistant\n' }}"}};
    std::ofstream(root_ / "chatty" / "tokenizer_config.json") << config.dump();
  }
  ~Models() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  fs::path root_;
};

int n_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

Words generate_words(const Words& more) {
  Words words = {"generate", "--model", Models::get().target()};
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

// One line on standard error, beginning with the program's name; nothing on standard output.
void expect_refused(const ProgramRun& run, int status, const std::string& words) {
  EXPECT_EQ(run.status, status) << run.err;
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_EQ(n_lines(run.err), 1) << run.err;
  EXPECT_THAT(run.err, AllOf(StartsWith("outrider: "), HasSubstr(words)));
}

// ---- flags
// ---------------------------------------------------------------------------------------

struct UsageCase {
  Words words;
  std::string message;
};

TEST(CommandLine, EveryUsageErrorIsOneLineAndStatus2) {
  const std::string model = Models::get().target();
  const Words base = {"generate", "--model", model, "--prompt", "a"};
  const auto with = [&base](const Words& more) {
    Words words = base;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<UsageCase> cases = {
      {{}, "expected one of generate"},
      {{"serve"}, "serve"},
      {{"generat", "--model", model}, "generat"},
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
      {with({"--kv", "f64"}), "f32, bf16"},
      {with({"--threads", "-2"}), "--threads"},
      {with({"--threads", "many"}), "--threads"},
      {with({"--verify", "hope"}), "exact, block, traversal, coupled"},
      {with({"--raw", "--chat"}), "--raw"},
      {with({"--draft", "d", "--drafter", "none"}), "--draft"},
      {with({"--draft", ""}), "--draft"},
      {with({"--logits", ""}), "--logits"},
      {with({"--drafter", "oracle"}), "oracle"},
      {with({"--rule", "whatever"}), "exact, chow, diff, opt, token-v1"},
      {with({"--rule", "chow:alpha=0.1"}), "model:PATH"},
      {with({"--draft", Models::get().draft(), "--rule", "chow:alpha=2"}), "from -1 to 1"},
      {with({"--draft", Models::get().draft(), "--rule", "bild", "--temperature", "0.5"}),
       "temperature: expected 0"},
      {with({"--draft", Models::get().draft(), "--tree", "bush:width=3"}), "bush"},
      {with({"--draft", Models::get().draft(), "--tree", "chain:length=0"}), "length"},
      {with({"--draft", Models::get().draft(), "--tree", "chain:depth=2"}), "depth"},
      {with({"--draft", "d", "--tree", "widths:4,0"}), "from 1 to 255, got 0"},
      {with({"--draft", "d", "--tree", "static:oak"}), "static:medusa"},
      {with({"--draft", "d", "--tree", "widths:2,2", "--verify", "block"}), "a chain"},
      // Specs are read before any model is.
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
      {{"inspect"}, "--model"},
      {{"datastore"}, "build or inspect"},
      {{"inspect", "--kernels", "--model", model}, "--kernels"},
      {{"chat"}, "--model"},
      {{"chat", "--model", model, "--json"}, "--json"},
  };
  for (const UsageCase& usage : cases) {
    SCOPED_TRACE(::testing::PrintToString(usage.words));
    expect_refused(run_program(usage.words), 2, usage.message);
  }
}

TEST(CommandLine, WhatCannotBeReadIsOneLineAndStatus1) {
  const std::string model = Models::get().target();
  const std::string nowhere = (Models::get().root() / "nowhere").string();
  const std::vector<UsageCase> cases = {
      {{"generate", "--model", nowhere, "--prompt", "a"}, "nowhere"},
      {{"generate", "--model", "", "--prompt", "a"}, ""},
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
      {{"inspect", "--model", nowhere}, "nowhere"},
      {{"inspect", "--model", Models::get().root().string()}, "config.json"},
  };
  for (const UsageCase& usage : cases) {
    SCOPED_TRACE(::testing::PrintToString(usage.words));
    const ProgramRun run = run_program(usage.words);
    expect_refused(run, usage.words[2] == model && usage.words.back() == "-- -5" ? 2 : 1,
                   usage.message);
  }
}

TEST(CommandLine, HelpFitsATerminalAndShowsExamples) {
  for (const Words& words : {Words{"--help"}, Words{"generate", "--help"}, Words{"chat", "-h"},
                             Words{"tokenize", "--help"}, Words{"inspect", "--help"},
                             Words{"datastore", "--help"}, Words{"datastore", "build", "--help"},
                             Words{"train", "--help"}, Words{"train", "tokenizer", "--help"}}) {
    SCOPED_TRACE(words.front());
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, 0);
    EXPECT_THAT(run.err, IsEmpty());
    EXPECT_THAT(run.out, HasSubstr("Examples:\n  outrider "));
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
  EXPECT_THAT(run_program({"--version"}).out, StartsWith("outrider "));
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
  EXPECT_EQ(n_commands, 7);
}

// ---- generate
// ------------------------------------------------------------------------------------

TEST(Generate, JsonHasExactlyTheContractsFields) {
  const json object = generate_json({"--prompt", "ab", "--draft", Models::get().draft()});
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
    drafted.push_back(Models::get().draft());
    const json expected = generate_json(plain);
    const json object = generate_json(drafted);
    EXPECT_EQ(object["ids"], expected["ids"]);
    EXPECT_EQ(object["text"], expected["text"]);
    EXPECT_GT(object["stats"]["drafted"].get<int>(), 0);
    EXPECT_EQ(expected["stats"]["drafted"].get<int>(), 0);
  }
}

// A path may hold what the spec language reads as punctuation.
TEST(Generate, DraftTakesAnyPath) {
  const fs::path odd = Models::get().root() / "odd,key=value\\end";
  fs::create_directory_symlink(Models::get().draft(), odd);
  const json object = generate_json({"--prompt", "ab", "--draft", odd.string()});
  EXPECT_GT(object["stats"]["drafted"].get<int>(), 0);
}

TEST(Generate, ShowDraftMarksTokensWithoutChangingThem) {
  const Words words = generate_words(
      {"--prompt", "ab", "--ignore-eos", "--draft", Models::get().draft(), "--show-draft"});
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
  const fs::path file = Models::get().root() / "rows.f32";
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
  // No temporary is left beside it.
  for (const auto& entry : fs::directory_iterator(Models::get().root())) {
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
  }
}

TEST(Generate, LogitsMayGoToADevice) {
  EXPECT_EQ(run_program(generate_words({"--prompt", "a", "--logits", "/dev/null"})).status, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(Generate, PromptsComeFromFilesAndStandardInputToo) {
  const json expected = generate_json({"--prompt", "a prompt\n"});
  const fs::path file = Models::get().root() / "prompt.txt";
  std::ofstream(file) << "a prompt\n";
  EXPECT_EQ(generate_json({"--prompt-file", file.string()})["ids"], expected["ids"]);
  EXPECT_EQ(generate_json({"--prompt-file", "-"}, {.standard_input = "a prompt\n"})["ids"],
            expected["ids"]);
  EXPECT_NE(generate_json({"--prompt", "a prompt"})["ids"], expected["ids"]);
}

TEST(Generate, TakesOddPrompts) {
  for (const std::string prompt : {"", "--help", "[x]", "-1", "\xff\xfe half \xe2\x82",
                                   "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "chat"}) {
    SCOPED_TRACE(::testing::PrintToString(prompt));
    const json object = generate_json({"--prompt", prompt, "--ignore-eos"});
    EXPECT_EQ(object["ids"].size(), 12U);
  }
  // NUL bytes cannot stand in an argument, but in a file they can.
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
  // A character of the text's second half, whole.
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

  std::string longer;
  for (int word = 0; word < kContext; ++word) longer += " ~" + std::to_string(word);
  expect_refused(run_program(generate_words({"--prompt", longer})), 1, "context");
}

TEST(Generate, AnInterruptedTextIsStillAnAnswer) {
  const Words words = {"generate",     "--model", Models::get().patient(),
                       "--prompt",     "ab",      "--json",
                       "--max-tokens", "1000000", "--ignore-eos"};
  // On a slow machine the first waits may end within the load, which leaves nothing to show.
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

// A prompt that would take hours to run is left after the pass in progress.
TEST(Generate, AnInterruptionIsSeenWithinThePrompt) {
  const fs::path file = Models::get().root() / "long.txt";
  std::ofstream(file) << std::string(1'000'000, '~');
  const Words words = {"generate",      "--model",     Models::get().patient(),
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
  const ProgramRun run = run_program({"generate", "--model", Models::get().patient(), "--prompt",
                                      "ab", "--max-tokens", "1000000", "--ignore-eos"},
                                     {.interrupt_at_output = true});
  EXPECT_EQ(run.status, 130);
  EXPECT_THAT(run.err, IsEmpty());
  ASSERT_FALSE(run.out.empty());
  EXPECT_EQ(run.out.back(), '\n');
}

TEST(Generate, AReaderThatLeavesEndsItQuietly) {
  const ProgramRun run = run_program({"generate", "--model", Models::get().patient(), "--prompt",
                                      "ab", "--max-tokens", "1000000", "--ignore-eos"},
                                     {.close_output_at_first_byte = true});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, IsEmpty());
}

TEST(Generate, AClosedStandardOutputIsAnErrorAndNoFileGetsTheText) {
  const fs::path file = Models::get().root() / "beside_closed.f32";
  const ProgramRun run = run_program(generate_words({"--prompt", "a", "--logits", file.string()}),
                                     {.close_output_at_start = true});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(n_lines(run.err), 1) << run.err;
  EXPECT_FALSE(fs::exists(file));
}

// ---- tokenize, inspect, chat
// ---------------------------------------------------------------------

TEST(Tokenize, GoesThereAndBack) {
  const std::string model = Models::get().target();
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

TEST(Inspect, ShowsTheSameTensorsOfBothFileForms) {
  const TinyModel model = make_tiny_model({});
  const fs::path gguf = Models::get().root() / "model.gguf";
  write_gguf(model, gguf);
  std::int64_t n_parameters = 0;
  for (const TinyTensor& tensor : model.tensors) {
    n_parameters += static_cast<std::int64_t>(tensor.values.size());
  }
  for (const std::string& path : {Models::get().chatty(), gguf.string()}) {
    SCOPED_TRACE(path);
    const ProgramRun run = run_program({"inspect", "--json", "--model", path});
    ASSERT_EQ(run.status, 0) << run.err;
    const json object = json::parse(run.out);
    EXPECT_EQ(object["n_tensors"].get<std::size_t>(), model.tensors.size());
    EXPECT_EQ(object["tensors"].size(), model.tensors.size());
    EXPECT_EQ(object["n_parameters"].get<std::int64_t>(), n_parameters);
    EXPECT_FALSE(object["metadata"].empty());
    const ProgramRun table = run_program({"inspect", "--model", path});
    EXPECT_EQ(table.status, 0);
    for (const json& tensor : object["tensors"]) {
      EXPECT_THAT(table.out, HasSubstr(tensor["name"].get<std::string>()));
    }
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

Words chat_words(const Words& more = {}) {
  Words words = {"chat", "--model", Models::get().chatty(), "--max-tokens", "8", "--ignore-eos"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Chat, AnswersEveryLineOfAPipeInItsTurn) {
  const ProgramRun one = run_program(chat_words(), {.standard_input = "hello\n"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_FALSE(one.out.empty());
  const ProgramRun two = run_program(chat_words(), {.standard_input = "hello\n\nand\n"});
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(two.out, StartsWith(one.out));
  EXPECT_GT(two.out.size(), one.out.size());
  // Forgetting makes the second answer the first; so does a last line without its end.
  const ProgramRun reset = run_program(chat_words(), {.standard_input = "hello\n/reset\nhello"});
  EXPECT_EQ(reset.out, one.out + one.out);
  EXPECT_EQ(run_program(chat_words(), {.standard_input = "hello\n/exit\nhello\n"}).out, one.out);
}

TEST(Chat, TheFirstAnswerIsThatOfGenerateChat) {
  const ProgramRun chat = run_program(chat_words(), {.standard_input = "hello\n"});
  const ProgramRun once =
      run_program({"generate", "--chat", "--prompt", "hello", "--model", Models::get().chatty(),
                   "--max-tokens", "8", "--ignore-eos"});
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(once.out, chat.out);
}

TEST(Chat, TheSystemMessageCounts) {
  const ProgramRun flag =
      run_program(chat_words({"--system", "be odd"}), {.standard_input = "hello\n"});
  const ProgramRun command =
      run_program(chat_words(), {.standard_input = "/system be odd\nhello\n"});
  const ProgramRun without = run_program(chat_words(), {.standard_input = "hello\n"});
  EXPECT_EQ(command.out, flag.out);
  EXPECT_NE(without.out, flag.out);
}

TEST(Chat, AFullContextForgetsTheOldestAndSaysSo) {
  std::string lines;
  for (int turn = 0; turn < 12; ++turn) lines += "turn " + std::to_string(turn) + " tell me\n";
  const ProgramRun run = run_program(chat_words(), {.standard_input = lines});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_GE(n_lines(run.out), 12);
  EXPECT_THAT(run.err, HasSubstr("forgotten"));
}

TEST(Chat, AMessageTooLongIsRefusedAndTheConversationGoesOn) {
  const std::string longer(5000, '~');
  const ProgramRun run = run_program(chat_words(), {.standard_input = longer + "\nhello\n"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("context"));
  EXPECT_EQ(run.out, run_program(chat_words(), {.standard_input = "hello\n"}).out);
}

TEST(Chat, UnknownCommandsAreNotSent) {
  const ProgramRun run = run_program(chat_words(), {.standard_input = "/frob\n"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("/frob"));
  EXPECT_EQ(run_program(chat_words(), {.standard_input = "//frob\n"}).status, 0);
}

}  // namespace
}  // namespace outrider::testing
