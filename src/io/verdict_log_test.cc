// SPDX-License-Identifier: Apache-2.0
// Verdict logs: written texts are read again, whatever happens in between.
#include "io/verdict_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRoom = 1 << 20;

VerdictLogFormat tiny_format() {
  return {.n_vocabulary = 100,
          .n_kept = 3,
          .vocabulary = {.fingerprint = 0x123456789abcdef0ULL, .size = 99}};
}

// A text identified by its number.
LoggedText text_of(int number, int n_prompt = 2, int n_generated = 4) {
  LoggedText text;
  text.n_prompt = n_prompt;
  for (int i = 0; i < n_prompt + n_generated; ++i) text.tokens.push_back((number * 7 + i) % 100);
  for (int i = 0; i < n_generated; ++i) {
    for (int kept = 0; kept < 3; ++kept) {
      text.kept_ids.push_back((number + 10 * i + kept) % 100);
      text.kept_logprobs.push_back(-0.5F * static_cast<float>(kept + 1));
    }
    text.rest_logprobs.push_back(-static_cast<float>(number + 1));
  }
  text.kept_logprobs.back() = -std::numeric_limits<float>::infinity();
  return text;
}

void expect_same(const LoggedText& left, const LoggedText& right) {
  EXPECT_EQ(left.tokens, right.tokens);
  EXPECT_EQ(left.n_prompt, right.n_prompt);
  EXPECT_EQ(left.kept_ids, right.kept_ids);
  EXPECT_EQ(left.kept_logprobs, right.kept_logprobs);
  EXPECT_EQ(left.rest_logprobs, right.rest_logprobs);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::int64_t bytes_in(const fs::path& directory) {
  std::int64_t total = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    total += static_cast<std::int64_t>(entry.file_size());
  }
  return total;
}

class VerdictLogFile : public ::testing::Test {
 protected:
  fs::path log() const { return root_.path() / "log"; }
  fs::path first_segment() const { return log() / "00000001.verdicts"; }
  VerdictLogWriter writer(std::int64_t max_bytes = kRoom) const {
    return {log(), tiny_format(), max_bytes};
  }
  test::TemporaryDirectory root_;
};

TEST_F(VerdictLogFile, WhatIsWrittenIsRead) {
  {
    VerdictLogWriter writer(log(), tiny_format(), kRoom);
    for (int number = 0; number < 3; ++number) writer.append(text_of(number, 1 + number));
  }
  {
    VerdictLogWriter again(log(), tiny_format(), kRoom);  // continues after the other's end
    again.append(text_of(3));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(log()), fs::directory_iterator()), 1);
  VerdictLogReader reader(log());
  const auto texts = reader.read_new();
  ASSERT_EQ(texts.size(), 4U);
  for (int number = 0; number < 3; ++number) {
    expect_same(texts[static_cast<std::size_t>(number)], text_of(number, 1 + number));
  }
  expect_same(texts[3], text_of(3));
  EXPECT_EQ(reader.format(), tiny_format());
  EXPECT_TRUE(reader.read_new().empty());
  EXPECT_EQ(fs::status(log()).permissions() & fs::perms::others_all, fs::perms::none);
}

TEST_F(VerdictLogFile, AReaderSeesTextsAsTheyCome) {
  fs::create_directory(log());
  VerdictLogReader reader(log());
  EXPECT_TRUE(reader.read_new().empty());
  EXPECT_FALSE(reader.format().has_value());
  VerdictLogWriter writer(log(), tiny_format(), kRoom);
  for (int number = 0; number < 5; ++number) {
    writer.append(text_of(number));
    const auto texts = reader.read_new();
    ASSERT_EQ(texts.size(), 1U);
    expect_same(texts[0], text_of(number));
  }
}

