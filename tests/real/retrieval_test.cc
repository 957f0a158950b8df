// SPDX-License-Identifier: Apache-2.0
// Retrieval on real weights: texts equal the golden ones bit for bit, and every round accepts
// exactly the draft tokens that a search through the plain text finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/datastore.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/proofs/retrieval_oracle.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;

fs::path shared() { return OUTRIDER_SHARED_DATA; }

struct Golden {
  std::string prompt;
  std::vector<TokenId> prompt_ids;
  std::vector<TokenId> greedy_ids;
};

std::vector<Golden> goldens() {
  std::ifstream file(shared() / "models" / "stories260K" / "golden.json");
  std::vector<Golden> all;
  for (const auto& golden : nlohmann::json::parse(file)) {
    all.push_back({golden.at("prompt"), golden.at("prompt_ids"), golden.at("greedy_ids")});
  }
  return all;
}

constexpr std::string_view kSeparator = "<|endoftext|>";

// Documents split as in a store.
std::vector<std::vector<TokenId>> encode_documents(std::string_view text,
                                                   const Tokenizer& tokenizer) {
  std::vector<std::vector<TokenId>> documents;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(kSeparator, begin), text.size());
    std::string_view document = text.substr(begin, end - begin);
    begin = std::min(end + kSeparator.size(), text.size());
    const std::size_t first = document.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) continue;
    documents.push_back(tokenizer.encode(document.substr(first), true));
    documents.back().push_back(tokenizer.eos_token());
  }
  return documents;
}

class RealRetrieval : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(shared() / "models" / "stories260K" / "golden.json")) {
      GTEST_SKIP() << "no shared data folder";
    }
    model_ = Model::load(shared() / "models" / "stories260K", {.threads = 1});
    std::ifstream file(shared() / "text" / "tinystories_2MiB.txt", std::ios::binary);
    text_ = {std::istreambuf_iterator<char>(file), {}};
    ASSERT_GT(text_.size(), 2000000U);
    // A quarter suffices, and the search without an index is slow.
    text_.resize(text_.find(kSeparator, text_.size() / 4));
    std::ofstream(directory_.path() / "text") << text_;
  }

  std::string store(std::uint32_t segment_tokens) const {
    const fs::path path = directory_.path() / ("store" + std::to_string(segment_tokens));
    const fs::path texts[] = {directory_.path() / "text"};
    build_datastore(
        model_->tokenizer(), texts, path,
        {.separator = std::string(kSeparator), .segment_tokens = segment_tokens, .progress = {}});
    return path.string();
  }

  TemporaryDirectory directory_;
  std::shared_ptr<const Model> model_;
  std::string text_;
};

TEST_F(RealRetrieval, AcceptsWhatASearchOfTheTextFinds) {
  const auto documents = encode_documents(text_, model_->tokenizer());
  struct Case {
    std::uint32_t segment_tokens;
    const char* tree;
    int depth, n_nodes;
    bool is_chain;
  };
  constexpr Case kCases[] = {{1 << 24, "", 10, 64, false},
                             {30000, "", 10, 64, false},
                             {1 << 24, "chain:length=5", 5, 5, true},
                             {50000, "widths:4,2,2", 3, 28, false}};
  for (const Case& each : kCases) {
    const RetrievalOracle oracle(documents, each.segment_tokens);
    Generator generator(
        model_, {.drafter = "retrieval:path=" + store(each.segment_tokens), .tree = each.tree});
    for (const Golden& golden : goldens()) {
      const int n_tokens = static_cast<int>(golden.greedy_ids.size());
      const GenerateResult result = generator.generate(golden.prompt, {.max_tokens = n_tokens});
      EXPECT_EQ(result.ids, golden.greedy_ids) << golden.prompt;

      std::vector<TokenId> tokens = golden.prompt_ids;
      tokens.insert(tokens.end(), golden.greedy_ids.begin(), golden.greedy_ids.end());
      std::vector<int> accepted_per_round;
      std::int64_t drafted = 0;
      for (std::size_t at = golden.prompt_ids.size(); at < tokens.size();) {
        const std::span<const TokenId> context = std::span(tokens).first(at);
        // A round leaves one place for the verifier's own token.
        const int depth = std::min(each.depth, static_cast<int>(tokens.size() - at) - 1);
        std::vector<TokenPath> draft;
        if (depth > 0) draft = oracle.draft(context, depth, each.n_nodes, each.is_chain);
        const int accepted = n_agreeing(draft, std::span(tokens).subspan(at));
        drafted += static_cast<std::int64_t>(draft.size());
        accepted_per_round.push_back(accepted);
        at += static_cast<std::size_t>(accepted) + 1;
      }
      EXPECT_EQ(result.accepted_per_round, accepted_per_round) << golden.prompt;
      EXPECT_EQ(result.statistics.drafted, drafted);
      EXPECT_EQ(result.statistics.target_passes,
                static_cast<std::int64_t>(accepted_per_round.size()));
      EXPECT_EQ(result.statistics.drafter_passes, 0);
      EXPECT_GT(result.statistics.tau(), 1.2) << golden.prompt;  // it is of some use
    }
  }
}

TEST_F(RealRetrieval, EveryVerificationGivesPlainOutput) {
  const std::string drafter = "retrieval:path=" + store(1 << 24);
  const auto run = [&](const SpeculationOptions& speculation, double temperature) {
    Generator generator(model_, speculation);
    std::vector<GenerateResult> results;
    for (const Golden& golden : goldens()) {
      results.push_back(generator.generate(golden.prompt, {.max_tokens = 60,
                                                           .sampling = {.temperature = temperature},
                                                           .seed = 3,
                                                           .keep_logits = true}));
    }
    return results;
  };
  const auto plain = run({}, 0);
  const auto plain_sampled = run({}, 0.8);
  for (const char* verify : {"exact", "traversal", "coupled"}) {
    const auto drafted = run({.drafter = drafter, .verify = verify}, 0);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(drafted[i].ids, plain[i].ids) << verify;
      EXPECT_EQ(drafted[i].logits, plain[i].logits) << verify;
    }
  }
  const auto sampled = run({.drafter = drafter, .verify = "coupled"}, 0.8);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(sampled[i].ids, plain_sampled[i].ids);
    EXPECT_EQ(sampled[i].logits, plain_sampled[i].logits);
  }
  const auto chain = run({.drafter = drafter, .tree = "chain:length=6", .verify = "block"}, 0);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(chain[i].ids, plain[i].ids);
}

}  // namespace
}  // namespace outrider::test
