// SPDX-License-Identifier: Apache-2.0
// Once warm, decoding allocates nothing: in the pass, the cache or keep(). If a sequence grows by a
// page, that page may be allocated, and lists as long as the sequence may grow.
#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/table.h"
#include "model/cache/kv_sequence.h"
#include "model/decoder_model.h"
#include "model/load_model.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

void expect_no_allocations(const test::TinyShape& shape) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path());
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
    const long before = test::n_allocations;
    rounds();
    EXPECT_EQ(test::n_allocations, before);
    EXPECT_EQ(sequence->n_kept(), 83);
  }
  EXPECT_GT(test::n_allocations, 0);
}

TEST(DecoderModel, AllocatesNothingOnceWarm) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  expect_no_allocations({});
}

// Whichever experts the rows choose.
TEST(DecoderModel, AllocatesNothingForExperts) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  test::TinyShape shape;
  shape.n_experts = 6;
  shape.n_experts_used = 2;
  expect_no_allocations(shape);
}

// A sequence longer than any before allocates only for new pages. The next one reuses those pages;
// if its length was announced, it allocates nothing.
TEST(DecoderModel, AllocatesForNewPagesAlone) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  const test::TemporaryDirectory directory;
  constexpr int kRounds = 500;
  test::TinyShape shape;
  shape.context_length = 2 * kRounds + 3;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path());
  LoadOptions options;
  options.n_threads = 1;
  const auto model = load_model(directory.path(), options);
  ForwardOutput output;
  const TokenId tokens[] = {5, 6, 7};
  const int path[] = {0, 1};
  constexpr int kWarmUpRounds = 2;
  int n_rounds_with_new_pages = 0;
  for (const bool is_first : {true, false}) {
    const auto sequence =
        model->open({.encoder_tokens = {}, .n_reserved = is_first ? 0 : 2 * kRounds + 3});
    const PagePool& pool = dynamic_cast<KvSequence&>(*sequence).cache()->pool();
    const TokenBlock block{sequence.get(), tokens, {}};
    for (int round = 0; round < kRounds; ++round) {
      const long before = test::n_allocations;
      const int n_pages = pool.n_pages();
      model->forward({&block, 1}, {}, output);
      sequence->keep(path);
      if (round < kWarmUpRounds) continue;
      if (is_first && pool.n_pages() > n_pages) {
        n_rounds_with_new_pages += test::n_allocations > before ? 1 : 0;
      } else {
        ASSERT_EQ(test::n_allocations, before) << round;
        ASSERT_EQ(pool.n_pages(), n_pages);
      }
    }
    EXPECT_EQ(sequence->n_kept(), 2 * kRounds);
  }
  // Lists and memory double: of 16 pages only few allocate, but the second does.
  EXPECT_GT(n_rounds_with_new_pages, 0);
  EXPECT_LE(n_rounds_with_new_pages, 5);
}

// Recurrent layers as well: inputs of pending nodes and states reuse pages, and nodes' states reuse
// buffers of earlier passes. Also latents, whose chunks are expanded in existing buffers, and heads
// of two widths.
class FurtherModel : public ::testing::TestWithParam<const char*> {};

TEST_P(FurtherModel, AllocatesNothing) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  const test::TemporaryDirectory directory;
  test::copy_changed(GetParam(), {{"max_position_embeddings", 1024}}, directory.path());
  const auto model = load_model(directory.path(), {.n_threads = 1});
  ForwardOutput output;
  const TokenId tokens[] = {5, 6, 7, 8};
  const int parents[] = {-1, -1, 1, 2};
  const int path[] = {1, 2};
  for (const bool is_first : {true, false}) {
    const auto sequence = model->open({.n_reserved = 1000});
    const PagePool& pool = dynamic_cast<KvSequence&>(*sequence).cache()->pool();
    const TokenBlock block{sequence.get(), tokens, parents};
    for (int round = 0; round < 400; ++round) {
      const long before = test::n_allocations;
      const int n_pages = pool.n_pages();
      model->forward({&block, 1}, {}, output);
      sequence->keep(path);
      if (round < 2 || (is_first && pool.n_pages() > n_pages)) continue;
      ASSERT_EQ(test::n_allocations, before) << round;
      ASSERT_EQ(pool.n_pages(), n_pages);
    }
    EXPECT_EQ(sequence->n_kept(), 800);
  }
}

INSTANTIATE_TEST_SUITE_P(, FurtherModel,
                         ::testing::Values("lfm2_long", "qwen3_5_long", "granite_hybrid_long",
                                           "nemotron_h_long", "nemotron_h_latent",
                                           "deepseek_v3_plain", "gemma4_shared", "gemma4_moe"),
                         [](const auto& info) { return std::string(info.param); });

// Splits of a context that two threads share: the prompt's passes are too wide to share them, but
// have sized the buffers for one row and for a draft.
TEST(DecoderModel, AllocatesNothingWhereSplitsAreShared) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.context_length = 2 * kernels::kSplitKeys;
  shape.n_heads = 3;
  shape.n_kv_heads = 3;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path());
  LoadOptions options;
  options.n_threads = 2;
  const auto model = load_model(directory.path(), options);
  dynamic_cast<DecoderModel&>(*model).set_min_share_ns(0);
  const auto sequence =
      model->open({.encoder_tokens = {}, .n_reserved = kernels::kSplitKeys + 200});
  ForwardOutput output;
  std::vector<int> path(100);
  std::iota(path.begin(), path.end(), 0);
  const std::vector<TokenId> tokens(100, 5);
  const auto pass = [&](std::size_t n) {
    const TokenBlock block{sequence.get(), std::span(tokens).first(n), {}};
    model->forward({&block, 1}, {}, output);
    sequence->keep(std::span(path).first(n));
  };
  for (int i = 0; i < 11; ++i) pass(100);
  ASSERT_GT(sequence->n_kept(), kernels::kSplitKeys);
  const long before = test::n_allocations;
  for (const std::size_t n : {1, 5, 1, 64}) pass(n);
  EXPECT_EQ(test::n_allocations, before);
}

}  // namespace
}  // namespace outrider
