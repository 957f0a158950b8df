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
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/shared_device.h"
#include "kernels/tables.h"
#include "model/load_model.h"
#include "model/translated_model.h"
#include "outrider/error.h"
#include "tests/support/faulty_device.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::DeviceCall;
using test::FaultyDevice;
using test::LyingDevice;
using test::part;
using test::Rows;
using ::testing::HasSubstr;

std::filesystem::path files() {
  static const test::TemporaryDirectory directory;
  static const bool written = [] {
    test::TinyShape shape;
    shape.seed = 5;
    shape.vocabulary_size = 131;
    shape.context_length = 2048;
    shape.dim = 32;  // small: each fault is injected into a run of its own
    shape.n_heads = 2;
    shape.hidden_dim = 32;
    test::write_hugging_face(test::make_tiny_model(shape), directory.path());
    return true;
  }();
  (void)written;
  return directory.path();
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

// Runs one part of the script, which may fail and be repeated. stage: what the part does.
using Attempt = std::function<void(const std::string& stage, const std::function<void()>& part)>;

// Texts that grow, share pages, have trees whose nodes move, are rewound, and need larger buffers
// over time.
Rows script(LanguageModel& model, const Attempt& attempt) {
  const std::vector<TokenId> tokens = test::tokens_without_pattern(1400, 3, 131);
  Rows rows;
  const auto run = [&](const std::string& stage, Sequence& sequence, std::size_t from,
                       std::size_t n, std::vector<int> parents = {}) {
    attempt(stage, [&] {
      const int n_pending = sequence.n_pending();
      const int n_kept = sequence.n_kept();
      try {
        const TokenBlock block{&sequence, part(tokens, from, n), parents};
        // Of long blocks one row: each row is a download, at which a device may be lost.
        const auto asked = n > 100 ? RowSet::Kind::last_of_each_block : RowSet::Kind::all;
        ForwardOutput output;
        model.forward({&block, 1}, {{asked, {}}}, output);
        const Rows more = test::rows_of(output);
        rows.insert(rows.end(), more.begin(), more.end());
      } catch (const NoDeviceMemory&) {
        EXPECT_EQ(sequence.n_pending(), n_pending);
        EXPECT_EQ(sequence.n_kept(), n_kept);
        throw;
      }
    });
  };
  const auto keep = [&](Sequence& sequence, const std::vector<int>& path) {
    attempt("keep", [&] { sequence.keep(path); });
  };
  const auto keep_all = [&](Sequence& sequence) {
    std::vector<int> path(static_cast<std::size_t>(sequence.n_pending()));
    std::iota(path.begin(), path.end(), 0);
    keep(sequence, path);
  };
  const auto first = model.open({});
  run("prefill", *first, 0, 70);
  keep_all(*first);
  const auto second = first->fork();
  run("fork", *second, 300, 2);  // on a page that both share
  keep_all(*second);
  run("verify", *first, 70, 6, {-1, -1, 1, 0, 2, 4});
  const auto third = first->fork();
  keep(*first, {1, 2, 4, 5});  // they move
  run("decode", *first, 80, 1);
  keep_all(*first);
  attempt("rewind", [&] { first->truncate(66); });
  run("rewind", *first, 500, 20);
  keep_all(*first);
  for (std::size_t done = 0; done < 960; done += 240) {  // beyond the first pages, and one split
    run("prefill", *third, 100 + done, 240);
    keep_all(*third);
  }
  run("verify", *third, 10, 5, {-1, -1, 1, 2, 0});
  keep(*third, {1, 2, 3});
  run("decode", *second, 400, 3);
  run("decode", *third, 20, 1);
  attempt("rewind", [&] { third->truncate(900); });
  run("rewind", *third, 520, 1);
  return rows;
}

void once(const std::string& /*stage*/, const std::function<void()>& part) { part(); }

Rows rows_on_the_processor() { return script(*load(nullptr), once); }

// One call that allocates fails, and the part of the script that needed it is repeated.
TEST(DeviceFaults, MemoryOutAtAnyCallLeavesAllThatThereWas) {
  const Rows expected = rows_on_the_processor();
  const auto device = std::make_shared<FaultyDevice>();
  const auto run_out_at = [&](int at) {
    device->heal();
    const auto model = load(device);
    device->run_out_at(at);
    int n_caught = 0;
    const Rows got =
        script(*model, [&](const std::string& stage, const std::function<void()>& part) {
          device->enter_stage(stage);
          try {
            part();
          } catch (const NoDeviceMemory& error) {
            EXPECT_THAT(error.what(), HasSubstr("memory"));
            ++n_caught;
            part();
          }
        });
    ASSERT_EQ(got.size(), expected.size());
    test::expect_same_bits(expected, 0, got);
    EXPECT_EQ(n_caught, at == FaultyDevice::kNever ? 0 : 1);
    EXPECT_EQ(model->failure(), "");
  };
  run_out_at(FaultyDevice::kNever);
  const std::vector<DeviceCall> calls = device->taking_calls();
  EXPECT_EQ(
      test::kinds_of(calls),
      (std::set<std::string>{"prefill: allocate", "prefill: record", "decode: record",
                             "verify: record", "keep: record", "fork: record", "rewind: record"}));
  for (const int at : test::calls_to_fail(calls, test::nightly())) {
    SCOPED_TRACE(fmt::format("call {}: {}", at, calls[static_cast<std::size_t>(at)].kind()));
    run_out_at(at);
  }
}

// Each call that allocates fails once, all of them in one run: a repeated part fails at the next
// call.
TEST(DeviceFaults, MemoryOutAtEveryCallInTurnLeavesAllThatThereWas) {
  const Rows expected = rows_on_the_processor();
  const auto device = std::make_shared<FaultyDevice>();
  std::size_t n_calls = 0;
  {
    const auto model = load(device);
    device->heal();
    (void)script(*model, once);
    n_calls = device->taking_calls().size();
  }
  const auto model = load(device);
  std::size_t n_failed = 0;
  const Rows got = script(*model, [&](const std::string&, const std::function<void()>& part) {
    device->run_out_at(0);
    while (n_failed < 2 * n_calls) {
      try {
        return part();
      } catch (const NoDeviceMemory&) {
        ++n_failed;
        device->run_out_at(1);  // what failed before is found now
      }
    }
    FAIL() << "a part that is repeated does not advance";
  });
  ASSERT_EQ(got.size(), expected.size());
  test::expect_same_bits(expected, 0, got);
  EXPECT_EQ(n_failed, n_calls);
}

// Runs `run(model, device, at)` with a device that runs out of memory at its at-th call, for each
// at until none fails. The rows must be those of the processor, for which the device is null.
// Returns the number of runs with a failure.
template <class Run>
int n_failures_with_the_same_bits(const std::filesystem::path& path, const Run& run) {
  const Rows expected = run(*load(nullptr, path), nullptr, 0);
  for (int at = 0;; ++at) {
    SCOPED_TRACE(fmt::format("call {}", at));
    const auto device = std::make_shared<FaultyDevice>();
    const Rows got = run(*load(device, path), device.get(), at);
    EXPECT_EQ(got.size(), expected.size());
    if (got.size() == expected.size()) test::expect_same_bits(expected, 0, got);
    if (!device->has_run_out()) return at;
  }
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
  // A program of moves for each group.
  EXPECT_EQ(n_failures_with_the_same_bits(path, run), 2);
}

// The page that two texts share is copied in each group. Copies before the one that fails stay: no
// other text gets their pages.
TEST(DeviceFaults, CopiesBeforeOneThatFailsStay) {
  const auto path = test::golden_directory("gemma3_mixed");
  const auto run = [](LanguageModel& model, FaultyDevice* device, int at) {
    const std::vector<TokenId> tokens =
        test::tokens_without_pattern(90, 3, static_cast<unsigned>(model.config().vocabulary_size));
    const auto sequence = model.open({});
    (void)test::run_and_keep(model, *sequence, part(tokens, 0, 20));
    const auto copy = sequence->fork();
    if (device != nullptr) device->run_out_at(at);
    try {
      (void)test::run_block(model, *copy, part(tokens, 20, 3));
      copy->keep({});
    } catch (const NoDeviceMemory&) {
      EXPECT_EQ(copy->n_pending(), 0);
    }
    if (device != nullptr) device->run_out_at(FaultyDevice::kNever);
    const auto other = model.open({});
    Rows rows = test::run_and_keep(model, *other, part(tokens, 30, 40));
    for (Sequence* const each : {copy.get(), sequence.get(), other.get()}) {
      const Rows more = test::run_and_keep(model, *each, part(tokens, 80, 3));
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  };
  // A program of copies for each group.
  EXPECT_GE(n_failures_with_the_same_bits(path, run), 2);
}

// A text without memory for its pass is ended; the others end as usual.
TEST(DeviceFaults, ATextThatFindsNoMemoryEndsAlone) {
  const auto run = [](LanguageModel& model, FaultyDevice* device) {
    const std::vector<TokenId> tokens = test::tokens_without_pattern(1400, 3, 131);
    const auto first = model.open({});
    Rows rows = test::run_and_keep(model, *first, part(tokens, 0, 70));
    rows.push_back(test::run_and_keep(model, *first, part(tokens, 1300, 1)).at(0));
    if (device != nullptr) {
      device->run_out_at(0, true);
      // The fork finds no program for its moves, the new text no buffers for its rows.
      for (const bool is_fork : {true, false}) {
        const auto other = is_fork ? first->fork() : model.open({});
        EXPECT_THROW((void)test::run_and_keep(model, *other, part(tokens, 100, 240)),
                     NoDeviceMemory);
      }
      device->run_out_at(FaultyDevice::kNever);
    }
    // The pass of one row has a program with buffers that were given up for larger ones.
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

// While kernels are tried on a new device, and while a model is loaded on one where they were.
TEST(DeviceFaults, AModelThatFindsNoMemoryIsNotLoaded) {
  const auto expect_refusals = [](bool is_tried) {
    SCOPED_TRACE(is_tried ? "kernels are tried" : "kernels are not tried");
    auto device = std::make_shared<FaultyDevice>();
    (void)load(device);
    if (is_tried) {
      device->heal();
      (void)load(device);
    }
    const std::vector<DeviceCall> calls = device->taking_calls();
    for (const int at : test::calls_to_fail(calls, is_tried || test::nightly())) {
      SCOPED_TRACE(fmt::format("call {}", at));
      if (!is_tried) device = std::make_shared<FaultyDevice>();
      device->heal();
      device->run_out_at(at);
      try {
        (void)load(device);
        ADD_FAILURE() << "loaded";
      } catch (const NoDeviceMemory& error) {
        EXPECT_THAT(error.what(), HasSubstr("out of the device's memory"));
      }
    }
    return calls.size();
  };
  const std::size_t n_of_model = expect_refusals(true);
  EXPECT_GT(n_of_model, 20U);  // weights, pages, buffers, words, programs
  EXPECT_GT(expect_refusals(false), n_of_model + 20);
}

// At whatever call it is detected: an error at once, the same error from then on, and a clean end.
TEST(DeviceFaults, ALostDeviceIsAnErrorThatStays) {
  const auto device = std::make_shared<FaultyDevice>();
  const auto enter = [&](const std::string& stage, const std::function<void()>& part) {
    device->enter_stage(stage);
    part();
  };
  {
    const auto model = load(device);
    device->heal();
    (void)script(*model, enter);
  }
  const std::vector<DeviceCall> calls = device->running_calls();
  std::set<std::string> kinds = {"keep: upload", "keep: submit"};
  for (const std::string stage : {"prefill", "decode", "verify", "fork", "rewind"}) {
    for (const char* const operation : {": upload", ": submit", ": wait", ": download"}) {
      kinds.insert(stage + operation);
    }
  }
  EXPECT_EQ(test::kinds_of(calls), kinds);
  for (const int at : test::calls_to_fail(calls, test::nightly())) {
    SCOPED_TRACE(fmt::format("call {}: {}", at, calls[static_cast<std::size_t>(at)].kind()));
    device->heal();
    const auto model = load(device);
    EXPECT_EQ(model->failure(), "");
    device->lose_at(at);
    EXPECT_THROW((void)script(*model, enter), LostDevice);
    EXPECT_THAT(model->failure(), HasSubstr("lost"));
    const auto sequence = model->open({});
    EXPECT_THROW((void)test::run_block(*model, *sequence, std::vector<TokenId>{1}), LostDevice);
  }
}

// The rows of the pass before would be read as those of the pass that failed. One for which there
// is no memory has not begun: what was there can still be read.
TEST(DeviceFaults, APassThatFailsLeavesNoRows) {
  const std::vector<TokenId> tokens = test::tokens_without_pattern(100, 3, 131);
  const std::vector<int> layers = {0, 2};
  const auto device = std::make_shared<FaultyDevice>();
  const auto forward = [&](LanguageModel& model, Sequence& sequence, std::size_t n,
                           ForwardOutput& output) {
    const TokenBlock block{&sequence, part(tokens, 0, n), {}};
    model.forward({&block, 1}, {{}, layers, {}}, output);
  };
  Rows expected;
  {
    const auto model = load(nullptr);
    const auto sequence = model->open({});
    ForwardOutput output;
    forward(*model, *sequence, 2, output);
    expected = test::rows_of(output);
  }
  int n_lost = 0;
  for (int at = 0;; ++at) {
    SCOPED_TRACE(fmt::format("call {}", at));
    device->heal();
    const auto model = load(device);
    const auto sequence = model->open({});
    ForwardOutput output;
    forward(*model, *sequence, 2, output);
    device->run_out_at(0);
    EXPECT_THROW(forward(*model, *sequence, 70, output), NoDeviceMemory);
    EXPECT_EQ(test::rows_of(output), expected);
    device->lose_at(at);
    try {
      forward(*model, *sequence, 3, output);
      EXPECT_EQ(output.logits.n_rows(), 3);
      break;
    } catch (const LostDevice&) {
      ++n_lost;
    }
    EXPECT_EQ(output.logits.n_rows(), 0);
    EXPECT_EQ(output.feature_width, 0);
  }
  EXPECT_GT(n_lost, 5);  // words, embeddings, submission, its end, the likeliest tokens, features
}

// Its rows are fetched from the device when they are translated.
TEST(DeviceFaults, ATranslatedPassThatFailsLeavesNoRows) {
  VocabularyTranslation same;
  for (TokenId token = 0; token < 131; ++token) {
    same.spelled.push_back({token});
    same.shared.push_back(token);
  }
  const std::vector<TokenId> tokens = test::tokens_without_pattern(2, 3, 131);
  const auto device = std::make_shared<FaultyDevice>();
  int n_lost = 0;
  for (int at = 0;; ++at) {
    SCOPED_TRACE(fmt::format("call {}", at));
    device->heal();
    TranslatedModel model(load(device), same);
    const auto sequence = model.open({});
    const TokenBlock block{sequence.get(), tokens, {}};
    ForwardOutput output;
    model.forward({&block, 1}, {}, output);
    device->lose_at(at);
    try {
      model.forward({&block, 1}, {}, output);
      EXPECT_EQ(output.logits.n_rows(), 2);
      break;
    } catch (const LostDevice&) {
      ++n_lost;
    }
    EXPECT_EQ(output.logits.n_rows(), 0);
  }
  EXPECT_GT(n_lost, 6);  // words, embeddings, submission, its end, the likeliest tokens, two rows
}

// Uploads of weights, and all calls of the trials of kernels.
TEST(DeviceFaults, AModelOfALostDeviceIsNotLoaded) {
  auto device = std::make_shared<FaultyDevice>();
  device->enter_stage("load");
  (void)load(device);
  const std::vector<DeviceCall> calls = device->running_calls();
  EXPECT_EQ(test::kinds_of(calls), (std::set<std::string>{"load: upload", "load: submit",
                                                          "load: wait", "load: download"}));
  for (const int at : test::calls_to_fail(calls, test::nightly())) {
    SCOPED_TRACE(fmt::format("call {}", at));
    device = std::make_shared<FaultyDevice>();
    device->lose_at(at);
    EXPECT_THROW((void)load(device), LostDevice);
    EXPECT_THAT(device->failure(), HasSubstr("lost"));
    EXPECT_THROW((void)load(device), LostDevice);
  }
}

// Two models share a device, as a target and its drafter do. Kernels are tried for the first one
// alone, and a loss ends both.
TEST(DeviceFaults, ALostDeviceEndsAllModelsOnIt) {
  const std::vector<TokenId> tokens = test::tokens_without_pattern(70, 3, 131);
  auto owned = std::make_unique<FaultyDevice>();
  FaultyDevice& faulty = *owned;
  const auto device = device::share(std::move(owned));
  const auto first = load(device);
  faulty.heal();
  faulty.enter_stage("load");
  const auto second = load(device);
  EXPECT_EQ(test::kinds_of(faulty.running_calls()), (std::set<std::string>{"load: upload"}));
  const auto here = load(nullptr);
  const auto expected = here->open({});
  const auto text = first->open({});
  const auto other = second->open({});
  for (const std::size_t n : {3U, 70U, 1U}) {
    const Rows rows = test::run_and_keep(*here, *expected, part(tokens, 0, n));
    EXPECT_EQ(test::run_and_keep(*first, *text, part(tokens, 0, n)), rows);
    EXPECT_EQ(test::run_and_keep(*second, *other, part(tokens, 0, n)), rows);
  }
  faulty.lose_at(0);
  EXPECT_THROW((void)test::run_block(*first, *text, part(tokens, 0, 1)), LostDevice);
  EXPECT_THAT(second->failure(), HasSubstr("lost"));
  EXPECT_THROW((void)test::run_block(*second, *other, part(tokens, 0, 1)), LostDevice);
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
