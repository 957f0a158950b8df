// SPDX-License-Identifier: Apache-2.0
// Compares drafts from a datastore with those found by comparing every position of the text.
#include "speculate/drafters/lookup/retrieval_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "io/datastore_writer.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"
#include "tests/support/proofs/retrieval_oracle.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::RetrievalOracle;
using test::TokenPath;
using Tokens = std::vector<TokenId>;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RetrievalDrafts : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return directory_.path() / "store"; }

  Datastore write(const std::vector<Tokens>& documents, int vocabulary,
                  std::uint32_t segment_tokens) const {
    DatastoreWriter writer(path(), {.fingerprint = 5, .size = vocabulary}, segment_tokens);
    for (const Tokens& document : documents) {
      writer.add(document);
      writer.end_document();
    }
    writer.commit();
    return Datastore(path());
  }

  static std::vector<TokenPath> draft(RetrievalDrafter& drafter, const Tokens& tokens,
                                      const TreeShape& shape, Budget budget) {
    const Context context{.id = 1, .tokens = tokens, .history = nullptr, .transform = nullptr};
    DraftTree tree;
    tree.reset(tokens.back(), static_cast<std::int64_t>(tokens.size()));
    DraftJob job{.context = &context, .budget = budget, .shape = &shape, .tree = &tree};
    drafter.propose({&job, 1});
    for (int node = 1; node < tree.n_nodes(); ++node) {
      EXPECT_EQ(tree.node(node).proposal, kPointMass);
    }
    if (shape.is_chain()) {
      EXPECT_TRUE(tree.is_chain());
    }
    return test::paths_of(tree);
  }

  test::TemporaryDirectory directory_;
};

TEST_F(RetrievalDrafts, AreThoseOfASearchThroughTheText) {
  std::mt19937 random(1);
  struct Case {
    int vocabulary, n_ids, n_documents;
    std::uint32_t segment_tokens;
  };
  // Few ids: many occurrences. Many ids: short matches or none.
  constexpr Case kCases[] = {{100000, 2, 40, 1 << 20}, {100000, 2, 40, 97},
                             {70000, 4, 30, 500},      {300, 30, 30, 64},
                             {300, 300, 30, 2000},     {1 << 20, 3, 200, 3000}};
  int n_drafts = 0;
  int n_empty = 0;
  std::size_t longest_sample = 0;
  for (const Case& each : kCases) {
    Tokens ids;
    ids.reserve(static_cast<std::size_t>(each.n_ids));
    for (int i = 0; i < each.n_ids; ++i) {
      ids.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(each.vocabulary)));
    }
    const auto random_tokens = [&](std::size_t n_tokens) {
      Tokens tokens(n_tokens);
      // Skewed, so that counts differ.
      for (TokenId& token : tokens) token = ids[std::min(random(), random()) % ids.size()];
      return tokens;
    };
    std::vector<Tokens> documents;
    documents.reserve(static_cast<std::size_t>(each.n_documents));
    for (int i = 0; i < each.n_documents; ++i)
      documents.push_back(random_tokens(1 + random() % 90));
    RetrievalDrafter drafter(write(documents, each.vocabulary, each.segment_tokens),
                             each.vocabulary);
    const RetrievalOracle oracle(documents, each.segment_tokens);
    const OpenShape open(RetrievalDrafter::kDepth, RetrievalDrafter::kNodes);
    for (int trial = 0; trial < 60; ++trial) {
      Tokens tokens = random_tokens(1 + random() % 4);
      const Tokens& document = documents[random() % documents.size()];
      tokens.insert(tokens.end(), document.begin(),
                    document.begin() + static_cast<std::ptrdiff_t>(random() % document.size()));
      const Budget budget{.depth = trial % 3 == 0 ? static_cast<int>(random() % 12) : 10,
                          .n_nodes = trial % 4 == 0 ? static_cast<int>(random() % 70) : 64};
      const auto tree = draft(drafter, tokens, open, budget);
      const int depth = std::min(budget.depth, RetrievalDrafter::kDepth);
      const int n_nodes = std::min(budget.n_nodes, RetrievalDrafter::kNodes);
      const auto expected =
          depth > 0 ? oracle.draft(tokens, depth, n_nodes, false) : std::vector<TokenPath>{};
      EXPECT_EQ(tree, expected) << each.vocabulary << " " << each.n_ids << " trial " << trial;
      EXPECT_EQ(draft(drafter, tokens, *chain_shape(6), {.depth = 5, .n_nodes = 6}),
                oracle.draft(tokens, 5, 6, true));
      ++n_drafts;
      n_empty += tree.empty() ? 1 : 0;
    }
    longest_sample = std::max(longest_sample, oracle.longest_sample());
  }
  EXPECT_GT(n_empty, 10);
  EXPECT_LT(n_empty, n_drafts / 2);
  EXPECT_GT(longest_sample, 1024U);  // some were sampled
}

