// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "model/ranks/delayed_transport.h"
#include "model/ranks/in_process_ranks.h"
#include "outrider/error.h"
#include "tests/support/models/thread_ranks.h"

namespace outrider {
namespace {

using test::run_ranks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rank r's part: r + 1 times as many bytes as the first's, with distinct values.
std::vector<std::byte> part_of_rank(int rank, std::size_t n) {
  std::vector<std::byte> bytes(n * static_cast<std::size_t>(rank + 1));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) * 31);
  }
  return bytes;
}

struct Parts {
  Parts(int n_ranks, std::size_t n) {
    for (int rank = 0; rank < n_ranks; ++rank) {
      const std::vector<std::byte> part = part_of_rank(rank, n);
      sizes.push_back(part.size());
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  std::vector<std::size_t> sizes;
  std::vector<std::byte> all;
};

// Parts of several lengths, whole and in pieces: pieces that divide a part, that do not, and of one
// byte.
TEST(Communicator, GathersInTheOrderOfRanksHoweverPartsAreCut) {
  for (const int n_ranks : {1, 2, 4}) {
    const Parts parts(n_ranks, 12);
    for (const std::size_t most : {1UL, 5UL, 12UL, 1000UL}) {
      run_ranks(n_ranks, {.max_bytes = most}, [&](Communicator& ranks) {
        const std::vector<std::byte> mine = part_of_rank(ranks.rank(), 12);
        std::vector<std::byte> all(parts.all.size());
        ranks.all_gather(mine, parts.sizes, all.data());
        EXPECT_EQ(all, parts.all) << most << " bytes a piece";
        std::vector<std::byte> led(ranks.leads() ? parts.all.size() : 0);
        ranks.gather(mine, parts.sizes, ranks.leads() ? led.data() : nullptr);
        EXPECT_TRUE(!ranks.leads() || led == parts.all) << most << " bytes a piece";
      });
    }
  }
}

TEST(Communicator, MyPartMayStandInItsPlace) {
  const Parts parts(3, 10);
  run_ranks(3, {.max_bytes = 4}, [&](Communicator& ranks) {
    std::vector<std::byte> all(parts.all.size());
    const std::vector<std::byte> mine = part_of_rank(ranks.rank(), 10);
    std::size_t at = 0;
    for (int rank = 0; rank < ranks.rank(); ++rank)
      at += parts.sizes[static_cast<std::size_t>(rank)];
    std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    ranks.all_gather({all.data() + at, mine.size()}, parts.sizes, all.data());
    EXPECT_EQ(all, parts.all);
  });
}

TEST(Communicator, TheFirstRanksBytesReachEveryRank) {
  run_ranks(3, {.max_bytes = 3}, [&](Communicator& ranks) {
    std::vector<std::byte> bytes(10);
    if (ranks.leads()) bytes = part_of_rank(0, 10);
    ranks.broadcast(bytes);
    EXPECT_EQ(bytes, part_of_rank(0, 10));
    ranks.barrier();
  });
}

TEST(Communicator, TextsOfEveryLengthAreExchanged) {
  run_ranks(3, {}, [&](Communicator& ranks) {
    const std::string mine(static_cast<std::size_t>(ranks.rank()) * 3, 'a');
    EXPECT_THAT(ranks.exchange_texts(mine, Communicator::Patience::pass),
                ElementsAre("", "aaa", "aaaaaa"));
  });
}

// A length of 2^44 bytes for a text: a damaged message.
TEST(Communicator, TheLengthOfATextThatIsNoneIsRefusedOnEveryRank) {
  run_ranks(2, {.timeout_seconds = 5}, [](Communicator& ranks) {
    const auto problem_of = [&](const auto& exchange) -> std::string {
      try {
        exchange();
      } catch (const Error& error) {
        return error.what();
      }
      return {};
    };
    const std::string problem = problem_of([&] {
      if (ranks.leads()) return (void)ranks.exchange_texts("a", Communicator::Patience::pass);
      // The first message of exchange_texts().
      const std::uint64_t length = std::uint64_t{1} << 44;
      const std::vector<std::size_t> sizes(2, sizeof length);
      std::vector<std::byte> all(2 * sizeof length);
      ranks.all_gather(std::as_bytes(std::span(&length, 1)), sizes, all.data());
    });
    if (ranks.leads()) {
      EXPECT_THAT(problem, HasSubstr("rank 1 of 2: expected a text of at most 1048576 bytes, got "
                                     "one of 17592186044416"));
    }
  });
  // A true length that exceeds the limit.
  run_ranks(2, {.timeout_seconds = 5}, [](Communicator& ranks) {
    const std::string text(ranks.leads() ? 1 : Communicator::kMaxTextBytes + 1, 'a');
    EXPECT_THROW((void)ranks.exchange_texts(text, Communicator::Patience::pass), Error);
  });
}

// Its exchanges fail, and messages in transit arrive while the rank gives up.
class LateTransport final : public Transport {
 public:
  int rank() const override { return 0; }
  int n_ranks() const override { return 2; }
  std::size_t max_bytes() const override { return 1U << 20; }
  Status exchange(const Exchange& exchange, const WaitLimit& /*limit*/) noexcept override {
    late_ = exchange.received[1];
    return Status::silent;
  }
  int culprit() const override { return 1; }
  const char* reason() const override { return ""; }
  void give_up(int /*culprit*/, const char* /*why*/) noexcept override {
    for (std::size_t i = 0; i < late_.n_bytes; ++i) late_.at[i] = std::byte{1};
  }
  void finish(double /*max_seconds*/) noexcept override {}

 private:
  Exchange::Piece late_;
};

// `make asan` detects a write to freed buffers.
TEST(Communicator, TheRoomOfTextsStaysUntilTheRankHasGivenUp) {
  Communicator ranks(std::make_unique<LateTransport>(), 1);
  EXPECT_THROW((void)ranks.exchange_texts("a", Communicator::Patience::loading), LostRank);
  ranks.give_up("a rank is lost");
  EXPECT_EQ(ranks.failure(), "rank 1 of 2: nothing came from it for 3600 s");
}

// After a signal, a rank that never comes is not waited for: neither for an hour while models are
// loaded, nor for the time-out in a pass.
TEST(Communicator, WhoIsStoppedWaitsNoLonger) {
  for (const bool is_loading : {true, false}) {
    const std::atomic<bool> stop{true};
    std::promise<void> has_ended;
    std::vector<std::string> problems(2);
    run_ranks(2, {.timeout_seconds = 60}, [&](Communicator& ranks) {
      // A rank that is not stopped must end, too: it gets what it waits for.
      if (!ranks.leads()) {
        has_ended.get_future().wait_for(std::chrono::seconds(30));
      } else {
        ranks.stop_waiting_when(&stop);
      }
      try {
        if (is_loading) {
          (void)ranks.exchange_texts("", Communicator::Patience::loading);
        } else {
          ranks.barrier();
        }
      } catch (const LostRank& error) {
        problems[static_cast<std::size_t>(ranks.rank())] = error.what();
        ranks.give_up(error.what());
      }
      if (ranks.leads()) has_ended.set_value();
    });
    const std::string words =
        std::string("rank 0 of 2: gave up: interrupted while it waited for rank 1") +
        (is_loading ? " to load the model" : "");
    EXPECT_THAT(problems[0], HasSubstr(words));
  }
}

// The others learn which rank was stopped.
TEST(Communicator, WhoWasStoppedWhileLoadingIsNamedOnEveryRank) {
  std::promise<void> has_given_up;
  run_ranks(2, {}, [&](Communicator& ranks) {
    const std::atomic<bool> stop{true};
    if (ranks.leads()) {
      has_given_up.get_future().wait_for(std::chrono::seconds(30));
    } else {
      ranks.stop_waiting_when(&stop);
    }
    try {
      (void)ranks.exchange_texts("", Communicator::Patience::loading);
      ADD_FAILURE() << "one of them was stopped";
    } catch (const LostRank& error) {
      ranks.give_up(error.what());
    }
    if (!ranks.leads()) has_given_up.set_value();
    EXPECT_EQ(ranks.failure(),
              "rank 1 of 2: gave up: interrupted while it waited for rank 0 to load the model");
  });
}

// A signal that reaches all ranks ends no text: rank 0 decides how a pass continues.
TEST(Communicator, AStoppedRankBehindTheFirstFollowsItInAPass) {
  run_ranks(2, {}, [](Communicator& ranks) {
    const std::atomic<bool> stop{true};
    ranks.stop_waiting_when(&stop);
    if (ranks.leads()) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(Communicator::kStopped_seconds + 0.5));
    }
    EXPECT_NO_THROW(ranks.barrier());
  });
}

