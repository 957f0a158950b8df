// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "model/ranks/in_process_ranks.h"
#include "model/ranks/rank_commands.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

constexpr double kTimeout_seconds = 1;

struct Two {
  explicit Two(double timeout_seconds = kTimeout_seconds) {
    auto ends = make_in_process_ranks(2);
    leader = std::make_shared<Communicator>(std::move(ends[0]), timeout_seconds);
    follower = std::make_shared<Communicator>(std::move(ends[1]), timeout_seconds);
  }
  std::shared_ptr<Communicator> leader;
  std::shared_ptr<Communicator> follower;
};

// Follows as a rank without a model does. Returns the number of commands; `problem`: the error that
// ended it.
int follow_without_model(Communicator& ranks, std::string& problem) {
  CommandReader reader;
  int n_answers = 0;
  try {
    while (true) {
      reader.receive(ranks);
      while (!reader.is_at_end()) {
        if (reader.command() != RankCommand::answer) return n_answers;
        ranks.confirm();
        ++n_answers;
      }
    }
  } catch (const Error& error) {
    problem = error.what();
  }
  return n_answers;
}

void end(Communicator& ranks) {
  CommandWriter writer;
  writer.put(RankCommand::end);
  writer.send(ranks);
}

TEST(Heartbeat, WhoIsIdleForLongerThanOthersWaitKeepsThem) {
  const Two two;
  std::string problem;
  int n_answers = 0;
  std::thread follows([&] { n_answers = follow_without_model(*two.follower, problem); });
  {
    const Heartbeat heartbeat(two.leader);
    std::this_thread::sleep_for(
        std::chrono::duration<double>(1.2 * Communicator::follower_seconds(kTimeout_seconds)));
  }
  end(*two.leader);
  follows.join();
  EXPECT_EQ(problem, "");
  EXPECT_GT(n_answers, 0);
  EXPECT_EQ(two.leader->failure(), "");
}

// The same without a heartbeat: the launcher may leave a rank running whose rank 0 is gone.
TEST(Heartbeat, WithoutItTheFirstRankIsLost) {
  const Two two(0.1);
  std::string problem;
  follow_without_model(*two.follower, problem);
  EXPECT_THAT(problem, HasSubstr("rank 0 of 2: nothing came from it for 1.15 s"));
  EXPECT_TRUE(two.follower->has_lost_leader());
}

TEST(Heartbeat, FindsWhoDoesNotAnswer) {
  const Two two(0.1);
  const Heartbeat heartbeat(two.leader);
  for (int i = 0; i < 1000 && two.leader->failure().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(two.leader->failure(), "rank 1 of 2: nothing came from it for 0.1 s");
}

// A pass longer than the period is not interrupted: the next message that others receive is the
// pass's.
TEST(Heartbeat, NobodyIsAskedDuringATurn) {
  const Two two(3);  // the period is a second: the turn begins within it
  Heartbeat heartbeat(two.leader);
  CommandReader reader;
  {
    const auto turn = heartbeat.take_turn();
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    end(*two.leader);
  }
  reader.receive(*two.follower);
  EXPECT_EQ(reader.command(), RankCommand::end);
}

}  // namespace
}  // namespace outrider
