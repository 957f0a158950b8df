// SPDX-License-Identifier: Apache-2.0
// Passes on a device that fails: its memory is used up at any call, it is lost at any call, or a
// kernel of its driver is wrong. Existing texts are unchanged, and continue with the same bits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/tables.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/faulty_device.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::FaultyDevice;
using test::LyingDevice;
using test::part;
using test::Rows;
using ::testing::HasSubstr;

std::filesystem::path files() {
  static const test::TemporaryDirectory kDirectory;
  static const bool kWritten = [] {
    test::TinyShape shape;
    shape.seed = 5;
    shape.n_layers = 2;
    shape.vocabulary_size = 131;
    shape.context_length = 2048;
    test::write_hugging_face(test::make_tiny_model(shape), kDirectory.path());
    return true;
  }();
  (void)kWritten;
  return kDirectory.path();
}

std::unique_ptr<LanguageModel> load(std::shared_ptr<device::Device> device,
                                    const std::filesystem::path& path = files()) {
  LoadOptions options;
  options.table = &kernels::kScalarTable;
  options.weights = WeightKind::int8;
  options.kv = kernels::KvKind::f32;
  options.n_threads = 1;
  options.device = std::move(device);
  options.device_name = "--device test";
  return load_model(path, options);
}

// Runs one part of the script, which may fail and be repeated.
using Attempt = std::function<void(const std::function<void()>&)>;

// Texts that grow, share pages, have trees whose nodes move, and need larger buffers over time.
Rows script(LanguageModel& model, const Attempt& attempt) {
  const std::vector<TokenId> tokens = test::tokens_without_pattern(1400, 3, 131);
  Rows rows;
  const auto run = [&](Sequence& sequence, std::size_t from, std::size_t n,
                       std::vector<int> parents = {}) {
    attempt([&] {
      const int n_pending = sequence.n_pending();
      const int n_kept = sequence.n_kept();
      try {
        const Rows more = test::run_block(model, sequence, part(tokens, from, n), parents);
        rows.insert(rows.end(), more.begin(), more.end());
      } catch (const NoDeviceMemory&) {
        EXPECT_EQ(sequence.n_pending(), n_pending);
        EXPECT_EQ(sequence.n_kept(), n_kept);
        throw;
      }
    });
  };
  const auto keep = [&](Sequence& sequence, const std::vector<int>& path) {
    attempt([&] { sequence.keep(path); });
  };
  const auto keep_all = [&](Sequence& sequence) {
    std::vector<int> path;
    for (int i = 0; i < sequence.n_pending(); ++i) path.push_back(i);
    keep(sequence, path);
  };
  const auto first = model.open({});
  run(*first, 0, 70);
  keep_all(*first);
  const auto second = first->fork();
  run(*second, 300, 2);  // on a page that both share
  keep_all(*second);
  run(*first, 70, 6, {-1, -1, 1, 0, 2, 4});
  const auto third = first->fork();
  keep(*first, {1, 2, 4, 5});  // they move
  run(*first, 80, 1);
  keep_all(*first);
  for (std::size_t done = 0; done < 1200; done += 240) {  // beyond the first pages
    run(*third, 100 + done, 240);
    keep_all(*third);
  }
  run(*third, 10, 5, {-1, -1, 1, 2, 0});
  keep(*third, {1, 2, 3});
  run(*second, 400, 3);
  run(*third, 20, 1);
  return rows;
}

void once(const std::function<void()>& part) { part(); }

Rows rows_on_the_processor() { return script(*load(nullptr), once); }

// Every call that allocates fails once, and the part of the script that needed it is repeated.
TEST(DeviceFaults, MemoryOutAtAnyCallLeavesAllThatThereWas) {
  const Rows expected = rows_on_the_processor();
  int n_failed = 0;
  for (int at = 0;; ++at) {
    const auto device = std::make_shared<FaultyDevice>();
    const auto model = load(device);
    device->run_out_at(at);
    int n_caught = 0;
    const Rows got = script(*model, [&](const std::function<void()>& part) {
      try {
        part();
      } catch (const NoDeviceMemory& error) {
        EXPECT_THAT(error.what(), HasSubstr("memory"));
        ++n_caught;
        part();
      }
    });
    SCOPED_TRACE(fmt::format("call {}", at));
    ASSERT_EQ(got.size(), expected.size());
    test::expect_same_bits(expected, 0, got);
    EXPECT_EQ(n_caught, device->has_run_out() ? 1 : 0);
    EXPECT_EQ(model->failure(), "");
    if (!device->has_run_out()) break;
    ++n_failed;
  }
  EXPECT_GT(n_failed, 40);
}