TEST(Communicator, ARankThatIsSilentForTooLongIsNamed) {
  run_ranks(2, {.timeout_seconds = 0.05}, [](Communicator& ranks) {
    if (!ranks.leads()) return;             // this rank never arrives
    for (int time = 0; time < 2; ++time) {  // the failure persists
      try {
        ranks.barrier();
        FAIL() << "nobody else was there";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("rank 1 of 2: nothing came from it for 0.05 s"));
      }
    }
  });
}

// The others wait very long, and still get the message.
TEST(Communicator, WhoGivesUpIsHeardByWhoWaits) {
  run_ranks(3, {}, [](Communicator& ranks) {
    if (ranks.rank() == 2) return ranks.give_up("its disk is full");
    try {
      (void)ranks.exchange_texts("", Communicator::Patience::loading);
      FAIL() << "one of them gave up";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 2 of 3: gave up: its disk is full"));
    }
  });
}

// Ranks 0 and 1 miss rank 2 at the same time. Rank 1 must not blame rank 0, which waits as well,
// but repeat rank 0's finding.
TEST(Communicator, TheVerdictOfTheFirstRankIsEverybodys) {
  const auto problem_of = [](Communicator& ranks) -> std::string {
    try {
      ranks.barrier();
    } catch (const LostRank& error) {
      ranks.give_up(error.what());  // as the code that runs passes does
      return error.what();
    }
    return {};
  };
  std::vector<std::string> problems(3);
  run_ranks(3, {.timeout_seconds = 0.1}, [&](Communicator& ranks) {
    if (ranks.rank() == 2) return;
    problems[static_cast<std::size_t>(ranks.rank())] = problem_of(ranks);
  });
  EXPECT_THAT(problems[0], HasSubstr("rank 2 of 3: nothing came from it for 0.1 s"));
  EXPECT_EQ(problems[1], problems[0]);
}

