// SPDX-License-Identifier: Apache-2.0
// Task files, data files and the prompts made from both.
#include "eval/tasks/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "eval/metrics/make_metric.h"
#include "eval/tasks/data_file.h"
#include "eval/tasks/question.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class Files : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const fs::path file = directory_.path() / name;
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  test::TemporaryDirectory directory_;
};

TEST(TemplateTest, FillsFieldsIn) {
  const Item item{.number = 0,
                  .place = "here",
                  .fields = {{"q", "why?"},
                             {"n", 3.5},
                             {"list", {"one", "two"}},
                             {"deep", {{"list", {"zero", {{"x", true}}}}}},
                             {"with.point", "p"},
                             {"null", nullptr}}};
  const auto render = [&](const char* text) { return Template::parse(text, "task").render(item); };
  EXPECT_EQ(render("Q: {q}\n{{{n}}}"), "Q: why?\n{3.5}");
  EXPECT_EQ(render("{list}"), "one\ntwo");
  EXPECT_EQ(render("{list.1} {deep.list.0} {deep.list.1.x} {with.point}"), "two zero true p");
  for (const char* missing : {"{none}", "{null}", "{deep}", "{list.2}", "{list.x}", "{q.0}"}) {
    EXPECT_THAT(error_of([&] { render(missing); }), HasSubstr("here: expected a text in"))
        << missing;
  }
  for (const char* broken : {"{", "}", "{}", "a {b c} d", "{a{b}}"}) {
    EXPECT_THAT(error_of([&] { render(broken); }), HasSubstr("[read task] task")) << broken;
  }
}

TEST(TaskFile, SaysWhatIsWrongWithIt) {
  const auto problem = [](const char* text) {
    return error_of([text] { parse_task(text, "t.json"); });
  };
  EXPECT_THAT(problem("{"), HasSubstr("t.json: expected JSON"));
  EXPECT_THAT(problem("[]"), HasSubstr("a JSON object"));
  EXPECT_THAT(problem(R"({"prompt": "{a}"})"), HasSubstr("\"name\""));
  EXPECT_THAT(problem(R"({"name": "n"})"), HasSubstr("\"prompt\""));
  EXPECT_THAT(problem(R"({"name": "n", "prompt": "x", "promt": 1})"), HasSubstr("got promt"));
  EXPECT_THAT(problem(R"({"name": "n", "prompt": "x", "data": "csv"})"), HasSubstr("got csv"));
  EXPECT_THAT(problem(R"({"name": "n", "prompt": "x", "data": {"format": "lines"}})"),
              HasSubstr("fields"));
  EXPECT_THAT(problem(R"({"name": "n", "prompt": "x", "max_tokens": 0})"), HasSubstr("got 0"));
  EXPECT_THAT(problem(R"({"name": "n", "prompt": "x", "stop": [""]})"), HasSubstr("an empty one"));
  EXPECT_THAT(problem(R"({"name": "n", "prompt": "x", "examples": [{}], "example": "{a}"})"),
              HasSubstr("example 1"));
}

// Deeply nested values must not exhaust the stack of code that copies them.
TEST_F(Files, NestedJsonIsNoTrap) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  for (const int depth : {100, 1'000'000}) {
    EXPECT_THAT(error_of([&] {
                  parse_task(R"({"name": "n", "prompt": "x", "max_tokens": )" + nested(depth) + "}",
                             "t.json");
                }),
                HasSubstr("t.json: expected JSON"));
    const DataSet set =
        read_data({}, {write("deep.jsonl", "{\"a\": " + nested(depth) + "}\n{\"a\": 1}\n")});
    EXPECT_EQ(set.items.size(), 1U);
    EXPECT_EQ(set.problems.size(), 1U);
  }
  EXPECT_THAT(error_of([&] {
                parse_task(R"({"name": "n", "prompt": "x", "max_tokens": )" + nested(60) + "}",
                           "t.json");
              }),
              HasSubstr("max_tokens"));
}

TEST(TaskFile, MetricsMustFitTheTask) {
  const auto problem = [](const std::string& rest) {
    const Task task = parse_task(R"({"name": "n", "prompt": "x", )" + rest + "}", "t.json");
    return error_of([&] { make_metrics(task, {.allow_network = false, .only_score = true}); });
  };
  EXPECT_EQ(problem(R"("metric": ["bleu", "chrf", "rouge", "squad:no-answer=none", "numeric"],
                       "reference": "r")"),
            "no error");
  EXPECT_EQ(problem(R"("metric": "perplexity")"), "no error");
  EXPECT_EQ(problem(R"("metric": "pass@10", "program": "{completion}")"), "no error");
  EXPECT_THAT(problem(R"("metric": "blue", "reference": "r")"), HasSubstr("got blue"));
  EXPECT_THAT(problem(R"("metric": "pass@0", "program": "{completion}")"), HasSubstr("pass@0"));
  EXPECT_THAT(problem(R"("metric": "bleu")"), HasSubstr("reference"));
  EXPECT_THAT(problem(R"("metric": "pass@1")"), HasSubstr("program"));
  EXPECT_THAT(problem(R"("metric": ["perplexity", "bleu"], "reference": "r")"),
              HasSubstr("perplexity alone"));
}

