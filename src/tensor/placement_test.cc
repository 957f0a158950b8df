#include "tensor/placement.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "tensor/team.h"

#if defined(__linux__)
#include <sched.h>

namespace outrider {
namespace {

int n_usable() {
  cpu_set_t usable;
  return sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 0;
}

// A team of all processors: its own threads are on one each, none of them the caller's, which
// may go on running anywhere.
TEST(Placement, GivesEachThreadOfAFullTeamAProcessor) {
  const int n = n_usable();
  if (n < 2 || placement(n).empty()) {
    GTEST_SKIP() << "SKIPPED: one processor, or the environment places threads";
  }
  EXPECT_EQ(static_cast<int>(placement(n).size()), n);
  std::vector<std::set<int>> seen(static_cast<std::size_t>(n));
  std::vector<int> n_allowed(static_cast<std::size_t>(n));
  for (int times = 0; times < 3; ++times) {
    run_team(n, [&](const Team& team) {
      if (team.size() != n) return;
      const auto index = static_cast<std::size_t>(team.index());
      if (team.index() > 0) seen[index].insert(sched_getcpu());
      n_allowed[index] = n_usable();
    });
  }
  std::set<int> all{placement(n)[0]};
  for (std::size_t index = 1; index < seen.size(); ++index) {
    EXPECT_EQ(n_allowed[index], 1);
    EXPECT_EQ(seen[index].size(), 1u);
    all.insert(seen[index].begin(), seen[index].end());
  }
  EXPECT_EQ(static_cast<int>(all.size()), n);
  EXPECT_EQ(n_allowed[0], n);
  EXPECT_EQ(n_usable(), n);
}

// A caller on the wrong processor is moved, but may leave again.
TEST(Placement, MovesTheCallerAndLetsItGo) {
  const int n = n_usable();
  if (n < 2 || placement(n).empty()) {
    GTEST_SKIP() << "SKIPPED: one processor, or the environment places threads";
  }
  std::thread([n] {
    for (const int processor : {placement(n)[0], placement(n)[1]}) {
      settle({processor, -1}, 0);
      // The system may move it between the two calls, but hardly every time.
      bool there = false;
      for (int times = 0; times < 1000 && !there; ++times) {
        there = sched_getcpu() == processor;
        if (!there) settle({processor, -1}, 0);
      }
      EXPECT_TRUE(there);
      EXPECT_EQ(n_usable(), n);
    }
  }).join();
}

TEST(Placement, LeavesOtherTeamsToTheSystem) {
  const int n = n_usable();
  EXPECT_TRUE(placement(1).empty());
  EXPECT_TRUE(placement(n + 1).empty());
  if (n > 2) {
    EXPECT_TRUE(placement(n - 1).empty());
  }
  std::thread([n] {
    settle({}, 1);
    EXPECT_EQ(n_usable(), n);
  }).join();
}

}  // namespace
}  // namespace outrider

#endif
