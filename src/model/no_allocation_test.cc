// Once warm, decoding allocates nothing: not the pass, not the cache, not keep().
#include <gtest/gtest.h>

#include "model/load_model.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace outrider {
namespace {

TEST(LlamaModel, AllocatesNothingOnceWarm) {
  if (!testing::kCountsAllocations) GTEST_SKIP() << testing::kWhyNotCounted;
  const testing::TemporaryDirectory directory;
  testing::write_hugging_face(testing::make_tiny_model({}), directory.path());
  for (const auto kind : {kernels::WeightKind::f32, kernels::WeightKind::int8}) {
    LoadOptions options;
    options.weights = kind;
    options.n_threads = 1;
    const auto model = load_model(directory.path(), options);
    ForwardOutput output;
    const TokenId tokens[] = {5, 6, 7, 8};
    const int parents[] = {-1, -1, 1, 2};
    const int path[] = {1, 2};
    const auto sequence = model->open({});
    const TokenBlock block{sequence.get(), tokens, parents};
    const auto rounds = [&] {
      for (int i = 0; i < 40; ++i) {
        model->forward({&block, 1}, {}, output);
        sequence->keep(path);
      }
    };
    rounds();
    sequence->truncate(3);
    const long before = testing::n_allocations;
    rounds();
    EXPECT_EQ(testing::n_allocations, before);
    EXPECT_EQ(sequence->n_kept(), 83);
  }
  EXPECT_GT(testing::n_allocations, 0);
}

// A sequence that was opened with room for what comes: no need to have been that long before.
TEST(LlamaModel, AllocatesNothingWithinWhatWasReserved) {
  if (!testing::kCountsAllocations) GTEST_SKIP() << testing::kWhyNotCounted;
  const testing::TemporaryDirectory directory;
  testing::write_hugging_face(testing::make_tiny_model({}), directory.path());
  LoadOptions options;
  options.n_threads = 1;
  const auto model = load_model(directory.path(), options);
  const auto sequence = model->open({.encoder_tokens = {}, .n_reserved = 203});
  ForwardOutput output;
  const TokenId tokens[] = {5, 6, 7};
  const int path[] = {0, 1};
  const TokenBlock block{sequence.get(), tokens, {}};
  long before = 0;
  for (int round = 0; round < 100; ++round) {
    if (round == 2) before = testing::n_allocations;
    model->forward({&block, 1}, {}, output);
    sequence->keep(path);
  }
  EXPECT_EQ(testing::n_allocations, before);
  EXPECT_EQ(sequence->n_kept(), 200);
}

}  // namespace
}  // namespace outrider
