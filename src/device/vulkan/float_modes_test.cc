// SPDX-License-Identifier: Apache-2.0
// What is inserted into a module's words, and where.
#include "device/vulkan/float_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace outrider::device {
namespace {

using ::testing::ElementsAreArray;

using Words = std::vector<std::uint32_t>;

constexpr FloatModes kAll = {true, true, true};

constexpr std::uint32_t op(std::uint32_t number, std::uint32_t n_words) {
  return n_words << 16 | number;
}

// Header, capabilities, an entry point (function 4, named "main") and what follows it.
Words module_with(const Words& capabilities, const Words& modes, const Words& capabilities_behind) {
  Words words = {0x07230203, 0x00010500, 0, 100, 0};
  for (const std::uint32_t capability : capabilities) {
    words.insert(words.end(), {op(17, 2), capability});
  }
  words.insert(words.end(), capabilities_behind.begin(), capabilities_behind.end());
  words.insert(words.end(), {op(14, 3), 0, 1});                 // memory model
  words.insert(words.end(), {op(15, 5), 5, 4, 0x6e69616d, 0});  // entry point
  words.insert(words.end(), modes.begin(), modes.end());
  words.insert(words.end(), {op(16, 6), 4, 17, 64, 1, 1, op(19, 2), 2});  // its size; a type
  return words;
}

TEST(FloatModes, StandBehindCapabilitiesAndTheEntryPoint) {
  EXPECT_THAT(with_float_modes(module_with({1}, {}, {}), kAll, kAll),
              ElementsAreArray(module_with(
                  {1}, {op(16, 4), 4, 4459, 32, op(16, 4), 4, 4461, 32, op(16, 4), 4, 4462, 32},
                  {op(17, 2), 4464, op(17, 2), 4466, op(17, 2), 4467})));
}

TEST(FloatModes, AreOfDoublesWhereTheModuleHasThem) {
  EXPECT_THAT(with_float_modes(module_with({1, 10}, {}, {}), {.rounds_to_even = true},
                               {.keeps_subnormals = true, .rounds_to_even = true}),
              ElementsAreArray(module_with(
                  {1, 10}, {op(16, 4), 4, 4459, 64, op(16, 4), 4, 4462, 32, op(16, 4), 4, 4462, 64},
                  {op(17, 2), 4464, op(17, 2), 4467})));
}

TEST(FloatModes, LeaveAloneWhatADeviceHasNoneFor) {
  const Words module = module_with({1, 10}, {}, {});
  EXPECT_EQ(with_float_modes(module, {}, {}), module);
  const Words no_doubles = module_with({1}, {}, {});
  EXPECT_EQ(with_float_modes(no_doubles, {}, kAll), no_doubles);
}

TEST(FloatModes, LeaveAloneWhatIsNoModule) {
  EXPECT_EQ(with_float_modes(Words{}, kAll, kAll), Words{});
  const Words other = {1, 2, 3, 4, 5, op(17, 2), 1};
  EXPECT_EQ(with_float_modes(other, kAll, kAll), other);
  Words cut = module_with({1}, {}, {});
  cut.pop_back();
  EXPECT_EQ(with_float_modes(cut, kAll, kAll), cut);
  Words endless = module_with({1}, {}, {});
  endless[5] = 17;  // an instruction of length 0
  EXPECT_EQ(with_float_modes(endless, kAll, kAll), endless);
}

}  // namespace
}  // namespace outrider::device
