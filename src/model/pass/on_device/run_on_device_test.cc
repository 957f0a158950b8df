// SPDX-License-Identifier: Apache-2.0
// Compares passes on devices with passes on the processor by the table `scalar`: every row by
// memcmp, for chains, trees, batches, forks and windows, whatever order the device runs its steps
// in.
#include "model/pass/on_device/run_on_device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/cuda/emulated_driver.h"
#include "device/host/host_device.h"
#include "kernels/dispatch.h"
#include "kernels/tables.h"
#include "model/decoder_model.h"
#include "model/load_model.h"
#include "model/pass/pass_builder.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/watched_device.h"
#if defined(OUTRIDER_HAS_VULKAN)
#include "device/vulkan/test_devices.h"
#endif

namespace outrider {
namespace {

namespace fs = std::filesystem;
using kernels::KvKind;
using test::part;
using test::Row;
using test::Rows;
using ::testing::HasSubstr;
using ::testing::Not;

enum class Where { host, host_reversed, vulkan, cuda_descending, cuda_shuffled };

// Null if there is none.
std::shared_ptr<device::Device> open(Where where) {
  using device::HostDevice;
  switch (where) {
    case Where::host:
      return std::make_shared<HostDevice>();
    case Where::host_reversed:
      return std::make_shared<HostDevice>(HostDevice::Order::reversed);
    case Where::cuda_descending: {
      static const std::shared_ptr<device::Device> kDevice =
          device::cuda::open_emulated(device::cuda::ThreadOrder::descending);
      return kDevice;
    }
    case Where::cuda_shuffled: {
      static const std::shared_ptr<device::Device> kDevice =
          device::cuda::open_emulated(device::cuda::ThreadOrder::shuffled);
      return kDevice;
    }
    case Where::vulkan: {
#if defined(OUTRIDER_HAS_VULKAN)
      // One device for all models: its driver takes long to compile kernels.
      static const std::shared_ptr<device::Device> kDevice = device::test_device();
      return kDevice;
#endif
      break;
    }
  }
  return nullptr;
}

std::string why_none() {
#if defined(OUTRIDER_HAS_VULKAN)
  return device::why_no_test_device();
#else
  return "no Vulkan in this build";
#endif
}

struct Form {
  WeightKind weights = WeightKind::int8;
  KvKind kv = KvKind::f32;
};

std::unique_ptr<LanguageModel> load(const fs::path& path, const Form& form,
                                    std::shared_ptr<device::Device> device) {
  LoadOptions options;
  options.table = &kernels::kScalarTable;
  options.weights = form.weights;
  options.kv = form.kv;
  options.n_threads = 1;
  options.device = std::move(device);
  options.device_name = "--device test";
  return load_model(path, options);
}

// The files of a family's golden model or of a tiny Llama, written once.
fs::path files_of(const std::string& name) {
  static const test::TemporaryDirectory kDirectory;
  static std::set<std::string> written;
  if (name.find("tiny") != 0) return test::golden_directory(name);
  const fs::path path = fs::path(kDirectory.path()) / name;
  if (!written.insert(name).second) return path;
  test::TinyShape shape;
  shape.seed = 5;
  if (name == "tiny_ragged") {  // no size divides another
    shape.vocabulary_size = 131;
    shape.dim = 72;
    shape.n_heads = 6;
    shape.head_dim = 18;
    shape.hidden_dim = 100;
    shape.attention_bias = true;
    shape.mlp_bias = true;
  }
  shape.context_length = 1152;
  if (name == "tiny_wide") shape.vocabulary_size = 2000;
  if (name == "tiny_long") {
    shape.n_layers = 1;
    shape.dim = 32;
    shape.n_heads = 2;
    shape.n_kv_heads = 1;
    shape.hidden_dim = 32;
  }
  test::write_hugging_face(test::make_tiny_model(shape), path);
  return path;
}

class DevicePasses : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (open(GetParam()) == nullptr) GTEST_SKIP() << why_none();
  }

  // Runs a script on both and compares all its rows.
  template <typename Script>
  void expect_same_bits(const std::string& name, const Form& form, const Script& script) {
    SCOPED_TRACE(fmt::format("{}, {}, {}", name, kernels::name_of(form.weights), name_of(form.kv)));
    const auto here = load(files_of(name), form, nullptr);
    const auto there = load(files_of(name), form, open(GetParam()));
    const Rows expected = script(*here);
    const Rows got = script(*there);
    ASSERT_EQ(got.size(), expected.size());
    ASSERT_FALSE(expected.empty());
    test::expect_same_bits(expected, 0, got);
  }
};