TEST(TaskFile, AllThatShipAreSound) {
  const std::vector<Task> tasks = list_tasks({fs::path(OUTRIDER_SOURCE_DIR) / "tasks"});
  std::vector<std::string> names;
  for (const Task& task : tasks) {
    names.push_back(task.name);
    EXPECT_FALSE(task.description.empty()) << task.name;
    EXPECT_FALSE(task.source.empty()) << task.name;
    EXPECT_EQ(load_task(task.name, {fs::path(OUTRIDER_SOURCE_DIR) / "tasks"}).name, task.name)
        << "named otherwise than its file";
    make_metrics(task, {.allow_network = false, .only_score = true});
  }
  for (const char* promised : {"multi30k-en-de", "multi30k-de-en", "wmt22-en-de", "wmt22-de-en",
                               "gsm8k", "triviaqa", "mbpp", "humaneval", "squad2", "webquestions",
                               "nq-open", "xsum", "cnn-dailymail", "spec-bench", "perplexity"}) {
    EXPECT_THAT(names, ::testing::Contains(promised));
  }
  EXPECT_THAT(error_of([] { load_task("gsm9k", {fs::path(OUTRIDER_SOURCE_DIR) / "tasks"}); }),
              AllOf(HasSubstr("gsm8k"), HasSubstr("got gsm9k")));
}

// Of a Problem.
auto problem_with(const char* part) { return Field(&Problem::text, HasSubstr(part)); }

TEST_F(Files, ABadLineIsNamedAndTheOthersAreRead) {
  const std::string file = write("d.jsonl", "{\"a\": 1}\n\n{\"a\": \n[1]\r\n{\"a\": 2}");
  const DataSet set = read_data({}, {file});
  EXPECT_EQ(set.n_items, 4);
  ASSERT_EQ(set.items.size(), 2U);
  EXPECT_EQ(set.items[1].number, 3);
  EXPECT_EQ(set.items[1].place, file + ", line 5");
  EXPECT_THAT(set.problems,
              ElementsAre(problem_with("line 3: expected a JSON object, got malformed JSON"),
                          problem_with("line 4: expected a JSON object, got array")));
}

