// SPDX-License-Identifier: Apache-2.0
// Drafters composed of others, on real weights at temperature 0: the golden texts, and in every
// round the result of an independent account. The account composes the parts' drafts as
// docs/drafters.md describes and uses nothing but the small model and the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "model/load_model.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/proofs/lookup_oracle.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<TokenId>;
// Paths from the root, each a draft of one part, as long as it is.
using Paths = std::vector<Tokens>;

fs::path models() { return fs::path(OUTRIDER_SHARED_DATA) / "models"; }

class CompositeReference : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"stories260K", "weak260K"}) {
      if (!fs::exists(models() / name / "config.json")) GTEST_SKIP() << "no shared data folder";
    }
    target_ = Model::load(models() / "stories260K", {.threads = 1});
    small_ = load_model(models() / "weak260K", {.n_threads = 1});
  }

  // The small model's likeliest tokens after a text, computed from its first token.
  Tokens chain(Tokens text, std::size_t length) {
    const std::size_t n_text = text.size();
    while (text.size() < n_text + length) {
      auto [at, is_new] = likeliest_.try_emplace(text, kNoToken);
      if (is_new) {
        const auto sequence = small_->open({});
        const TokenBlock block{.sequence = sequence.get(), .tokens = text, .parents = {}};
        ForwardOutput output;
        small_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block}},
                        output);
        const auto row = output.logits_row(0);
        at->second = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
      }
      text.push_back(at->second);
    }
    return {text.begin() + static_cast<std::ptrdiff_t>(n_text), text.end()};
  }
  // Prompt lookup, with min=2,max=3.
  static Tokens lookup(const Tokens& text, std::size_t length) {
    Tokens tokens;
    for (const test::OracleNode& node : test::ngram_oracle(text, 2, 3, length, false)) {
      tokens.push_back(node.token);
    }
    return tokens;
  }

  // `draft`: the complete draft after a text, for a given limit of tokens.
  void check(const std::string& drafter,
             const std::function<Paths(const Tokens& text, std::size_t most)>& draft) {
    Generator drafting(target_, {.drafter = drafter, .drafter_options = {.threads = 1}});
    std::ifstream file(models() / "stories260K" / "golden.json");
    std::set<int> seen;
    for (const nlohmann::json& golden : nlohmann::json::parse(file)) {
      const Tokens expected = golden.at("greedy_ids");
      const std::string prompt = golden.at("prompt");
      const GenerateResult result = drafting.generate(
          prompt, {.max_tokens = static_cast<int>(expected.size()), .ignore_eos = true});
      EXPECT_EQ(result.ids, expected) << drafter << ": " << prompt;
      Tokens whole = golden.at("prompt_ids");
      const std::size_t n_prompt = whole.size();
      whole.insert(whole.end(), expected.begin(), expected.end());

      std::vector<int> accepted;
      std::int64_t n_drafted = 0;
      for (std::size_t n = n_prompt; n < whole.size();) {
        const Tokens text(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
        const std::size_t most = whole.size() - n - 1;
        std::set<Tokens> nodes;
        std::size_t longest = 0;
        for (const Tokens& path : draft(text, most)) {
          ASSERT_LE(path.size(), most);
          std::size_t n_matched = 0;
          for (std::size_t depth = 1; depth <= path.size(); ++depth) {
            nodes.emplace(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth));
            const bool all_before = n_matched == depth - 1;
            if (all_before && path[depth - 1] == whole[n + depth - 1]) ++n_matched;
          }
          longest = std::max(longest, n_matched);
        }
        n_drafted += static_cast<std::int64_t>(nodes.size());
        accepted.push_back(static_cast<int>(longest));
        n += longest + 1;
      }
      EXPECT_EQ(result.accepted_per_round, accepted) << drafter << ": " << prompt;
      EXPECT_EQ(result.statistics.drafted, n_drafted) << drafter << ": " << prompt;
      seen.insert(accepted.begin(), accepted.end());
    }
    EXPECT_GT(seen.size(), 3U) << "the texts say little about " << drafter;
  }

  static std::string model() { return "model:" + (models() / "weak260K").string(); }

  std::shared_ptr<const Model> target_;
  std::unique_ptr<LanguageModel> small_;
  std::map<Tokens, TokenId> likeliest_;
};

constexpr const char* kLookup = "ngram:min=2,max=3,length=4";

TEST_F(CompositeReference, TheFirstThatHasADraft) {
  check(std::string("first:") + kLookup + "," + model(),
        [this](const Tokens& text, std::size_t most) -> Paths {
          const Tokens found = lookup(text, std::min<std::size_t>(4, most));
          if (!found.empty()) return {found};
          return {chain(text, std::min<std::size_t>(5, most))};
        });
}

TEST_F(CompositeReference, BothTreesUnited) {
  check("merge:" + model() + "+" + kLookup, [this](const Tokens& text, std::size_t most) -> Paths {
    return {chain(text, std::min<std::size_t>(5, most)),
            lookup(text, std::min<std::size_t>(4, most))};
  });
}

TEST_F(CompositeReference, OneGoesOnBehindTheOther) {
  check("relay:" + model() + ",length=2+" + kLookup,
        [this](const Tokens& text, std::size_t most) -> Paths {
          Tokens draft = chain(text, std::min<std::size_t>(2, most));
          Tokens longer = text;
          longer.insert(longer.end(), draft.begin(), draft.end());
          const Tokens found = lookup(longer, std::min<std::size_t>(4, most - draft.size()));
          draft.insert(draft.end(), found.begin(), found.end());
          return {draft};
        });
  check(std::string("relay:") + kLookup + "+" + model() + ",length=3",
        [this](const Tokens& text, std::size_t most) -> Paths {
          Tokens draft = lookup(text, std::min<std::size_t>(4, most));
          Tokens longer = text;
          longer.insert(longer.end(), draft.begin(), draft.end());
          const Tokens more = chain(longer, std::min<std::size_t>(3, most - draft.size()));
          draft.insert(draft.end(), more.begin(), more.end());
          return {draft};
        });
}

TEST_F(CompositeReference, AStagedModelDraftsWhatItWouldAlone) {
  for (const std::string& cheaper : {std::string(kLookup), std::string("suffix")}) {
    check("staged:" + model() + "+" + cheaper,
          [this](const Tokens& text, std::size_t most) -> Paths {
            return {chain(text, std::min<std::size_t>(5, most))};
          });
  }
}

}  // namespace
}  // namespace outrider