// A rank that arrives too late is still lost, and giving up afterwards does not hide that.
TEST(Communicator, TheFirstFailureStays) {
  std::promise<void> is_late, has_come;
  run_ranks(2, {.timeout_seconds = 0.05}, [&](Communicator& ranks) {
    if (!ranks.leads()) {
      is_late.get_future().wait();
      ranks.barrier();  // the first rank's message has arrived
      has_come.set_value();
      return;
    }
    EXPECT_THROW(ranks.barrier(), LostRank);
    is_late.set_value();
    has_come.get_future().wait();
    EXPECT_THROW(ranks.barrier(), LostRank);
    ranks.give_up("a rank is lost");
    EXPECT_EQ(ranks.failure(), "rank 1 of 2: nothing came from it for 0.05 s");
  });
}

// A follower reports the loss of rank 0 itself, unless rank 0 gave up and said why.
TEST(Communicator, ALostLeaderIsToldFromOneThatGivesUp) {
  for (const bool says_why : {false, true}) {
    run_ranks(2, {.timeout_seconds = says_why ? 60 : 0.05}, [&](Communicator& ranks) {
      if (ranks.leads()) {
        if (says_why) ranks.give_up("its disk is full");
        return;
      }
      EXPECT_FALSE(ranks.has_lost_leader());
      EXPECT_THROW(ranks.barrier(), LostRank);
      EXPECT_EQ(ranks.has_lost_leader(), !says_why);
    });
  }
  run_ranks(2, {.timeout_seconds = 0.05}, [](Communicator& ranks) {
    if (!ranks.leads()) return;
    EXPECT_THROW(ranks.barrier(), LostRank);
    EXPECT_FALSE(ranks.has_lost_leader());
  });
}

TEST(Communicator, PartsOfAnotherLengthThanAgreedAreRefused) {
  run_ranks(2, {}, [](Communicator& ranks) {
    std::vector<std::byte> all(8);
    const std::vector<std::size_t> sizes =
        ranks.leads() ? std::vector<std::size_t>{4, 4} : std::vector<std::size_t>{4, 3};
    const std::vector<std::byte> mine(sizes[static_cast<std::size_t>(ranks.rank())]);
    if (!ranks.leads()) return ranks.all_gather(mine, sizes, all.data());
    EXPECT_THROW(ranks.all_gather(mine, sizes, all.data()), Error);
  });
}

// The one requirement on a simulated link. Only a lower bound is tested: how much longer an
// exchange takes depends on the machine. Latency and bandwidth are tested separately, so that
// neither hides the other.
TEST(DelayedTransport, WhatIsReceivedComesNoSoonerThanTheLinkAllows) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLink_seconds = 0.2;
  const auto seconds_with = [](const test::ThreadRanks& options) {
    double seconds = 0;
    run_ranks(2, options, [&](Communicator& ranks) {
      const std::vector<std::byte> mine(3000);
      std::vector<std::byte> all(6000);
      const std::vector<std::size_t> sizes = {3000, 3000};
      const Clock::time_point begin = Clock::now();
      ranks.all_gather(mine, sizes, all.data());
      if (ranks.leads()) seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    });
    return seconds;
  };
  EXPECT_GE(seconds_with({.latency_seconds = kLink_seconds}), kLink_seconds);
  EXPECT_GE(seconds_with({.bytes_per_second = 3000 / kLink_seconds}), kLink_seconds);
}

}  // namespace
}  // namespace outrider