void append(Rows& rows, const Rows& more) { rows.insert(rows.end(), more.begin(), more.end()); }

std::vector<TokenId> tokens_for(LanguageModel& model, std::size_t n, unsigned start) {
  return test::tokens_without_pattern(n, start,
                                      static_cast<unsigned>(model.config().vocabulary_size));
}

// Chunks of many sizes, across a page boundary, then token by token.
Rows chains(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 150, 1);
  const auto sequence = model.open({});
  Rows rows;
  std::size_t done = 0;
  for (const std::size_t n : {1U, 2U, 5U, 16U, 33U, 64U}) {
    append(rows, test::run_and_keep(model, *sequence, part(tokens, done, n)));
    done += n;
  }
  append(rows, test::decode_one_by_one(model, *sequence, part(tokens, done, 4)));
  return rows;
}

// Nodes among wrong siblings over two passes, some of which are kept and so move; then more tokens.
Rows trees(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 100, 7);
  Rows rows;
  for (const std::size_t start : {0U, 14U, 61U}) {
    const auto sequence = model.open({});
    if (start > 0) append(rows, test::run_and_keep(model, *sequence, part(tokens, 0, start)));
    const std::vector<int> parents = {-1, -1, 1, 0, 1, 4, 4, 5};
    append(rows, test::run_block(model, *sequence, part(tokens, start, 8), parents));
    const std::vector<int> more_parents = {7, 7, 9};
    append(rows, test::run_block(model, *sequence, part(tokens, start + 8, 3), more_parents));
    const auto other = sequence->fork();
    sequence->keep(std::vector<int>{1, 4, 5, 7, 9, 10});
    append(rows, test::run_and_keep(model, *sequence, part(tokens, start + 11, 20)));
    append(rows, test::run_and_keep(model, *other, part(tokens, start + 20, 3)));
    if (start == 0) continue;
    sequence->truncate(static_cast<int>(start) - 2);
    append(rows, test::run_and_keep(model, *sequence, part(tokens, 0, 3)));
  }
  return rows;
}

// More nodes in other slots than the smallest program has memory for: three chains of 20 in
// parallel.
Rows wide_trees(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 100, 21);
  const auto sequence = model.open({});
  Rows rows = test::run_and_keep(model, *sequence, part(tokens, 0, 10));
  std::vector<int> parents;
  for (int node = 0; node < 60; ++node) parents.push_back(node < 3 ? -1 : node - 3);
  append(rows, test::run_block(model, *sequence, part(tokens, 10, 60), parents));
  sequence->keep(std::vector<int>{2, 5, 8});
  append(rows, test::run_and_keep(model, *sequence, part(tokens, 70, 2)));
  return rows;
}

// Several sequences in one pass, one of them a tree, with logits of all, some and no rows. The
// passes have few rows, some, and as many as a program may have.
Rows batches(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 120, 3);
  Rows rows;
  const auto a = model.open({});
  const auto b = model.open({});
  const auto c = model.open({});
  append(rows, test::run_and_keep(model, *a, part(tokens, 0, 70)));
  append(rows, test::run_and_keep(model, *c, part(tokens, 50, 5)));
  const std::vector<int> parents = {-1, -1, 1};
  for (const int n : {2, 21, 60}) {
    const TokenBlock blocks[] = {{a.get(), part(tokens, 100, 1), {}},
                                 {b.get(), part(tokens, 0, static_cast<std::size_t>(n)), {}},
                                 {c.get(), part(tokens, 30, 3), parents}};
    const int listed[] = {0, n - 1, n + 3};
    ForwardOutput output;
    for (const RowSet& asked :
         {RowSet{}, RowSet{RowSet::Kind::listed, listed},
          RowSet{RowSet::Kind::last_of_each_block, {}}, RowSet{RowSet::Kind::none, {}}}) {
      model.forward(blocks, {asked}, output);
      append(rows, test::rows_of(output));
      for (Sequence* const sequence : {a.get(), b.get(), c.get()}) sequence->keep({});
    }
  }
  return rows;
}

