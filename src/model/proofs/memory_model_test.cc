// SPDX-License-Identifier: Apache-2.0
// Models of every family from memory: the bits of a load from the directory, even after the
// borrowed bytes are gone.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "io/memory_tensors.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/memory_files.h"

namespace outrider {
namespace {

using test::GoldenModel;
using test::MemoryFiles;
using test::Rows;

Rows logits_of(LanguageModel& model, const GoldenModel& golden) {
  const auto sequence = model.open({.encoder_tokens = golden.encoder_ids});
  if (!golden.encoder_ids.empty()) model.encode(*sequence);
  return test::run_block(model, *sequence, golden.ids);
}

bool same_bits(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() ||
        std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

class MemoryModel : public ::testing::TestWithParam<std::string> {};

TEST_P(MemoryModel, HasTheBitsOfItsDirectory) {
  const GoldenModel golden(GetParam());
  const LoadOptions options{.n_threads = 1};
  MemoryFiles files(golden.directory);
  const auto borrowed = [&files] { return std::make_unique<MemoryTensors>(files.views, "memory"); };
  const auto from_memory = load_model(files.folder(), borrowed(), options);
  files.spoil();
  const auto from_files = load_model(golden.directory, options);
  EXPECT_TRUE(same_bits(logits_of(*from_memory, golden), logits_of(*from_files, golden)));
  EXPECT_EQ(from_memory->footprint().weight_bytes, from_files->footprint().weight_bytes);
  EXPECT_EQ(from_memory->config().end_tokens, from_files->config().end_tokens);
  EXPECT_EQ(from_memory->warnings().size(), from_files->warnings().size());
  // An output matrix in fewer bits is made from the original tensors.
  const auto narrower = from_memory->narrower_output(WeightKind::int4);
  EXPECT_EQ(narrower.has_value(), from_files->narrower_output(WeightKind::int4).has_value());
  std::vector<float> embedded(static_cast<std::size_t>(from_files->config().dim));
  std::vector<float> expected = embedded;
  from_memory->embed({&golden.ids[0], 1}, embedded);
  from_files->embed({&golden.ids[0], 1}, expected);
  EXPECT_EQ(embedded, expected);
}

INSTANTIATE_TEST_SUITE_P(, MemoryModel,
                         ::testing::ValuesIn(test::golden_names("model.safetensors")),
                         [](const auto& info) { return info.param; });

TEST(MemoryModelExperts, AreNotMapped) {
  const MemoryFiles files(test::golden_directory("mixtral_plain"));
  EXPECT_THROW(load_model(files.folder(), std::make_unique<MemoryTensors>(files.views, "memory"),
                          {.experts_in_file = true, .n_threads = 1}),
               UsageError);
}

}  // namespace
}  // namespace outrider
