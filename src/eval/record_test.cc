// SPDX-License-Identifier: Apache-2.0
#include "eval/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Record sample(int number) {
  Record record;
  record.number = number;
  record.place = "data, line " + std::to_string(number + 1);
  record.texts = {"ein \"Text\"\n", "zwei"};
  record.finishes = {"stop", "length"};
  record.references = {"ä"};
  record.counts = {{"bleu", {1, 0.1, 1e300}}};
  record.scores = {{"bleu", 12.5}};
  record.effort.emitted = 7;
  record.effort.rule_kl = std::numeric_limits<double>::infinity();
  record.effort.decode_seconds = 0.1;
  return record;
}

class RecordFileTest : public ::testing::Test {
 protected:
  std::string error_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& bytes) const { std::ofstream(path_) << bytes; }

  test::TemporaryDirectory directory_;
  fs::path path_ = directory_.path() / "records.jsonl";
  ordered_json run_ = {{"task", {{"name", "t"}}}, {"temperature", 0.5}};
};

TEST(RecordLine, HoldsAllOfARecord) {
  Record record = sample(3);
  record.slice = "s";
  const Record back = parse_record(to_line(record), "here");
  EXPECT_EQ(to_line(back), to_line(record));
  EXPECT_EQ(back.counts.at("bleu"), record.counts.at("bleu"));
  EXPECT_TRUE(std::isinf(back.effort.rule_kl));
  EXPECT_EQ(back.effort.emitted, 7);
  EXPECT_THROW(parse_record("{\"item\": 1}", "here"), Error);
  EXPECT_THROW(parse_record("", "here"), Error);
}

TEST_F(RecordFileTest, GoesOnWhereAnEarlierRunEnded) {
  {
    RecordFile file(path_, run_);
    EXPECT_TRUE(file.done().empty());
    file.append(sample(0));
    file.append(sample(2));
  }
  const std::string whole = text();
  RecordFile file(path_, run_);
  EXPECT_EQ(file.done().size(), 2U);
  EXPECT_TRUE(file.done().contains(2));
  EXPECT_EQ(text(), whole);
}

TEST_F(RecordFileTest, OfTwoRecordsOfOneItemTheLaterCounts) {
  {
    RecordFile file(path_, run_);
    file.append(sample(1));
    Record again = sample(1);
    again.effort.emitted = 8;
    file.append(again);
  }
  const RecordFile file(path_, run_);
  EXPECT_EQ(file.done().at(1).effort.emitted, 8);
}

// Paths and flags may contain any bytes.
TEST_F(RecordFileTest, ARunMayBeDescribedInBytesThatAreNoText) {
  run_["stop"] = "\xff";
  { RecordFile(path_, run_).append(sample(0)); }
  EXPECT_EQ(RecordFile(path_, run_).done().size(), 1U);
}

TEST_F(RecordFileTest, CutAnywhereLosesOneRecordAtMost) {
  {
    RecordFile file(path_, run_);
    for (int i = 0; i < 3; ++i) file.append(sample(i));
  }
  const std::string whole = text();
  std::vector<std::size_t> ends;  // after each line
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] == '\n') ends.push_back(at + 1);
  }
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    write(whole.substr(0, cut));
    std::size_t n_whole = 0;
    for (std::size_t line = 1; line < ends.size(); ++line) n_whole += ends[line] <= cut ? 1U : 0U;
    {
      RecordFile file(path_, run_);
      ASSERT_EQ(file.done().size(), n_whole) << cut;
      for (int i = static_cast<int>(n_whole); i < 3; ++i) file.append(sample(i));
    }
    ASSERT_EQ(text(), whole) << cut;
  }
}

TEST_F(RecordFileTest, RefusesRecordsOfAnotherRunAndNamesTheDifference) {
  { RecordFile(path_, run_).append(sample(0)); }
  const std::string whole = text();
  ordered_json other = run_;
  other["temperature"] = 1.5;
  EXPECT_THAT(error_of([&] { RecordFile(path_, other); }),
              AllOf(HasSubstr("run.temperature 1.5"), HasSubstr("got those of another (0.5)")));
  other = run_;
  other["task"]["name"] = "u";
  EXPECT_THAT(error_of([&] { RecordFile(path_, other); }), HasSubstr("run.task.name \"u\""));
  other = run_;
  other["new"] = 1;
  EXPECT_THAT(error_of([&] { RecordFile(path_, other); }), HasSubstr("run.new 1"));
  EXPECT_EQ(text(), whole);
}

TEST_F(RecordFileTest, LeavesFilesOfOthersAlone) {
  for (const char* bytes : {"no newline", "{\"a\": 1}\n{\"b\": 2}\n", "\n", "{}"}) {
    write(bytes);
    EXPECT_THAT(error_of([&] { RecordFile(path_, run_); }), HasSubstr("another file")) << bytes;
    EXPECT_EQ(text(), bytes);
  }
}

// Such files have no end, or none that arrives.
TEST_F(RecordFileTest, RefusesDevicesAndPipes) {
  EXPECT_THAT(error_of([&] { RecordFile("/dev/null", run_); }), HasSubstr("a regular file"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { RecordFile(path_, run_); }), HasSubstr("a regular file"));
}

TEST_F(RecordFileTest, NamesALineThatIsNoRecord) {
  { RecordFile(path_, run_).append(sample(0)); }
  write(text() + "{\"item\": true}\n");
  EXPECT_THAT(error_of([&] { RecordFile(path_, run_); }), HasSubstr("line 3: expected a record"));
}

TEST_F(RecordFileTest, HasOneWriter) {
  const RecordFile first(path_, run_);
  EXPECT_THAT(error_of([&] { RecordFile(path_, run_); }), HasSubstr("no other process"));
  EXPECT_THAT(error_of([&] { RecordFile("/nowhere/at/all", run_); }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace outrider::eval