TEST_F(Files, OtherLayouts) {
  const DataSet list =
      read_data({.format = DataLayout::Format::json}, {write("d.json", R"([{"a": 1}, 2])")});
  EXPECT_EQ(list.items.size(), 1U);
  EXPECT_THAT(list.problems, ElementsAre(problem_with("item 2")));

  const DataLayout lines{.format = DataLayout::Format::lines, .fields = {"en", "de"}};
  const std::string english = write("en", "one\ntwo\n\n");
  const DataSet parallel = read_data(lines, {english, write("de", "eins\nzwei\nleer")});
  ASSERT_EQ(parallel.items.size(), 3U);
  EXPECT_EQ(parallel.items[1].fields["de"], "zwei");
  EXPECT_EQ(parallel.items[2].fields["en"], "");
  EXPECT_THAT(error_of([&] {
                read_data(lines, {english, write("short", "eins\nzwei\n")});
              }),
              HasSubstr("short: expected as many lines as the files beside it, got 2"));
  EXPECT_THAT(error_of([&] { read_data(lines, {english}); }), HasSubstr("2 files (en, de), got 1"));

  const DataLayout cut{.format = DataLayout::Format::documents, .separator = "<|end|>"};
  const DataSet documents =
      read_data(cut, {write("stories", "\nOne.\n<|end|>\n\n<|end|> Two \n <|end|>")});
  ASSERT_EQ(documents.items.size(), 2U);
  EXPECT_EQ(documents.items[0].fields["text"], "One.");
  EXPECT_EQ(documents.items[1].fields["text"], "Two");

  // Invalid UTF-8 affects its item only.
  const DataSet latin = read_data(lines, {english, write("latin", "eins\nzw\xe9i\nleer")});
  ASSERT_EQ(latin.items.size(), 2U);
  EXPECT_EQ(latin.items[1].number, 2);
  EXPECT_THAT(latin.problems,
              ElementsAre(problem_with("latin, line 2: expected UTF-8 text, got byte 0xE9")));
  const DataSet odd = read_data(cut, {write("odd", "One.<|end|>Tw\xff<|end|>Three")});
  ASSERT_EQ(odd.items.size(), 2U);
  EXPECT_THAT(odd.problems, ElementsAre(problem_with("document 2: expected UTF-8 text")));

  const DataSet squad = read_data({.format = DataLayout::Format::squad}, {write("squad.json", R"(
    {"data": [{"title": "T", "paragraphs": [{"context": "C", "qas": [
      {"question": "Q1", "id": "1", "answers": [{"text": "A"}, {"text": "B"}]},
      {"question": "Q2", "id": "2", "answers": [], "is_impossible": true}]}]}]})")});
  ASSERT_EQ(squad.items.size(), 2U);
  EXPECT_EQ(squad.items[0].fields["answers"], (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(squad.items[1].fields["answers"], (std::vector<std::string>{""}));
  EXPECT_EQ(squad.items[1].fields["context"], "C");
  EXPECT_THAT(
      error_of([&] { read_data({.format = DataLayout::Format::squad}, {write("no.json", "{}")}); }),
      HasSubstr("lists \"data\""));
  EXPECT_THAT(error_of([&] { read_data({}, {"/nowhere/at/all"}); }), HasSubstr("No such file"));
  EXPECT_NE(list.digest, squad.digest);
}

TEST_F(Files, PromptsAndReferences) {
  const Task task = parse_task(R"({
    "name": "n", "instruction": "Answer.\n", "prompt": "Q: {q}\nA:",
    "examples": [{"q": "1+1", "a": "2"}, {"q": "2+2", "a": "4"}],
    "example": "Q: {q}\nA: {a}\n", "reference": ["a", "b"], "slice": "kind"})",
                               "t.json");
  const std::string file = write("d.jsonl",
                                 "{\"q\": \"x\", \"a\": [\"y\", \"z\"], \"b\": 7, \"kind\": 1}\n"
                                 "{\"q\": \"x\", \"b\": \"c\", \"kind\": 1}\n"
                                 "{\"q\": \"x\", \"a\": [], \"b\": \"c\", \"kind\": 1}\n"
                                 "{\"a\": \"x\", \"b\": \"c\", \"kind\": 1}\n"
                                 "{\"q\": \"x\", \"a\": \"y\", \"b\": \"c\"}\n");
  const QuestionSet set = prepare(task, read_data(task.data, {file}));
  ASSERT_EQ(set.questions.size(), 1U);
  EXPECT_EQ(set.questions[0].prompt, "Answer.\nQ: 1+1\nA: 2\nQ: 2+2\nA: 4\nQ: x\nA:");
  EXPECT_EQ(set.questions[0].references, (std::vector<std::string>{"y", "z", "7"}));
  EXPECT_EQ(set.questions[0].slice, "1");
  EXPECT_THAT(set.problems,
              ElementsAre(AllOf(problem_with("line 2"),
                                problem_with("\"a\", the reference, got no such field")),
                          AllOf(problem_with("line 3"), problem_with("an empty list")),
                          AllOf(problem_with("line 4"), problem_with("\"q\", got no such field")),
                          AllOf(problem_with("line 5"), problem_with("\"kind\", the slice"))));
  EXPECT_EQ(prepare(task, read_data(task.data, {file}), 1).questions[0].prompt,
            "Answer.\nQ: 1+1\nA: 2\nQ: x\nA:");
  EXPECT_EQ(prepare(task, read_data(task.data, {file}), 0).questions[0].prompt,
            "Answer.\nQ: x\nA:");
}

// Items after the last requested question are ignored, whatever they are.
TEST_F(Files, NothingIsSaidOfItemsThatAreNotAskedFor) {
  const Task task = parse_task(R"({"name": "n", "prompt": "{q}"})", "t.json");
  const std::string file = write("d.jsonl",
                                 "{\"q\": 1}\nrubbish\n{\"q\": 2}\n{}\n{\"q\": 3}\n"
                                 "rubbish\nrubbish\n");
  const auto places_of = [&](std::size_t n_questions) {
    std::vector<int> numbers;
    const QuestionSet set = prepare(task, read_data(task.data, {file}), -1, n_questions);
    EXPECT_LE(set.questions.size(), n_questions);
    for (const Problem& found : set.problems) numbers.push_back(found.number);
    return numbers;
  };
  EXPECT_THAT(places_of(1), ElementsAre());
  EXPECT_THAT(places_of(2), ElementsAre(1));
  EXPECT_THAT(places_of(3), ElementsAre(1, 3));
  EXPECT_THAT(places_of(9), ElementsAre(1, 3, 5, 6));
}

TEST_F(Files, AFileOfAnotherKindIsOneError) {
  const Task task = parse_task(R"({"name": "n", "prompt": "{q}"})", "t.json");
  const auto error_with = [&](const std::string& text) {
    const std::string file = write("d", text);
    return error_of([&] { prepare(task, read_data(task.data, {file})); });
  };
  EXPECT_THAT(error_with("a\nb\nc\nd\n{\"q\": 1}\n"),
              AllOf(HasSubstr("none of the first 3 items"),
                    HasSubstr("d, line 1: expected a JSON object, got malformed JSON")));
  EXPECT_THAT(error_with("{\"p\": 1}\n{\"p\": 1}\nx\n"),
              AllOf(HasSubstr("d, line 1"), HasSubstr("\"q\", got no such field")));
  EXPECT_EQ(error_with("a\nb\n{\"q\": 1}\nc\n"), "no error");
  EXPECT_THAT(error_with(std::string("\x1f\x8b\x08 rest", 8)),
              HasSubstr("d: expected text, got g"));
  EXPECT_THAT(error_with(std::string("PAR1\0\0", 6)),
              HasSubstr("d: expected text, got zero bytes"));
}

}  // namespace
}  // namespace outrider::eval