TEST_F(RetrievalDrafts, ByHand) {
  const std::vector<Tokens> documents = {{1, 2, 3, 4}, {1, 2, 3, 5}, {9, 1, 2, 6},
                                         {1, 2, 6},    {1, 2, 3, 4}, {7, 1, 2}};
  RetrievalDrafter drafter(write(documents, 10, 1000), 10);
  const OpenShape open(RetrievalDrafter::kDepth, RetrievalDrafter::kNodes);
  using Paths = std::vector<TokenPath>;
  // 3 occurs three times; 6 and 3-4 twice, the shallower first; 3-5 once. Nothing is drafted after
  // the end of the last document.
  EXPECT_EQ(draft(drafter, {8, 1, 2}, open, {.depth = 10, .n_nodes = 64}),
            (Paths{{3}, {6}, {3, 4}, {3, 5}}));
  EXPECT_EQ(draft(drafter, {8, 1, 2}, open, {.depth = 10, .n_nodes = 2}), (Paths{{3}, {6}}));
  EXPECT_EQ(draft(drafter, {8, 1, 2}, open, {.depth = 1, .n_nodes = 64}), (Paths{{3}, {6}}));
  EXPECT_EQ(draft(drafter, {8, 1, 2}, *chain_shape(5), {.depth = 5, .n_nodes = 5}),
            (Paths{{3}, {3, 4}}));
  // Only the longest match counts.
  EXPECT_EQ(draft(drafter, {9, 1, 2}, open, {.depth = 10, .n_nodes = 64}), (Paths{{6}}));
  // One token is no match, and a match at a document's end has no continuation.
  EXPECT_EQ(draft(drafter, {1}, open, {.depth = 10, .n_nodes = 64}), Paths{});
  EXPECT_EQ(draft(drafter, {8, 1}, open, {.depth = 10, .n_nodes = 64}), Paths{});
  EXPECT_EQ(draft(drafter, {7, 1, 2}, open, {.depth = 10, .n_nodes = 64}), Paths{});
  EXPECT_EQ(draft(drafter, {8, 1, 2}, open, {.depth = 0, .n_nodes = 64}), Paths{});

  // Tokens beyond the target's vocabulary are not drafted, nor anything after them.
  RetrievalDrafter narrow(Datastore(path()), 4);
  EXPECT_EQ(draft(narrow, {1, 2}, open, {.depth = 10, .n_nodes = 64}), (Paths{{3}}));
}

// Two sequences in one call, then the first again: no state remains.
TEST_F(RetrievalDrafts, DependOnTheLastTokensAlone) {
  RetrievalDrafter drafter(write({{1, 2, 3, 4, 5}, {6, 7, 8, 9}}, 10, 1000), 10);
  const OpenShape open(RetrievalDrafter::kDepth, RetrievalDrafter::kNodes);
  const Tokens first = {1, 2};
  const Tokens second = {0, 6, 7};
  const Context contexts[] = {
      {.id = 1, .tokens = first, .history = nullptr, .transform = nullptr},
      {.id = 2, .tokens = second, .history = nullptr, .transform = nullptr}};
  DraftTree trees[2];
  std::vector<DraftJob> jobs;
  for (int i = 0; i < 2; ++i) {
    drafter.begin(contexts[i]);
    trees[i].reset(contexts[i].tokens.back(), static_cast<std::int64_t>(contexts[i].tokens.size()));
    jobs.push_back({.context = &contexts[i],
                    .budget = {.depth = 10, .n_nodes = 64},
                    .shape = &open,
                    .tree = &trees[i]});
  }
  drafter.propose(jobs);
  using Paths = std::vector<TokenPath>;
  EXPECT_EQ(test::paths_of(trees[0]), (Paths{{3}, {3, 4}, {3, 4, 5}}));
  EXPECT_EQ(test::paths_of(trees[1]), (Paths{{8}, {8, 9}}));
  EXPECT_EQ(draft(drafter, first, open, {.depth = 10, .n_nodes = 64}), test::paths_of(trees[0]));
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(RetrievalDrafts, SpecsAndStoresThatDoNotFitAreRefused) {
  const auto read = [](const std::string& text) { return read_drafter(text); };
  EXPECT_THROW(read("retrieval"), UsageError);
  EXPECT_THROW(read("retrieval:file"), UsageError);
  EXPECT_THROW(read("retrieval:path="), UsageError);
  EXPECT_THROW(read("retrieval:path=a,length=3"), UsageError);
  const DrafterPlan plan = read("retrieval:path=" + path().string());
  EXPECT_FALSE(plan.traits.has_draft_prob);
  EXPECT_EQ(plan.shape->depth(), 10);
  EXPECT_EQ(plan.shape->n_nodes(), 64);

  write({{1, 2, 3}}, 10, 100);
  DrafterMaterials materials;
  materials.vocabulary_size = 10;
  materials.vocabulary_id = [] { return VocabularyId{.fingerprint = 5, .size = 10}; };
  EXPECT_EQ(error_of([&] { plan.make(materials); }), "");
  materials.vocabulary_id = [] { return VocabularyId{.fingerprint = 6, .size = 10}; };
  EXPECT_THAT(error_of([&] { plan.make(materials); }),
              AllOf(HasSubstr(path().string()), HasSubstr("expected a datastore of the target's"),
                    HasSubstr("0000000000000006), got one of another (10 tokens, "
                              "0000000000000005)")));
  materials.vocabulary_id = [] { return VocabularyId{.fingerprint = 5, .size = 11}; };
  EXPECT_THAT(error_of([&] { plan.make(materials); }), HasSubstr("one of another"));
  EXPECT_THAT(error_of([&] { read("retrieval:path=nowhere").make(materials); }),
              HasSubstr("nowhere"));
}

}  // namespace
}  // namespace outrider