// Cut anywhere, the log holds the complete texts, and the next writer continues after them.
TEST_F(VerdictLogFile, ATornTailLosesItsOwnRecordAlone) {
  writer().append(text_of(0));
  const auto one = fs::file_size(first_segment());
  writer().append(text_of(1));
  const std::string whole = bytes_of(first_segment());
  for (std::size_t n_bytes = one; n_bytes < whole.size(); ++n_bytes) {
    std::ofstream(first_segment(), std::ios::binary) << whole.substr(0, n_bytes);
    VerdictLogReader reader(log());
    ASSERT_EQ(reader.read_new().size(), 1U) << n_bytes;
    writer().append(text_of(2));
    const auto more = reader.read_new();
    ASSERT_EQ(more.size(), 1U) << n_bytes;
    expect_same(more[0], text_of(2));
    EXPECT_EQ(VerdictLogReader(log()).read_new().size(), 2U);
  }
}

TEST_F(VerdictLogFile, ADamagedByteIsNoText) {
  writer().append(text_of(0));
  const auto one = fs::file_size(first_segment());
  writer().append(text_of(1));
  const std::string whole = bytes_of(first_segment());
  for (std::size_t at = one; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(first_segment(), std::ios::binary) << damaged;
    EXPECT_EQ(VerdictLogReader(log()).read_new().size(), 1U) << at;
    // The record is complete, so no writer treats it as torn.
    writer().append(text_of(2));
    EXPECT_TRUE(bytes_of(first_segment()).starts_with(damaged)) << at;
    fs::remove(log() / "00000002.verdicts");
  }
}

// One byte of one of three records is changed: unless it belongs to a length, the other two are
// read. The next writer keeps everything in place.
TEST_F(VerdictLogFile, ADamagedByteLosesItsOwnRecordAlone) {
  writer().append(text_of(0));
  const auto end_of_first = fs::file_size(first_segment());
  for (int number = 1; number < 3; ++number) writer().append(text_of(number));
  const std::string whole = bytes_of(first_segment());
  constexpr auto kBegin = static_cast<std::size_t>(kVerdictSegmentHeaderBytes);
  for (std::size_t at = kBegin; at < end_of_first; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(first_segment(), std::ios::binary) << damaged;
    const bool is_length = at < kBegin + sizeof(std::uint64_t);
    const std::size_t n_others = is_length ? 0 : 2;
    VerdictLogReader reader(log());
    ASSERT_EQ(reader.read_new().size(), n_others) << at;
    writer().append(text_of(3));
    EXPECT_TRUE(bytes_of(first_segment()).starts_with(damaged)) << at;
    const auto more = reader.read_new();
    ASSERT_EQ(more.size(), 1U) << at;
    expect_same(more[0], text_of(3));
    EXPECT_EQ(VerdictLogReader(log()).read_new().size(), n_others + 1) << at;
    fs::remove(log() / "00000002.verdicts");
  }
}

// A torn record at the end of a segment that is not the last: the following segments are read.
TEST_F(VerdictLogFile, ATornSegmentDoesNotHideTheNext) {
  writer().append(text_of(0));
  fs::resize_file(first_segment(), fs::file_size(first_segment()) - 1);
  const fs::path other = root_.path() / "other";
  VerdictLogWriter(other, tiny_format(), kRoom).append(text_of(1));
  fs::copy_file(other / "00000001.verdicts", log() / "00000002.verdicts");
  const auto texts = VerdictLogReader(log()).read_new();
  ASSERT_EQ(texts.size(), 1U);
  expect_same(texts[0], text_of(1));
}

TEST_F(VerdictLogFile, StaysWithinItsBoundAndKeepsTheNewest) {
  const std::int64_t each = record_bytes(tiny_format(), 6, 4);
  const std::int64_t bound = 8 * (kVerdictSegmentHeaderBytes + 3 * each);
  VerdictLogReader* follower = nullptr;
  std::optional<VerdictLogReader> reader;
  constexpr int kTexts = 200;
  int n_followed = 0;
  for (int number = 0; number < kTexts; ++number) {
    {
      // One writer per text: the limit applies to the log, not to a writer.
      VerdictLogWriter writer(log(), tiny_format(), bound);
      writer.append(text_of(number));
    }
    EXPECT_LE(bytes_in(log()), bound);
    if (!reader) follower = &reader.emplace(log());
    n_followed += static_cast<int>(follower->read_new().size());
  }
  EXPECT_EQ(n_followed, kTexts);
  EXPECT_GT(follower->oldest_segment(), 50);
  const auto texts = VerdictLogReader(log()).read_new();
  // Eight segments of three texts; the oldest was removed as a whole.
  EXPECT_GE(texts.size(), 21U);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    expect_same(texts[i], text_of(kTexts - static_cast<int>(texts.size() - i)));
  }
  // A lower limit takes effect with the next text.
  VerdictLogWriter(log(), tiny_format(), bound / 2).append(text_of(kTexts));
  EXPECT_LE(bytes_in(log()), bound / 2);
}

