// SPDX-License-Identifier: Apache-2.0
// outrider devices, as a user runs it: with drivers, without, and with a name that no device has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

nlohmann::json listed() {
  const ProgramRun run = run_program({"devices", "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(DevicesCommand, ListsDevicesOrSaysWhyThereAreNone) {
  const nlohmann::json list = listed();
  ASSERT_TRUE(list.at("devices").is_array());
  const std::string table = run_program({"devices"}).out;
  for (const std::string api : {"vulkan", "cuda"}) {
    const bool has_device =
        std::any_of(list.at("devices").begin(), list.at("devices").end(), [&](const auto& device) {
          return device.at("name").template get<std::string>().starts_with(api + ":");
        });
    EXPECT_NE(list.at("missing").contains(api), has_device) << api;
    if (has_device) continue;
    EXPECT_THAT(list.at("missing").at(api).get<std::string>(), Not(IsEmpty()));
    EXPECT_THAT(table, HasSubstr(api + ": no device: "));
  }
  for (const auto& device : list.at("devices")) {
    EXPECT_THAT(device.at("name").get<std::string>(),
                AnyOf(HasSubstr("vulkan:"), HasSubstr("cuda:")));
    EXPECT_EQ(device.at("software").get<bool>(), device.at("kind") == "software");
    EXPECT_TRUE(device.contains("arithmetic") != device.contains("refused"));
    EXPECT_THAT(table, HasSubstr(device.at("name").get<std::string>() + ": "));
  }
}

TEST(DevicesCommand, ChecksASoftwareDeviceWithoutADifference) {
  const nlohmann::json list = listed();
  for (const auto& device : list.at("devices")) {
    if (!device.at("software").get<bool>() || device.contains("refused")) continue;
    const ProgramRun run = run_program({"devices", device.at("name"), "--check"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("all bits are those of the processor"));
    EXPECT_THAT(run.out, HasSubstr("never chosen by itself"));
    EXPECT_THAT(run.out, Not(HasSubstr("DIFF")));
    return;
  }
  GTEST_SKIP() << "no Vulkan driver that computes on the processor (scripts/install-deps gpu)";
}

TEST(DevicesCommand, RefusesANameThatIsNoDevices) {
  const ProgramRun run = run_program({"devices", "vulkan:4711"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("vulkan:4711"));
  EXPECT_THAT(run.out, IsEmpty());
}

}  // namespace
}  // namespace outrider::test
