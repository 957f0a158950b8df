// SPDX-License-Identifier: Apache-2.0
// Compares derived barriers with every pair of steps, and shows what a wrong one does to a
// program's bytes.
#include "device/barriers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "device/host/host_device.h"
#include "device/kernel_steps.h"
#include "device/trials/trial.h"

namespace outrider::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct NoMemory : Buffer {
  NoMemory() : Buffer(4 * kRangeAlignment) {}
};

Range part(const Buffer& buffer, std::size_t begin, std::size_t end) {
  return {&buffer, begin * kRangeAlignment, (end - begin) * kRangeAlignment};
}

Step step_of(std::vector<Use> uses) { return {.uses = std::move(uses)}; }

// Whether two steps may not be swapped, computed independently, byte by byte.
bool depend(const Step& a, const Step& b) {
  for (const Use& of_a : a.uses) {
    for (const Use& of_b : b.uses) {
      if (of_a.access == Access::read && of_b.access == Access::read) continue;
      if (of_a.range.buffer != of_b.range.buffer) continue;
      for (std::size_t at = 0; at < of_a.range.n_bytes; at += kRangeAlignment) {
        const std::size_t byte = of_a.range.offset + at;
        if (byte >= of_b.range.offset && byte < of_b.range.offset + of_b.range.n_bytes) return true;
      }
    }
  }
  return false;
}

bool all_dependences_have_one(const std::vector<Step>& steps,
                              const std::vector<std::size_t>& barriers) {
  for (std::size_t later = 0; later < steps.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (!depend(steps[earlier], steps[later])) continue;
      bool stands = false;
      for (const std::size_t barrier : barriers) {
        stands = stands || (earlier < barrier && barrier <= later);
      }
      if (!stands) return false;
    }
  }
  return true;
}

TEST(Barriers, StandBetweenAWriteAndWhatFollowsIt) {
  const NoMemory a, b;
  const Use reads_a{whole(a), Access::read};
  const Use writes_a{whole(a), Access::write};
  const Use changes_a{whole(a), Access::read_write};
  const Use writes_b{whole(b), Access::write};
  const auto between = [](const Use& first, const Use& second) {
    return derive_barriers(std::vector<Step>{step_of({first}), step_of({second})});
  };
  EXPECT_THAT(between(writes_a, reads_a), ElementsAre(1));
  EXPECT_THAT(between(reads_a, writes_a), ElementsAre(1));
  EXPECT_THAT(between(writes_a, writes_a), ElementsAre(1));
  EXPECT_THAT(between(changes_a, changes_a), ElementsAre(1));
  EXPECT_THAT(between(changes_a, reads_a), ElementsAre(1));
  EXPECT_THAT(between(reads_a, reads_a), IsEmpty());
  EXPECT_THAT(between(writes_a, writes_b), IsEmpty());
}

TEST(Barriers, AreAboutPartsOfBuffers) {
  const NoMemory a;
  const auto between = [&](std::size_t end, std::size_t begin) {
    return derive_barriers(std::vector<Step>{step_of({{part(a, 0, end), Access::write}}),
                                             step_of({{part(a, begin, 4), Access::read}})});
  };
  EXPECT_THAT(between(2, 2), IsEmpty());
  EXPECT_THAT(between(3, 2), ElementsAre(1));
}

TEST(Barriers, OneServesAllStepsBeforeIt) {
  const NoMemory a, b, c;
  EXPECT_THAT(derive_barriers(std::vector<Step>{
                  step_of({{whole(a), Access::write}}), step_of({{whole(b), Access::write}}),
                  step_of({{whole(a), Access::read}, {whole(c), Access::write}}),
                  step_of({{whole(b), Access::read}}), step_of({{whole(c), Access::read}})}),
              ElementsAre(2, 4));
  EXPECT_THAT(derive_barriers({}), IsEmpty());
}

TEST(Barriers, OfRandomStepsAreEnoughAndNoneIsTooMany) {
  const std::vector<NoMemory> buffers(3);
  std::mt19937 random(7);
  int n_left_out = 0;
  for (int list = 0; list < 300; ++list) {
    std::vector<Step> steps(1 + random() % 12);
    for (Step& step : steps) {
      for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
        const std::size_t begin = random() % 4;
        const std::size_t end = begin + 1 + random() % (4 - begin);
        step.uses.push_back(
            {part(buffers[random() % 3], begin, end), static_cast<Access>(random() % 3)});
      }
    }
    const std::vector<std::size_t> barriers = derive_barriers(steps);
    EXPECT_TRUE(all_dependences_have_one(steps, barriers));
    for (std::size_t i = 0; i < barriers.size(); ++i) {
      std::vector<std::size_t> fewer = barriers;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(all_dependences_have_one(steps, fewer)) << "barrier " << i;
      ++n_left_out;
    }
  }
  EXPECT_GT(n_left_out, 500);
}

// y = (x + x) + (x + x) and then x = y + y, on a device that reverses independent steps.
class Chain {
 public:
  explicit Chain(HostDevice& device)
      : device_(device),
        x_(device.allocate(kBytes)),
        t_(device.allocate(kBytes)),
        y_(device.allocate(kBytes)) {
    const auto sum = [](const Buffer& a, const Buffer& to) {
      return arithmetic(Function::native_add, kNumbers, whole(a), whole(a), whole(a), whole(to));
    };
    steps_ = {sum(*x_, *t_), sum(*t_, *y_), sum(*y_, *x_)};
  }

  std::vector<float> run(const std::vector<std::size_t>& barriers) {
    std::vector<float> numbers(kNumbers, 1.0F);
    for (const auto* buffer : {&x_, &t_, &y_}) {
      device_.upload(std::as_bytes(std::span(numbers)), whole(**buffer));
    }
    const auto program = device_.record_with(steps_, barriers);
    device_.wait(device_.submit(*program));
    device_.download(whole(*x_), std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  const std::vector<Step>& steps() const { return steps_; }

 private:
  static constexpr int kNumbers = 8;
  static constexpr std::size_t kBytes = kNumbers * sizeof(float);

  HostDevice& device_;
  std::unique_ptr<Buffer> x_, t_, y_;
  std::vector<Step> steps_;
};

TEST(Barriers, OneLeftOutChangesWhatADeviceInAnotherOrderGives) {
  HostDevice device(HostDevice::Order::reversed);
  Chain chain(device);
  const std::vector<std::size_t> barriers = derive_barriers(chain.steps());
  EXPECT_THAT(barriers, ElementsAre(1, 2));
  EXPECT_THAT(chain.run(barriers), ::testing::Each(8.0F));
  for (const std::size_t left : barriers) {
    EXPECT_THAT(chain.run({left}), ::testing::Not(::testing::Each(8.0F)));
  }
}

}  // namespace
}  // namespace outrider::device
