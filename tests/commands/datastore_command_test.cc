// SPDX-License-Identifier: Apache-2.0
// `outrider datastore` as its users see it: its output and refusals. A build that ends early,
// however it ends, leaves the earlier store or none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class DatastoreCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_pair(root());
    write("small.txt", "the cat sat on the mat and the cat sat on the hat");
  }
  const fs::path& root() const { return directory_.path(); }
  fs::path store() const { return root() / "store"; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root() / name).parent_path());
    std::ofstream(root() / name, std::ios::binary) << text;
  }
  Words build_words(const std::string& text, const Words& more = {}) const {
    Words words = {"datastore", "build",
                   "--model",   (root() / "target").string(),
                   "--text",    (root() / text).string(),
                   "--out",     store().string()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_refused(const Words& words, int status, const std::string& message) const {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, AllOf(StartsWith("outrider: "), HasSubstr(message)));
    EXPECT_FALSE(fs::exists(store()));
    EXPECT_FALSE(fs::exists(store().string() + ".outrider-partial"));
  }

  // Starts a build and sends it a signal once it has written a segment; returns the wait status.
  int kill_build(const std::string& text, int number) const;

  TemporaryDirectory directory_;
};

// A link is a place that the user chose: its target is replaced, not the link.
TEST_F(DatastoreCommand, WritesThroughALink) {
  write("elsewhere/old.store", "old");
  fs::create_symlink("elsewhere/old.store", store());
  EXPECT_EQ(run_program(build_words("small.txt")).status, 0);
  EXPECT_TRUE(fs::is_symlink(store()));
  EXPECT_NE(read_file(root() / "elsewhere" / "old.store"), "old");
  EXPECT_EQ(run_program({"datastore", "inspect", "--path", store().string(), "--check"}).status, 0);
}

TEST_F(DatastoreCommand, BuildsShowsAndServes) {
  const ProgramRun built = run_program(build_words("small.txt"));
  EXPECT_EQ(built.status, 0) << built.err;
  EXPECT_EQ(built.err, "");
  EXPECT_THAT(built.out, AllOf(HasSubstr(" tokens of 1 document in 1 segment,"),
                               HasSubstr("a vocabulary of 384 tokens")));
  const ProgramRun shown =
      run_program({"datastore", "inspect", "--path", store().string(), "--check"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(shown.out, built.out);
  const ProgramRun json =
      run_program({"datastore", "inspect", "--path", store().string(), "--json"});
  const auto object = nlohmann::json::parse(json.out);
  EXPECT_EQ(object.at("n_bytes"), fs::file_size(store()));
  EXPECT_EQ(object.at("n_documents"), 1);
  EXPECT_EQ(object.at("vocabulary_size"), 384);

  const auto generate = [&](const Words& more) {
    Words words = {"generate",
                   "--model",
                   (root() / "target").string(),
                   "--prompt",
                   "the cat sat on the",
                   "--max-tokens",
                   "20",
                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out);
  };
  const auto plain = generate({});
  const auto drafted = generate({"--drafter", "retrieval:path=" + store().string()});
  EXPECT_EQ(drafted.at("ids"), plain.at("ids"));
  EXPECT_GT(drafted.at("stats").at("drafted"), 0);
  // An existing store is replaced.
  EXPECT_EQ(run_program(build_words("small.txt", {"--separator", "and"})).status, 0);
  const auto again = run_program({"datastore", "inspect", "--path", store().string()});
  EXPECT_THAT(again.out, HasSubstr("of 2 documents"));
}

TEST_F(DatastoreCommand, FoldersAreReadInTheOrderOfTheirNames) {
  write("texts/b.txt", "second text");
  write("texts/a/x.txt", "first text");
  write("texts/.hidden", "\xFF");
  write("texts/.git/y.txt", "\xFF");
  EXPECT_EQ(run_program(build_words("texts")).status, 0);
  const std::string of_folder = read_file(store());
  Words words = build_words("texts/a/x.txt", {"--text", (root() / "texts/b.txt").string()});
  EXPECT_EQ(run_program(words).status, 0);
  EXPECT_EQ(read_file(store()), of_folder);
  EXPECT_NE(of_folder, "");
}

TEST_F(DatastoreCommand, RefusesInOneLineAndLeavesNothing) {
  write("latin.txt", "one\ntwo caf\xE9\n");
  write("blank.txt", " \n\n");
  fs::create_directories(root() / "empty");
  expect_refused(build_words("nowhere.txt"), 1, "nowhere.txt");
  expect_refused(build_words("latin.txt"), 1, "UTF-8 text, got byte 0xE9 in line 2");
  expect_refused(build_words("blank.txt"), 1, "expected some text");
  expect_refused(build_words("empty"), 1, "a folder with text files");
  expect_refused(build_words("small.txt", {"--segment", "0"}), 2, "--segment");
  expect_refused(build_words("small.txt", {"--segment", "2000000000"}), 2, "536870639");
  expect_refused({"datastore"}, 2, "build or inspect");
  expect_refused({"datastore", "build"}, 2, "--model");
  expect_refused({"datastore", "inspect"}, 2, "--path");
  expect_refused({"datastore", "inspect", "--path", (root() / "small.txt").string()}, 1,
                 "expected a datastore");
  Words into_folder = build_words("small.txt");
  into_folder.back() = (root() / "empty").string();
  expect_refused(into_folder, 1, "a place for a file");
}

TEST_F(DatastoreCommand, AStoreOfAnotherVocabularyIsRefused) {
  TinyShape shape;
  shape.vocabulary_size = 400;
  write_hugging_face(make_tiny_model(shape), root() / "other");
  EXPECT_EQ(run_program(build_words("small.txt")).status, 0);
  const ProgramRun run =
      run_program({"generate", "--model", (root() / "other").string(), "--prompt", "the cat",
                   "--drafter", "retrieval:path=" + store().string()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("expected a datastore of the target's vocabulary (400"),
                             HasSubstr("got one of another (384")));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
}

TEST_F(DatastoreCommand, ATruncatedStoreIsRefused) {
  EXPECT_EQ(run_program(build_words("small.txt")).status, 0);
  const std::string whole = read_file(store());
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{40}, whole.size() / 2, whole.size() - 1}) {
    write("short", whole.substr(0, size));
    const ProgramRun run =
        run_program({"generate", "--model", (root() / "target").string(), "--prompt", "the cat",
                     "--drafter", "retrieval:path=" + (root() / "short").string()});
    EXPECT_EQ(run.status, 1) << size;
    EXPECT_THAT(run.err, HasSubstr("[read datastore]")) << size;
  }
  std::string wrong = whole;
  wrong[80] ^= 1;
  write("wrong", wrong);
  EXPECT_EQ(run_program({"datastore", "inspect", "--path", (root() / "wrong").string()}).status, 0);
  EXPECT_THAT(
      run_program({"datastore", "inspect", "--check", "--path", (root() / "wrong").string()}).err,
      HasSubstr("segment 0: expected bytes with their checksum"));
}

