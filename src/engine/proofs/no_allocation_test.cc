// SPDX-License-Identifier: Apache-2.0
// Once warm, generation allocates nothing on any thread: in passes, cache, drafting, verification
// or commit. Warm means that a text of the same length came before, whose cache pages are free
// again (model/proofs/no_allocation_test.cc tests new pages). Covers plain decoding and chains of a
// model; lookup drafters are exempt, since their index grows with the text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/decoder_model.h"
#include "outrider/generate.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

constexpr int kDraftLength = 4;
constexpr int kWarmUpRounds = 16;
constexpr int kRounds = 64;
// A round commits at most its draft and one token.
constexpr int kWarmUpTokens = kWarmUpRounds * (kDraftLength + 1);
constexpr int kTokens = kWarmUpTokens + kRounds * (kDraftLength + 1);

class NoAllocation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<test::TemporaryDirectory>();
    test::write_tiny_pair(directory_->path());
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static std::string draft() { return (directory_->path() / "draft").string(); }

  // Generates a text twice. The second time it counts allocations from the first token after
  // kWarmUpTokens (so after at least kWarmUpRounds) to the last.
  static void expect_none(const std::string& drafter, const std::string& verify,
                          const SamplingParams& sampling, int n_threads) {
    SCOPED_TRACE(drafter + " " + verify + " temperature " + std::to_string(sampling.temperature) +
                 " top-p " + std::to_string(sampling.top_p) + " threads " +
                 std::to_string(n_threads));
    const auto model = Model::load(directory_->path() / "target", {.threads = n_threads});
    // However small the work: with more than one thread, the runtime's part is tested too.
    dynamic_cast<DecoderModel&>(model->language_model()).set_min_share_ns(0);
    SpeculationOptions speculation;
    speculation.verify = verify;
    speculation.drafter_options = {.threads = n_threads};
    if (!drafter.empty()) {
      speculation.drafter = drafter;
      speculation.tree = "chain:length=" + std::to_string(kDraftLength);
    }
    long before = -1;
    long after = -1;
    int n_tokens = 0;
    GenerateOptions options{.max_tokens = kTokens, .sampling = sampling, .ignore_eos = true};
    Generator generator(model, speculation);
    const std::string prompt = "A small test of some words.";
    const std::vector<TokenId> ids = generator.generate(prompt, options).ids;
    options.on_token = [&](const TokenEvent&) {
      ++n_tokens;
      if (n_tokens == kWarmUpTokens + 1) before = test::n_allocations;
      if (n_tokens == kTokens) after = test::n_allocations;
    };
    const GenerateResult result = generator.generate(prompt, options);
    ASSERT_EQ(result.ids.size(), static_cast<std::size_t>(kTokens));
    EXPECT_EQ(result.ids, ids);
    EXPECT_EQ(result.statistics.accepted > 0, !drafter.empty());
    EXPECT_EQ(after - before, 0);
  }

  static inline std::unique_ptr<test::TemporaryDirectory> directory_;
};

std::vector<SamplingParams> samplings() {
  return {{.temperature = 0},
          {.temperature = 0.8, .top_p = 0.95},
          {.temperature = 1},
          {.temperature = 0.7, .top_k = 40, .top_p = 0.9, .repetition_penalty = 1.1}};
}

TEST_F(NoAllocation, PlainDecoding) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  for (const int n_threads : {1, 2}) {
    for (const SamplingParams& sampling : samplings()) {
      expect_none("", "exact", sampling, n_threads);
    }
  }
}

TEST_F(NoAllocation, ChainsOfAModel) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
    for (const SamplingParams& sampling : samplings()) {
      expect_none("model:" + draft(), verify, sampling, 1);
    }
    // Two threads meet at ten barriers per layer, which is slow on a busy machine: once each.
    expect_none("model:" + draft(), verify, samplings()[1], 2);
  }
}

// With an encoder-decoder: passes that read the encoder's output, and biases by distance.
TEST(NoAllocationOfEncoderDecoders, PlainDecodingAndChains) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  const test::GoldenModel golden("t5_plain");
  const std::string path = (golden.directory / "model.gguf").string();
  for (const bool drafts : {false, true}) {
    const auto model = Model::load(path, {.threads = 2});
    dynamic_cast<DecoderModel&>(model->language_model()).set_min_share_ns(0);
    SpeculationOptions speculation{.verify = "coupled", .drafter_options = {.threads = 2}};
    if (drafts) {
      speculation.drafter = "model:" + path + ",weights=int8";
      speculation.tree = "chain:length=" + std::to_string(kDraftLength);
    }
    long before = -1;
    long after = -1;
    int n_tokens = 0;
    Generator generator(model, speculation);
    GenerateRequest request{
        .prompt = golden.encoder_ids,
        .options = {.max_tokens = kTokens, .sampling = {.temperature = 1}, .ignore_eos = true}};
    const std::vector<TokenId> ids = generator.generate({&request, 1}).front().ids;
    request.options.on_token = [&](const TokenEvent&) {
      ++n_tokens;
      if (n_tokens == kWarmUpTokens + 1) before = test::n_allocations;
      if (n_tokens == kTokens) after = test::n_allocations;
    };
    const GenerateResult result = std::move(generator.generate({&request, 1}).front());
    EXPECT_EQ(result.ids, ids);
    EXPECT_EQ(result.statistics.accepted > 0, drafts);
    EXPECT_EQ(after - before, 0) << drafts;
  }
}

// The test can fail: every kind of allocation is counted.
TEST_F(NoAllocation, CountsAreOfEveryKind) {
  if (!test::kCountsAllocations) GTEST_SKIP() << test::kWhyNotCounted;
  const long before = test::n_allocations;
  void* volatile raw = std::malloc(10);
  EXPECT_EQ(test::n_allocations, before + 1);
  raw = std::realloc(raw, 1000);
  EXPECT_EQ(test::n_allocations, before + 2);
  std::free(raw);
  int* volatile made = new int(1);
  EXPECT_EQ(test::n_allocations, before + 3);
  delete made;
  struct alignas(64) Wide {
    char bytes[64];
  };
  Wide* volatile wide = new Wide;
  EXPECT_EQ(test::n_allocations, before + 4);
  delete wide;
}

}  // namespace
}  // namespace outrider