TEST_F(VerdictLogFile, ATextTooLongKeepsItsBeginning) {
  const std::int64_t bound = 8 * (kVerdictSegmentHeaderBytes + record_bytes(tiny_format(), 6, 4));
  VerdictLogWriter writer(log(), tiny_format(), bound);
  EXPECT_EQ(writer.max_generated(2), 4);
  EXPECT_EQ(writer.max_generated(1000), 0);
  writer.append(text_of(0, 2, 9));
  writer.append(text_of(1, 1000, 1));
  const auto texts = VerdictLogReader(log()).read_new();
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0].n_generated(), 4);
  EXPECT_EQ(texts[0].tokens.size(), 6U);
  EXPECT_EQ(texts[0].kept_ids.size(), 12U);
  EXPECT_LE(bytes_in(log()), bound);
}

TEST_F(VerdictLogFile, OneWriterAtATime) {
  {
    VerdictLogWriter first(log(), tiny_format(), kRoom);
    EXPECT_NE(message_of([&] { writer(); }).find("in use"), std::string::npos);
    first.append(text_of(0));
  }
  writer().append(text_of(1));
  EXPECT_EQ(VerdictLogReader(log()).read_new().size(), 2U);
}

TEST_F(VerdictLogFile, RefusesALogOfAnotherKind) {
  writer().append(text_of(0));
  VerdictLogFormat other = tiny_format();
  other.vocabulary.fingerprint ^= 1;
  EXPECT_NE(message_of([&] { VerdictLogWriter(log(), other, kRoom); }).find("vocabulary"),
            std::string::npos);
  other = tiny_format();
  other.n_kept = 4;
  EXPECT_NE(message_of([&] { VerdictLogWriter(log(), other, kRoom); }).find("expected 3 tokens"),
            std::string::npos);
  const fs::path mixed = log() / "00000002.verdicts";
  VerdictLogWriter(root_.path() / "other", other, kRoom).append(text_of(0));
  fs::copy_file(root_.path() / "other" / "00000001.verdicts", mixed);
  EXPECT_NE(message_of([&] { VerdictLogReader(log()).read_new(); }).find("another"),
            std::string::npos);
  for (const std::string& bytes : {std::string("nothing"), std::string(100, '\0'), std::string()}) {
    std::ofstream(mixed, std::ios::binary) << bytes;
    EXPECT_NE(message_of([&] { VerdictLogReader(log()).read_new(); }).find("00000002"),
              std::string::npos);
  }
  EXPECT_NE(message_of([&] { VerdictLogReader(root_.path() / "nowhere"); }).find("none"),
            std::string::npos);
  EXPECT_NE(message_of([&] { VerdictLogReader reader(mixed); }).find("a file"), std::string::npos);
  EXPECT_NE(message_of([&] { VerdictLogWriter(mixed, other, kRoom); }).find("Not a directory"),
            std::string::npos);
}

// A file-size limit simulates a full disk: the log is unchanged.
TEST_F(VerdictLogFile, AFullDiskLeavesWhatWasThere) {
  VerdictLogWriter full(log(), tiny_format(), kRoom);
  full.append(text_of(0));
  const std::string before = bytes_of(first_segment());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit tight = old;
  tight.rlim_cur = before.size() + 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::string message = message_of([&] { full.append(text_of(1)); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(bytes_of(first_segment()), before);
  full.append(text_of(2));
  const auto texts = VerdictLogReader(log()).read_new();
  ASSERT_EQ(texts.size(), 2U);
  expect_same(texts[1], text_of(2));
}

}  // namespace
}  // namespace outrider
