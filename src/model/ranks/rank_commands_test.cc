// SPDX-License-Identifier: Apache-2.0
// Commands arrive at the other ranks unchanged, whatever their length.
#include "model/ranks/rank_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/models/thread_ranks.h"

namespace outrider {
namespace {

using test::run_ranks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lengths that fit into the first message (255 words) and that take a second one, around that
// limit, one after the other.
TEST(RankCommands, MessagesOfEveryLengthArriveWhole) {
  run_ranks(2, {.timeout_seconds = 5}, [](Communicator& ranks) {
    CommandWriter writer;
    CommandReader reader;
    for (const int n_words : {3, 254, 255, 256, 257, 511, 512, 700, 4}) {
      std::vector<int> values(static_cast<std::size_t>(n_words - 2));
      std::iota(values.begin(), values.end(), n_words);
      if (ranks.leads()) {
        writer.put_int(n_words);
        writer.put_ints(values);
        writer.send(ranks);
      } else {
        reader.receive(ranks);
        ASSERT_EQ(reader.get_int(), n_words);
        const std::span<const int> got = reader.get_ints();
        EXPECT_EQ(std::vector<int>(got.begin(), got.end()), values);
        EXPECT_TRUE(reader.is_at_end()) << n_words << " words";
      }
    }
    ranks.barrier();
  });
}

// A number that a server reaches after years of opening texts: it does not fit an int.
constexpr SequenceNumber kLaterNumber = (SequenceNumber{1} << 40) + 5;

TEST(RankCommands, NumbersOfSequencesDoNotWrap) {
  run_ranks(2, {}, [](Communicator& ranks) {
    const std::array<SequenceNumber, 4> numbers = {0, 0x7FFF'FFFF, 0x8000'0001, kLaterNumber};
    if (ranks.leads()) {
      CommandWriter writer;
      for (const SequenceNumber number : numbers) writer.put_number(number);
      writer.send(ranks);
      return;
    }
    CommandReader reader;
    reader.receive(ranks);
    for (const SequenceNumber number : numbers) EXPECT_EQ(reader.get_number(), number);
    EXPECT_TRUE(reader.is_at_end());
  });
}

TEST(RankCommands, APassArrivesWithAllThatMayChangeABit) {
  run_ranks(2, {}, [](Communicator& ranks) {
    const std::array<TokenId, 3> tokens = {7, 8, 9};
    const std::array parents = {-1, 0, 0};
    const std::array rows = {1, 3};
    const std::array skipped = {2};
    if (ranks.leads()) {
      const std::array<TokenBlock, 2> blocks = {
          TokenBlock{nullptr, tokens, parents},
          TokenBlock{nullptr, std::span(tokens).first(1), {}}};
      CommandWriter writer;
      writer.put_pass(
          blocks, std::array<SequenceNumber, 2>{4, kLaterNumber},
          {.logits = {.kind = RowSet::Kind::listed, .rows = rows}, .skip_layers = skipped});
      writer.send(ranks);
      return;
    }
    CommandReader reader;
    reader.receive(ranks);
    EXPECT_EQ(reader.command(), RankCommand::pass);
    const CommandReader::Pass& pass = reader.get_pass();
    EXPECT_THAT(pass.numbers, ElementsAre(4, kLaterNumber));
    ASSERT_EQ(pass.blocks.size(), 2U);
    EXPECT_THAT(pass.blocks[0].tokens, ElementsAre(7, 8, 9));
    EXPECT_THAT(pass.blocks[0].parents, ElementsAre(-1, 0, 0));
    EXPECT_THAT(pass.blocks[1].tokens, ElementsAre(7));
    EXPECT_TRUE(pass.blocks[1].parents.empty());
    EXPECT_EQ(pass.request.logits.kind, RowSet::Kind::listed);
    EXPECT_THAT(pass.request.logits.rows, ElementsAre(1, 3));
    EXPECT_THAT(pass.request.skip_layers, ElementsAre(2));
    EXPECT_TRUE(reader.is_at_end());
  });
}

TEST(RankCommands, APartOfACommandIsRefused) {
  run_ranks(2, {}, [](Communicator& ranks) {
    if (ranks.leads()) {
      CommandWriter writer;
      writer.put_int(5);  // announces five values but sends one
      writer.put_int(1);
      writer.send(ranks);
      return;
    }
    CommandReader reader;
    reader.receive(ranks);
    try {
      (void)reader.get_ints();
      FAIL() << "there are fewer";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("a part of one"));
    }
  });
}

// Lengths from rank 0 that are impossible: negative, or more words than a message may have. No
// memory is allocated for either.
TEST(RankCommands, ALengthThatIsNoneIsRefused) {
  for (const std::int32_t length : {-1, static_cast<std::int32_t>(kMaxCommandWords) + 1,
                                    std::numeric_limits<std::int32_t>::max()}) {
    run_ranks(2, {.timeout_seconds = 5}, [&](Communicator& ranks) {
      if (ranks.leads()) {
        std::vector<std::int32_t> frame(256, 0);
        frame.front() = length;
        return ranks.broadcast(std::as_writable_bytes(std::span(frame)));
      }
      CommandReader reader;
      try {
        reader.receive(ranks);
        FAIL() << length << " words";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("expected a message of at most 16777216 words, got one "
                                            "of " +
                                            std::to_string(length)));
      }
    });
  }
}

// It is refused before anything is sent or added: words added before it are still sent.
TEST(RankCommands, AMessageThatIsTooLongIsNotBegun) {
  run_ranks(2, {.timeout_seconds = 5}, [](Communicator& ranks) {
    if (ranks.leads()) {
      CommandWriter writer;
      writer.put_int(7);
      EXPECT_THROW(writer.make_room(kMaxCommandWords), Error);
      const std::vector<float> features(kMaxCommandWords - 2);
      EXPECT_THROW(writer.put_project(features), Error);
      // Words that may still come count, too: nothing refuses them then.
      writer.keep_room(3);
      EXPECT_THROW(writer.make_room(kMaxCommandWords - 3), Error);
      writer.drop_room(3);
      writer.put_int(8);
      writer.send(ranks);
      return;
    }
    CommandReader reader;
    reader.receive(ranks);
    EXPECT_EQ(reader.get_int(), 7);
    EXPECT_EQ(reader.get_int(), 8);
    EXPECT_TRUE(reader.is_at_end());
  });
}

}  // namespace
}  // namespace outrider
