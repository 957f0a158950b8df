// SPDX-License-Identifier: Apache-2.0
// Generation within a limit on the KV caches' memory, and beyond it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/cache/cache_group.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

class KvMemory : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<test::TemporaryDirectory>();
    test::write_tiny_pair(directory_->path());
    bytes_per_token_ = static_cast<std::uint64_t>(load(0)->summary().kv_bytes_per_token);
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static std::shared_ptr<const Model> load(std::uint64_t kv_memory_bytes) {
    return Model::load(directory_->path() / "target",
                       {.kv_memory_bytes = kv_memory_bytes, .threads = 1});
  }
  static GenerateRequest request(const Model& model, int max_tokens) {
    return {.prompt = model.tokenizer().encode("A small test.", true),
            .options = {.max_tokens = max_tokens, .ignore_eos = true}};
  }

  static inline std::unique_ptr<test::TemporaryDirectory> directory_;
  static inline std::uint64_t bytes_per_token_ = 0;
};

TEST_F(KvMemory, ATextThatNeedsMoreEndsWithAnError) {
  const auto unbounded = load(0);
  const std::uint64_t most = 3 * kPageTokens * bytes_per_token_;
  const auto model = load(most);
  for (const bool drafts : {false, true}) {
    SpeculationOptions speculation;
    if (drafts) speculation.drafter = "model:" + (directory_->path() / "draft").string();
    Generator generator(model, speculation);
    Generator reference(unbounded, {});
    const auto fits = request(*model, 2 * kPageTokens);
    const auto expected = reference.generate({&fits, 1})[0].ids;
    EXPECT_EQ(generator.generate({&fits, 1})[0].ids, expected);
    int n_tokens = 0;
    auto too_long = request(*model, 4 * kPageTokens);
    too_long.options.on_token = [&](const TokenEvent&) { ++n_tokens; };
    try {
      generator.generate({&too_long, 1});
      FAIL() << "four pages in three";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("[forward] KV cache"), std::string::npos) << what;
      EXPECT_NE(what.find(std::to_string(most) + " bytes (--kv-memory)"), std::string::npos)
          << what;
    }
    // It has used the memory and freed it all.
    EXPECT_GT(n_tokens, 2 * kPageTokens);
    EXPECT_EQ(generator.generate({&fits, 1})[0].ids, expected);
    // Two texts together need four pages: one waits for the other.
    const std::vector<GenerateRequest> both = {fits, fits};
    for (const GenerateResult& result : generator.generate(both)) EXPECT_EQ(result.ids, expected);
    EXPECT_EQ(generator.generate({&fits, 1})[0].ids, expected);
  }
}

// Memory is taken as needed: a limit far below the request's maximum does not matter if the text
// ends earlier.
TEST_F(KvMemory, IsNotSetAsideForTokensThatMayCome) {
  const auto model = load(kPageTokens * bytes_per_token_);
  Generator generator(model, {});
  auto request = this->request(*model, 2000);
  int n_tokens = 0;
  std::atomic<bool> cancel = false;
  request.options.cancel = &cancel;
  request.options.on_token = [&](const TokenEvent&) { cancel = ++n_tokens == 20; };
  const auto results = generator.generate({&request, 1});
  EXPECT_EQ(results[0].ids.size(), 20U);
  EXPECT_EQ(results[0].finish_reason, FinishReason::cancelled);
}

TEST_F(KvMemory, MustHoldAPage) {
  const std::uint64_t page_bytes = kPageTokens * bytes_per_token_;
  EXPECT_NO_THROW(load(page_bytes));
  EXPECT_THROW(load(page_bytes - 1), UsageError);
}

}  // namespace
}  // namespace outrider