// Layers with and without a window keep their tokens in two groups of pages: a kept path moves in
// both or in neither.
TEST(DeviceFaults, AKeptPathMovesInAllGroupsOrInNone) {
  const auto path = test::golden_directory("gemma3_mixed");
  const auto run = [](LanguageModel& model, FaultyDevice* device, int at) {
    const std::vector<TokenId> tokens =
        test::tokens_without_pattern(60, 3, static_cast<unsigned>(model.config().vocabulary_size));
    const auto sequence = model.open({});
    Rows rows = test::run_and_keep(model, *sequence, part(tokens, 0, 20));
    const std::vector<int> parents = {-1, -1, 1, 0, 2, 4};
    (void)test::run_block(model, *sequence, part(tokens, 20, 6), parents);
    const std::vector<int> kept = {1, 2, 4, 5};
    if (device != nullptr) device->run_out_at(at);
    try {
      sequence->keep(kept);
    } catch (const NoDeviceMemory&) {
      sequence->keep(kept);
    }
    if (device != nullptr) device->run_out_at(FaultyDevice::kNever);
    const Rows more = test::run_and_keep(model, *sequence, part(tokens, 30, 3));
    rows.insert(rows.end(), more.begin(), more.end());
    return rows;
  };
  const Rows expected = run(*load(nullptr, path), nullptr, 0);
  int n_failed = 0;
  for (int at = 0;; ++at) {
    const auto device = std::make_shared<FaultyDevice>();
    const Rows got = run(*load(device, path), device.get(), at);
    ASSERT_EQ(got.size(), expected.size());
    test::expect_same_bits(expected, 0, got);
    if (!device->has_run_out()) break;
    ++n_failed;
  }
  EXPECT_EQ(n_failed, 2);  // a program of moves for each group
}

// A text without memory for its pass is ended; the others end as usual.
TEST(DeviceFaults, ATextThatFindsNoMemoryEndsAlone) {
  const auto run = [](LanguageModel& model, FaultyDevice* device) {
    const std::vector<TokenId> tokens = test::tokens_without_pattern(1400, 3, 131);
    const auto first = model.open({});
    Rows rows = test::run_and_keep(model, *first, part(tokens, 0, 70));
    if (device != nullptr) {
      const auto other = first->fork();
      device->run_out_at(0, true);
      int n_refused = 0;
      for (std::size_t done = 0; done < 1200; done += 240) {
        try {
          (void)test::run_and_keep(model, *other, part(tokens, 100 + done, 240));
        } catch (const NoDeviceMemory&) {
          ++n_refused;
        }
      }
      EXPECT_GT(n_refused, 0);
      device->run_out_at(FaultyDevice::kNever);
    }
    for (const std::size_t n : {1U, 5U, 30U}) {
      const Rows more = test::run_and_keep(model, *first, part(tokens, 70, n));
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  };
  const Rows expected = run(*load(nullptr), nullptr);
  const auto device = std::make_shared<FaultyDevice>();
  const Rows got = run(*load(device), device.get());
  ASSERT_EQ(got.size(), expected.size());
  test::expect_same_bits(expected, 0, got);
}

TEST(DeviceFaults, AModelThatFindsNoMemoryIsNotLoaded) {
  int n_failed = 0;
  for (int at = 0;; ++at) {
    const auto device = std::make_shared<FaultyDevice>();
    device->run_out_at(at);
    try {
      (void)load(device);
      break;
    } catch (const NoDeviceMemory& error) {
      EXPECT_THAT(error.what(), HasSubstr("out of the device's memory"));
      ++n_failed;
    }
  }
  EXPECT_GT(n_failed, 40);  // weights, pages, buffers, words, programs
}

// At whatever call it is detected: an error at once, the same error from then on, and a clean end.
TEST(DeviceFaults, ALostDeviceIsAnErrorThatStays) {
  int n_lost = 0;
  for (int at = 0;; at += 1 + at / 16) {
    const auto device = std::make_shared<FaultyDevice>();
    const auto model = load(device);
    EXPECT_EQ(model->failure(), "");
    device->lose_at(at);
    bool is_lost = false;
    try {
      (void)script(*model, once);
    } catch (const LostDevice&) {
      is_lost = true;
    }
    if (!is_lost) break;
    ++n_lost;
    EXPECT_THAT(model->failure(), HasSubstr("lost"));
    const auto sequence = model->open({});
    EXPECT_THROW((void)test::run_block(*model, *sequence, std::vector<TokenId>{1}), LostDevice);
  }
  EXPECT_GT(n_lost, 16);
}

TEST(DeviceFaults, AWrongKernelIsFoundWhenAModelIsLoaded) {
  const auto refusal = [](device::Kernel kernel, std::uint32_t form) -> std::string {
    try {
      (void)load(std::make_shared<LyingDevice>(kernel, form));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  using device::Kernel;
  EXPECT_THAT(refusal(Kernel::rms_norm, 1), HasSubstr("rms norm"));
  EXPECT_THAT(refusal(Kernel::apply_rope, 1), HasSubstr("apply_rope"));
  EXPECT_THAT(refusal(Kernel::attend_f32, 0), HasSubstr("attention f32"));
  EXPECT_THAT(refusal(Kernel::merge_splits, 1), HasSubstr("attention f32"));
  EXPECT_THAT(refusal(Kernel::product_int8, 8), HasSubstr("product int8, 8 rows"));
  EXPECT_THAT(refusal(Kernel::store_rows, 0), HasSubstr("store f32"));
  EXPECT_THAT(refusal(Kernel::move_slots, 0), HasSubstr("move f32"));
  EXPECT_EQ(refusal(Kernel::product_int4, 1), "");  // no kernel of this model
  EXPECT_EQ(refusal(Kernel::attend_int8, 1), "");
}

}  // namespace
}  // namespace outrider