// Passes without some layers, and with features.
Rows features(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 40, 9);
  const int last = model.config().n_layers;
  Rows rows;
  for (const std::vector<int>& skipped : {std::vector<int>{}, std::vector<int>{last - 1}}) {
    const auto sequence = model.open({});
    const TokenBlock block{sequence.get(), part(tokens, 0, 11), {}};
    const std::vector<int> layers = {last, 0, 1};
    ForwardOutput output;
    model.forward({&block, 1}, {{}, layers, skipped}, output);
    append(rows, test::rows_of(output));
    for (int row = 0; row < 11; ++row) {
      const std::span<const float> feature = output.feature_row(row);
      rows.emplace_back(feature.begin(), feature.end());
    }
  }
  return rows;
}

// A text of several splits, whose cache grows.
Rows long_text(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 1100, 5);
  const auto sequence = model.open({});
  for (std::size_t done = 0; done < 1075; done += 215) {
    const TokenBlock block{sequence.get(), part(tokens, done, 215), {}};
    ForwardOutput output;
    model.forward({&block, 1}, {{RowSet::Kind::none, {}}}, output);
    test::keep_first(*sequence, 215);
  }
  Rows rows = test::run_and_keep(model, *sequence, part(tokens, 1075, 3));
  append(rows, test::decode_one_by_one(model, *sequence, part(tokens, 1078, 2)));
  return rows;
}

// A text of one page after a longer one, for which the buffer of words grew: as many rows as the
// first pass had, at other positions.
Rows short_after_long(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 200, 17);
  const auto sequence = model.open({});
  Rows rows = test::run_and_keep(model, *sequence, part(tokens, 0, 64));
  append(rows, test::run_and_keep(model, *sequence, part(tokens, 64, 64)));
  const auto other = model.open({});
  append(rows, test::run_and_keep(model, *other, part(tokens, 100, 10)));
  append(rows, test::run_and_keep(model, *other, part(tokens, 110, 54)));
  return rows;
}

// Few rows with logits at a time, after a page of a text; a tree, some of which is kept, and a
// fork.
Rows few_at_once(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 100, 13);
  const auto sequence = model.open({});
  const TokenBlock block{sequence.get(), part(tokens, 0, 61), {}};
  ForwardOutput output;
  model.forward({&block, 1}, {{RowSet::Kind::none, {}}}, output);
  test::keep_first(*sequence, 61);
  const std::vector<int> parents = {-1, -1, 1, 0, 1, 4, 4, 5};
  Rows rows = test::run_block(model, *sequence, part(tokens, 61, 8), parents);
  const auto other = sequence->fork();
  sequence->keep(std::vector<int>{1, 4, 5, 7});
  append(rows, test::run_and_keep(model, *sequence, part(tokens, 70, 3)));
  append(rows, test::run_and_keep(model, *other, part(tokens, 80, 3)));
  return rows;
}

// A sequence as bytes, and another one restored from them.
Rows saved(LanguageModel& model) {
  const std::vector<TokenId> tokens = tokens_for(model, 90, 11);
  const auto sequence = model.open({});
  Rows rows = test::run_and_keep(model, *sequence, part(tokens, 0, 70));
  std::vector<std::byte> bytes;
  model.save(*sequence, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  std::size_t at = 0;
  const auto restored = model.restore(70, [&](std::span<std::byte> piece) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), piece.begin());
    at += piece.size();
  });
  append(rows, test::run_and_keep(model, *restored, part(tokens, 70, 5)));
  Row as_floats(bytes.size() / sizeof(float));
  std::memcpy(as_floats.data(), bytes.data(), as_floats.size() * sizeof(float));
  rows.push_back(as_floats);
  return rows;
}

constexpr Form kForms[] = {{WeightKind::int8, KvKind::f32},
                           {WeightKind::int4, KvKind::bf16},
                           {WeightKind::int8, KvKind::int8}};

TEST_P(DevicePasses, RunChains) {
  for (const Form& form : kForms) {
    expect_same_bits("tiny_llama", form, chains);
    expect_same_bits("tiny_ragged", form, chains);
  }
}

TEST_P(DevicePasses, RunTrees) {
  for (const Form& form : kForms) {
    expect_same_bits("tiny_llama", form, trees);
    expect_same_bits("tiny_ragged", form, trees);
  }
}