int DatastoreCommand::kill_build(const std::string& text, int number) const {
  const Words words = build_words(text, {"--segment", "5000"});
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int descriptor : {0, 1, 2}) ::dup2(nothing, descriptor);
    std::vector<char*> arguments = {const_cast<char*>("outrider")};
    arguments.reserve(words.size() + 2);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(OUTRIDER_PROGRAM, arguments.data());
    ::_exit(127);
  }
  int status = 0;
  const fs::path partial = store().string() + ".outrider-partial";
  for (;;) {
    std::error_code absent;
    const auto size = fs::file_size(partial, absent);
    if (!absent && size > 50000) break;
    if (::waitpid(child, &status, WNOHANG) == child) return status;  // ended before it was killed
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, number);
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(DatastoreCommand, WritesOverNothingThatItReads) {
  const std::string before = read_file(root() / "small.txt");
  Words words = build_words("small.txt");
  words.back() = (root() / "small.txt").string();
  expect_refused(words, 1, "another file than those that are read");
  EXPECT_EQ(read_file(root() / "small.txt"), before);
  // In a folder of texts, which the next build would read.
  write("texts/one.txt", before);
  write("texts/two.outrider-partial", "\xB4");  // As a killed writer leaves it: no text.
  words = build_words("texts");
  words.back() = (root() / "texts" / "store").string();
  EXPECT_EQ(run_program(words).status, 0);
  expect_refused(words, 1, "another file than those that are read");
}

TEST_F(DatastoreCommand, EndedInMidBuildItLeavesTheOldStoreOrNone) {
  // Some seconds of work; the build is killed at its first segments.
  std::string text;
  for (int i = 0; text.size() < 8000000; ++i) text += "story " + std::to_string(i * 7919) + "\n";
  write("large.txt", text);
  for (const bool had_one : {false, true}) {
    std::string before;
    if (had_one) {
      EXPECT_EQ(run_program(build_words("small.txt")).status, 0);
      before = read_file(store());
    }
    int status = kill_build("large.txt", SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(fs::exists(store()), had_one);
    EXPECT_EQ(read_file(store()), before);

    // Ctrl-C removes the partial file, too.
    fs::remove(store().string() + ".outrider-partial");
    status = kill_build("large.txt", SIGINT);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
    EXPECT_EQ(fs::exists(store()), had_one);
    EXPECT_EQ(read_file(store()), before);
    EXPECT_FALSE(fs::exists(store().string() + ".outrider-partial"));

    // SIGTERM does so, too, and is the reported cause of the end.
    status = kill_build("large.txt", SIGTERM);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    EXPECT_EQ(fs::exists(store()), had_one);
    EXPECT_EQ(read_file(store()), before);
    EXPECT_FALSE(fs::exists(store().string() + ".outrider-partial"));
  }
  // The remains of a killed build do not disturb the next.
  kill_build("large.txt", SIGKILL);
  EXPECT_EQ(run_program(build_words("small.txt")).status, 0);
  EXPECT_FALSE(fs::exists(store().string() + ".outrider-partial"));
}

}  // namespace
}  // namespace outrider::test
