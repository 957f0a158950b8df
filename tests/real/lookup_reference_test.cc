// SPDX-License-Identifier: Apache-2.0
// Drafters that look up text, on real weights. Prompt lookup is compared with Hugging Face's, round
// by round (tests/golden/make/make_prompt_lookup_golden.py says how the two count). The program's
// own figures are compared with rounds derived from the plain text alone, by an oracle that
// searches it from end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/proofs/lookup_oracle.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::OracleDraft;
using test::TokenSpan;

fs::path model_path() { return fs::path(OUTRIDER_SHARED_DATA) / "models" / "stories260K"; }
bool have_model() { return fs::exists(model_path() / "golden.json"); }

const json& reference() {
  static const json document = json::parse(
      std::ifstream(fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "prompt_lookup.json"));
  return document;
}

class PromptLookupReference : public ::testing::TestWithParam<int> {};

TEST_P(PromptLookupReference, SameIdsAndSameAcceptedCountInEveryRound) {
  if (!have_model()) GTEST_SKIP() << "no model stories260K in the shared data folder";
  const std::string longest = std::to_string(GetParam());
  Generator generator(Model::load(model_path(), {.weights = "f32", .threads = 1}),
                      {.drafter = "ngram:min=1,max=" + longest + ",length=10,match=first"});
  const auto max_tokens = reference().at("max_new_tokens").get<int>();
  ASSERT_GE(reference().at("prompts").size(), 8U);
  for (const json& prompt : reference().at("prompts")) {
    SCOPED_TRACE(prompt.at("prompt").get<std::string>());
    const GenerateRequest request{.prompt = prompt.at("prompt_ids").get<std::vector<TokenId>>(),
                                  .options = {.max_tokens = max_tokens}};
    const GenerateResult result = std::move(generator.generate({&request, 1}).front());
    EXPECT_EQ(result.ids, prompt.at("generated_ids").get<std::vector<TokenId>>());
    auto expected = prompt.at("accepted").at(longest).get<std::vector<int>>();
    ASSERT_EQ(result.accepted_per_round.size(), expected.size());
    expected.back() = result.accepted_per_round.back();  // the limit cuts the two differently
    EXPECT_EQ(result.accepted_per_round, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(LongestNgram, PromptLookupReference, ::testing::Values(1, 2, 3, 5));

// --- The program's figures -------------------------------------------------------------------

struct Figures {
  int target_passes = 0;
  int drafted = 0;
  int accepted = 0;
};

// The rounds for drafts that are judged by the plain text: the path which the text takes through a
// draft is accepted.
using Oracle = std::function<OracleDraft(TokenSpan text, int depth)>;
Figures figures_of(const std::vector<TokenId>& prompt, const std::vector<TokenId>& plain,
                   const Oracle& oracle) {
  Figures figures;
  std::vector<TokenId> text = prompt;
  for (std::size_t done = 0; done < plain.size();) {
    const OracleDraft draft = oracle(text, static_cast<int>(plain.size() - done) - 1);
    std::size_t n_accepted = 0;
    for (int node = -1;;) {
      const auto child = std::find_if(draft.begin(), draft.end(), [&](const auto& candidate) {
        return candidate.parent == node && candidate.token == plain[done + n_accepted];
      });
      if (child == draft.end()) break;
      node = static_cast<int>(child - draft.begin());
      ++n_accepted;
    }
    ++figures.target_passes;
    figures.drafted += static_cast<int>(draft.size());
    figures.accepted += static_cast<int>(n_accepted);
    const auto first = plain.begin() + static_cast<std::ptrdiff_t>(done);
    text.insert(text.end(), first, first + static_cast<std::ptrdiff_t>(n_accepted) + 1);
    done += n_accepted + 1;
  }
  return figures;
}

struct Case {
  std::string drafter;
  Oracle oracle;
};

TEST(LookupDraftersInTheProgram, DraftWhatAnOracleDerivesFromThePlainText) {
  if (!have_model()) GTEST_SKIP() << "no model stories260K in the shared data folder";
  const auto tokenizer = Tokenizer::load(model_path());
  const test::TemporaryDirectory directory;
  const fs::path story = directory.path() / "story.txt";
  std::ifstream texts(fs::path(OUTRIDER_SHARED_DATA) / "text" / "tinystories_2MiB.txt");
  std::string text{std::istreambuf_iterator<char>(texts), {}};
  text.resize(20000);
  std::ofstream(story) << text;
  const std::vector<TokenId> document = tokenizer->encode(text, false);
  const auto at_most = [](int a, int b) { return static_cast<std::size_t>(std::min(a, b)); };
  const std::vector<Case> cases = {
      {"ngram",
       [&](TokenSpan seen, int depth) {
         return test::ngram_oracle(seen, 1, 3, at_most(10, depth), false);
       }},
      {"ngram:min=2,max=4,length=6,match=first",
       [&](TokenSpan seen, int depth) {
         return test::ngram_oracle(seen, 2, 4, at_most(6, depth), true);
       }},
      {"reference:file=" + story.string() + ",min=3,length=8",
       [&](TokenSpan seen, int depth) {
         return test::reference_oracle(seen, document, 3, at_most(8, depth));
       }},
      {"suffix", [](TokenSpan seen, int depth) { return test::SuffixOracle{}(seen, depth); }}};
  const json golden = json::parse(std::ifstream(model_path() / "golden.json"));
  for (const Case& each : cases) {
    int n_accepted = 0;
    for (const json& entry : golden) {
      SCOPED_TRACE(each.drafter + ": " + entry.at("prompt").get<std::string>());
      const auto ids = entry.at("greedy_ids").get<std::vector<TokenId>>();
      const test::ProgramRun run = test::run_program(
          {"generate", "--model", model_path().string(), "--prompt", entry.at("prompt"),
           "--drafter", each.drafter, "--tree", "own", "--threads", "1", "--temperature", "0",
           "--weights", "f32", "--max-tokens", std::to_string(ids.size()), "--json"});
      ASSERT_EQ(run.status, 0) << run.err;
      const json result = json::parse(run.out);
      const json& stats = result.at("stats");
      EXPECT_EQ(result.at("ids").get<std::vector<TokenId>>(), ids);
      const Figures expected =
          figures_of(entry.at("prompt_ids").get<std::vector<TokenId>>(), ids, each.oracle);
      EXPECT_EQ(stats.at("target_passes"), expected.target_passes);
      EXPECT_EQ(stats.at("drafted"), expected.drafted);
      EXPECT_EQ(stats.at("accepted"), expected.accepted);
      EXPECT_EQ(stats.at("drafter_passes"), 0);
      n_accepted += expected.accepted;
    }
    EXPECT_GT(n_accepted, 20) << each.drafter;
  }
}

}  // namespace
}  // namespace outrider