TEST_P(DevicePasses, RunShortTextsAfterLongOnes) {
  expect_same_bits("tiny_llama", {}, short_after_long);
}

TEST_P(DevicePasses, RunWideTrees) { expect_same_bits("tiny_ragged", {}, wide_trees); }

TEST_P(DevicePasses, RunBatches) {
  for (const Form& form : kForms) expect_same_bits("tiny_ragged", form, batches);
}

TEST_P(DevicePasses, LeaveFeaturesAndLeaveOutLayers) {
  expect_same_bits("tiny_ragged", {}, features);
}

TEST_P(DevicePasses, RunLongTexts) {
  for (const Form& form : kForms) {
    if (GetParam() != Where::host && form.kv != KvKind::f32) continue;  // it takes long
    expect_same_bits("tiny_long", form, long_text);
  }
}

TEST_P(DevicePasses, GiveAndTakeTheSameBytes) {
  for (const Form& form : kForms) expect_same_bits("tiny_ragged", form, saved);
}

// Matrices and caches larger than the device's limit for one allocation.
TEST_P(DevicePasses, ShareOutWhatIsTooLargeForOneAllocation) {
  constexpr std::size_t kMaxBytes = 100000;
  for (const Form& form : kForms) {
    const auto wide = std::make_shared<test::WatchedDevice>(open(GetParam()));
    const auto narrow = std::make_shared<test::WatchedDevice>(open(GetParam()), kMaxBytes);
    const Rows expected = few_at_once(*load(files_of("tiny_wide"), form, nullptr));
    test::expect_same_bits(expected, 0, few_at_once(*load(files_of("tiny_wide"), form, wide)));
    test::expect_same_bits(expected, 0, few_at_once(*load(files_of("tiny_wide"), form, narrow)));
    EXPECT_GT(wide->largest(), kMaxBytes) << "nothing had to be shared out";
  }
}

// Only the device keeps the weights of products, except for the output matrix, which heads read on
// the host.
TEST_P(DevicePasses, GiveBackTheMemoryOfMatrices) {
  for (const bool is_on_device : {false, true}) {
    const auto model = load(files_of("tiny_llama"), {}, is_on_device ? open(GetParam()) : nullptr);
    int n_matrices = 0;
    for (const Op& op : dynamic_cast<const DecoderModel&>(*model).executor().list().ops) {
      const auto* const multiply = std::get_if<op::Multiply>(&op.what);
      if (multiply == nullptr) continue;
      for (int i = 0; i < multiply->n_products; ++i) {
        const auto& product = multiply->products[static_cast<std::size_t>(i)];
        const bool stays = !is_on_device || product.to.buffer == kLogits;
        EXPECT_EQ(product.matrix->packed().empty(), !stays);
        EXPECT_GT(product.matrix->packed_bytes(), 0U);
        ++n_matrices;
      }
    }
    EXPECT_EQ(n_matrices, 2 * 7 + 1);
    EXPECT_EQ(model->footprint().mapped_bytes, 0);
  }
}

