// SPDX-License-Identifier: Apache-2.0
// The public reader of replies: ends, counts and text that was not pushed. reply_parser_test.cc
// tests the parsing.
#include "outrider/reply_reader.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "reply/reply_format.h"
#include "reply/reply_parser.h"

namespace outrider {
namespace {

using Kind = ReplyEvent::Kind;

constexpr const char* kWhole = R"(<tool_call>{"name": "now", "arguments": {}}</tool_call>)";
constexpr const char* kBroken = R"(<tool_call>{"name": "now", "arguments": {"a": )";

// A reader of calls in Hermes' format, and its events.
class ReplyReaders : public ::testing::Test {
 protected:
  ReplyReader reader() {
    ReplyParserOptions options;
    return {*reply_format_named("hermes"), options, [this](const ReplyEvent& event) {
              ++n_events_;
              if (event.kind == Kind::content) content_ += event.text;
              if (event.kind == Kind::call_end) ends_ += event.complete ? '+' : '-';
            }};
  }

  int n_events_ = 0;
  std::string content_;
  std::string ends_;
};

TEST_F(ReplyReaders, SayEachPieceWithItsPush) {
  ReplyReader one = reader();
  one.push("She said ");
  EXPECT_EQ(content_, "She said");  // the blank may belong to a marker
  one.push("no <tool");
  EXPECT_EQ(content_, "She said no");
  one.push("_cal");
  EXPECT_EQ(content_, "She said no");
  one.push("ls");
  EXPECT_EQ(content_, "She said no <tool_calls");
}

TEST_F(ReplyReaders, ReadWhatWasNotPushed) {
  const std::string text = "She said no";
  for (std::size_t n_pushed = 0; n_pushed <= text.size(); ++n_pushed) {
    content_.clear();
    ReplyReader one = reader();
    one.push(text.substr(0, n_pushed));
    one.finish(text);
    EXPECT_EQ(content_, text) << n_pushed;
  }
}

TEST_F(ReplyReaders, GiveWhatWasHeldBackAtTheEnd) {
  ReplyReader one = reader();
  one.push("a <tool");
  one.finish();
  EXPECT_EQ(content_, "a <tool");
  const int n_events = n_events_;
  one.finish("a <tool_call");
  EXPECT_EQ(n_events_, n_events);
  EXPECT_THROW(one.push("b"), UsageError);
}

TEST_F(ReplyReaders, CountWholeCalls) {
  ReplyReader one = reader();
  one.push(kWhole);
  EXPECT_EQ(one.n_calls(), 1);
  one.push(kBroken);
  EXPECT_EQ(ends_, "+");
  one.finish();
  EXPECT_EQ(ends_, "+-");
  EXPECT_EQ(one.n_calls(), 1);
  EXPECT_EQ(content_, kBroken);
}

TEST_F(ReplyReaders, MayBeMovedWithinAReply) {
  ReplyReader one = reader();
  one.push("a <tool_call>{\"name\": \"now\", ");
  ReplyReader other = std::move(one);
  other.push("\"arguments\": {}}</tool_call>");
  one = std::move(other);
  one.finish();
  EXPECT_EQ(content_, "a");
  EXPECT_EQ(ends_, "+");
}

}  // namespace
}  // namespace outrider
