// SPDX-License-Identifier: Apache-2.0
#include "base/memory/machine_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

TEST(MachineMemory, IsTheLimitOfTheGroupWhereThatIsLess) {
  const test::TemporaryDirectory directory;
  const std::uint64_t all = machine_memory(directory.path());
  EXPECT_GT(all, std::uint64_t{1} << 24);
  const auto with_limit = [&](const char* limit) {
    std::ofstream(directory.path() / "memory.max") << limit << "\n";
    return machine_memory(directory.path());
  };
  EXPECT_EQ(with_limit("16777216"), 16777216U);
  EXPECT_EQ(with_limit("max"), all);
  EXPECT_EQ(with_limit("999999999999999"), all);
  // As version 1 has it.
  std::filesystem::create_directory(directory.path() / "memory");
  std::ofstream(directory.path() / "memory" / "memory.limit_in_bytes") << "33554432\n";
  EXPECT_EQ(machine_memory(directory.path()), 33554432U);
}

}  // namespace
}  // namespace outrider