// Each family's tiny model either runs, with the processor's bits, or is refused in one line.
TEST_P(DevicePasses, RunDenseFamilies) {
  const std::set<std::string> expected = {"gemma2_capped",
                                          "gemma2_uncapped_scores",
                                          "gemma2_wide",
                                          "gemma3_capped",
                                          "gpt2_odd",
                                          "gpt2_plain",
                                          "gpt2_short",
                                          "gpt_neox_parallel",
                                          "gpt_neox_sequential",
                                          "gpt_neox_whole",
                                          "gemma3_mixed",
                                          "gemma3_one_in_three",
                                          "gemma3_scaled",
                                          "gemma4_keys",
                                          "granite_biased",
                                          "granite_tied",
                                          "granite_untied",
                                          "llama_linear_tied",
                                          "llama_plain",
                                          "llama_scaled_biased",
                                          "mistral_whole",
                                          "mistral_window",
                                          "mistral_yarn",
                                          "olmo2_biased",
                                          "olmo2_grouped",
                                          "olmo2_plain",
                                          "phi3_crossing",
                                          "phi3_long",
                                          "phi3_window",
                                          "qwen2_linear",
                                          "qwen2_tied",
                                          "qwen2_untied",
                                          "qwen2_yarn",
                                          "qwen3_linear",
                                          "qwen3_tied",
                                          "qwen3_untied",
                                          "smollm3_fourth",
                                          "smollm3_listed",
                                          "smollm3_window"};
  std::set<std::string> ran;
  std::size_t turn = 0;
  for (const std::string& name : test::golden_names()) {
    ++turn;
    // By day the two orders of emulated threads take turns.
    const auto other = turn % 2 == 0 ? Where::cuda_descending : Where::cuda_shuffled;
    if (GetParam() == other && !test::nightly()) {
      if (expected.count(name) > 0) ran.insert(name);
      continue;
    }
    for (std::size_t i = 0; i < std::size(kForms); ++i) {
      // On other devices one form of each: families differ in their ops, not in how these run.
      if (GetParam() != Where::host && i != turn % std::size(kForms)) continue;
      const Form& form = kForms[i];
      try {
        (void)load(files_of(name), form, open(Where::host));
      } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--device test")) << name;
        EXPECT_THAT(error.what(), HasSubstr("(on a device)")) << name;
        EXPECT_THAT(error.what(), Not(HasSubstr("\n"))) << name;
        break;
      }
      ran.insert(name);
      expect_same_bits(name, form, trees);
    }
  }
  EXPECT_EQ(ran, expected);
}

TEST_P(DevicePasses, TakeFewProgramsForPassesOfAllSizes) {
  const auto device = open(GetParam());
  // Emulated kernels are slow.
  const bool is_emulated =
      GetParam() == Where::cuda_descending || GetParam() == Where::cuda_shuffled;
  const int max_rows = is_emulated ? 32 : 64;
  const auto run_all = [&](LanguageModel& model) {
    const std::vector<TokenId> tokens = tokens_for(model, 64, 2);
    const auto sequence = model.open({});
    Rows rows;
    for (int n = 1; n <= max_rows; ++n) {
      append(rows, test::run_block(model, *sequence, part(tokens, 0, static_cast<std::size_t>(n))));
      sequence->keep({});
    }
    return rows;
  };
  const auto model = load(files_of("tiny_llama"), {}, device);
  const auto& pass =
      dynamic_cast<const DevicePass&>(dynamic_cast<const DecoderModel&>(*model).executor());
  const Rows expected = run_all(*load(files_of("tiny_llama"), {}, nullptr));
  test::expect_same_bits(expected, 0, run_all(*model));
  (void)run_all(*model);  // the first time buffers grow, and programs are dropped with them
  const std::size_t n_programs = pass.n_programs();
  EXPECT_LE(n_programs, 8U);
  test::expect_same_bits(expected, 0, run_all(*model));
  EXPECT_EQ(pass.n_programs(), n_programs);
}

#if defined(OUTRIDER_HAS_VULKAN)
// The validation layer follows the reads and writes of all steps (instance.cc).
TEST(DeviceValidation, HasNothingToSayOfPasses) {
  if (!device::has_validation_layer()) {
    GTEST_SKIP() << "no validation layer (scripts/install-deps gpu)";
  }
  const device::FoundTestDevice found = device::find_test_device(true);
  if (!found.why_none.empty()) GTEST_SKIP() << found.why_none;
  const std::shared_ptr<device::Device> device = device::open_vulkan(found.instance, found.index);
  for (const Form& form : kForms) {
    for (const char* name : {"tiny_llama", "gemma3_mixed"}) {
      for (const auto& script : {trees, few_at_once}) {
        const Rows expected = script(*load(files_of(name), form, nullptr));
        test::expect_same_bits(expected, 0, script(*load(files_of(name), form, device)));
      }
    }
  }
  EXPECT_THAT(found.instance->messages(), ::testing::IsEmpty());
}
#endif

std::string name_of_place(Where where) {
  constexpr const char* kNames[] = {"Host", "HostReversed", "Vulkan", "CudaEmulatedDescending",
                                    "CudaEmulatedShuffled"};
  return kNames[static_cast<int>(where)];
}

INSTANTIATE_TEST_SUITE_P(On, DevicePasses,
                         ::testing::Values(Where::host, Where::host_reversed, Where::vulkan,
                                           Where::cuda_descending, Where::cuda_shuffled),
                         [](const auto& info) { return name_of_place(info.param); });

}  // namespace
}  // namespace outrider
