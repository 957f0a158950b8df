// SPDX-License-Identifier: Apache-2.0
// outrider devices, as a user runs it: with drivers, without, and with a name that no device has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/run_program.h"
#include "tests/support/software_device.h"
#include "tests/support/vulkan_faults.h"

namespace outrider::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
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
  const std::string device = software_device();
  if (device.empty()) GTEST_SKIP() << kNoSoftwareDevice;
  const ProgramRun run = run_program({"devices", device, "--check"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("check +all bits are those of the processor"));
  EXPECT_THAT(run.out, HasSubstr("never chosen by itself"));
  EXPECT_THAT(run.out, Not(HasSubstr("DIFF")));
}

TEST(DevicesCommand, ShowsTheKernelWhoseBitsDifferAndFails) {
  if (!VulkanFaults::are_built()) GTEST_SKIP() << "no layer that breaks drivers";
  const VulkanFaults faults;
  const std::string device = software_device();
  if (device.empty()) GTEST_SKIP() << kNoSoftwareDevice;
  // Products add scales instead of multiplying by them (SPIR-V's operations).
  faults.set("break x_scales 133 129");
  const ProgramRun run = run_program({"devices", device, "--check"});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("DIFF +product int8"));
  EXPECT_THAT(run.out, ContainsRegex("same +attention f32"));
  EXPECT_THAT(run.out, HasSubstr("not all bits are those of the processor"));
}

TEST(DevicesCommand, RefusesANameThatIsNoDevices) {
  const ProgramRun run = run_program({"devices", "vulkan:4711"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("vulkan:4711"));
  EXPECT_THAT(run.out, IsEmpty());
}

}  // namespace
}  // namespace outrider::test
