// SPDX-License-Identifier: Apache-2.0
// Drafters that look text up, against oracles that search the whole text (lookup_oracle.h). Also
// their use of other texts, and the small cost of a round in a long text.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/spec.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/drafters/lookup/continuation_table.h"
#include "speculate/drafters/lookup/ngram_drafter.h"
#include "speculate/drafters/lookup/reference_drafter.h"
#include "speculate/drafters/lookup/suffix_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"
#include "tests/support/proofs/lookup_oracle.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::OracleDraft;
using test::TokenSpan;
using Tokens = std::vector<TokenId>;

// Random texts with partial repetitions.
Tokens random_text(int n, int vocabulary, std::mt19937& random) {
  Tokens text;
  while (static_cast<int>(text.size()) < n) {
    if (text.size() > 4 && random() % 6 == 0) {
      std::size_t at = random() % text.size();
      for (std::size_t left = random() % 15; left > 0; --left) text.push_back(text[at++]);
    } else {
      text.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary)));
    }
  }
  text.resize(static_cast<std::size_t>(n));
  return text;
}

class OneText {
 public:
  OneText(Drafter& drafter, const TreeShape& shape) : drafter_(&drafter), shape_(&shape) {}

  Context context(TokenSpan tokens) const {
    return {.id = id, .tokens = tokens, .history = &history_, .transform = &transform_};
  }
  void begin(TokenSpan prompt) {
    const Context its = context(prompt);
    drafter_->begin(its);
  }
  OracleDraft draft(TokenSpan tokens, int depth = 255) {
    const Context its = context(tokens);
    DraftTree tree;
    tree.reset(tokens.back(), static_cast<std::int64_t>(tokens.size()));
    DraftJob job{
        .context = &its,
        .budget = {.depth = std::min(depth, shape_->depth()), .n_nodes = shape_->n_nodes()},
        .shape = shape_,
        .chance = &chance_,
        .tree = &tree};
    drafter_->propose({&job, 1});
    OracleDraft draft;
    for (int node = 1; node < tree.n_nodes(); ++node) {
      draft.push_back({tree.node(node).token, tree.node(node).parent - 1});
    }
    return draft;
  }
  void end() { drafter_->end(id); }

  SequenceId id = 5;

 private:
  Drafter* drafter_;
  const TreeShape* shape_;
  Transform transform_{{.temperature = 0}, 1000};
  TokenHistory history_;
  CounterChance chance_{1};
};

void expect_same(const OracleDraft& draft, const OracleDraft& expected) {
  ASSERT_EQ(draft.size(), expected.size());
  for (std::size_t node = 0; node < draft.size(); ++node) {
    ASSERT_EQ(draft[node].token, expected[node].token);
    ASSERT_EQ(draft[node].parent, expected[node].parent);
  }
}

// Grows texts by random steps, as rounds commit them, and sometimes shortens them.
using Oracle = std::function<OracleDraft(TokenSpan text, int depth)>;
void expect_drafts_of(Drafter& drafter, const TreeShape& shape, const Oracle& oracle) {
  std::mt19937 random(3);
  std::size_t n_drafted = 0;
  for (int trial = 0; trial < 30; ++trial) {
    const Tokens text = random_text(120, 2 + 3 * (trial % 4), random);
    OneText one(drafter, shape);
    std::size_t n = 1 + random() % 20;
    one.begin(TokenSpan(text).first(n));
    for (; n <= text.size(); n += 1 + random() % 6) {
      if (random() % 5 == 0) {
        n -= random() % n;
        drafter.rewind(one.context(TokenSpan(text).first(n)), n);
      }
      const TokenSpan tokens = TokenSpan(text).first(n);
      const int depth = random() % 3 == 0 ? static_cast<int>(random() % 5) : 255;
      const OracleDraft draft = one.draft(tokens, depth);
      ASSERT_NO_FATAL_FAILURE(expect_same(draft, oracle(tokens, depth))) << n << " tokens";
      n_drafted += draft.size();
    }
    one.end();
  }
  EXPECT_GT(n_drafted, 500U);
}

TEST(NgramDrafter, ProposesWhatTheOracleFinds) {
  for (const bool first : {false, true}) {
    for (const int shortest : {1, 2}) {
      for (const int longest : {2, 3, 7}) {
        NgramDrafter drafter({.shortest = shortest,
                              .longest = longest,
                              .length = 6,
                              .occurrence = first ? NgramDrafter::Occurrence::first
                                                  : NgramDrafter::Occurrence::latest});
        expect_drafts_of(drafter, *chain_shape(6), [&](TokenSpan text, int depth) {
          return test::ngram_oracle(text, static_cast<std::size_t>(shortest),
                                    static_cast<std::size_t>(longest),
                                    static_cast<std::size_t>(std::min(6, depth)), first);
        });
      }
    }
  }
}

// If the latest occurrence reaches the text's end, copying continues into the draft.
TEST(NgramDrafter, GoesOnWithAPeriod) {
  NgramDrafter drafter({.length = 5});
  const auto shape = chain_shape(5);
  OneText one(drafter, *shape);
  const Tokens text = {9, 1, 2, 1, 2, 1};
  one.begin(text);
  expect_same(one.draft(text), test::chain_of({2, 1, 2, 1, 2}));
}

TEST(ReferenceDrafter, ProposesWhatTheOracleFinds) {
  std::mt19937 random(8);
  for (const int shortest : {1, 3}) {
    const Tokens document = random_text(200, 6, random);
    ReferenceDrafter drafter({document}, 1000, {.shortest = shortest, .length = 7});
    expect_drafts_of(drafter, *chain_shape(7), [&](TokenSpan text, int depth) {
      return test::reference_oracle(text, document, static_cast<std::size_t>(shortest),
                                    static_cast<std::size_t>(std::min(7, depth)));
    });
  }
}

TEST(ReferenceDrafter, CopiesEndWithTheirDocumentAndAtTokensTheTargetLacks) {
  ReferenceDrafter drafter({{1, 2, 3}, {2, 9, 2, 4}, {3, 5, 6, 7}}, 9,
                           {.shortest = 1, .length = 5});
  const auto shape = chain_shape(5);
  OneText one(drafter, *shape);
  expect_same(one.draft(Tokens{1, 2}), test::chain_of({3}));
  // "2 3" ends the first document and occurs nowhere else; "3" is continued in the last one.
  expect_same(one.draft(Tokens{2, 3}), test::chain_of({5, 6, 7}));
  expect_same(one.draft(Tokens{6, 7}), {});
  expect_same(one.draft(Tokens{3, 5}), test::chain_of({6, 7}));
  expect_same(one.draft(Tokens{8, 2}), test::chain_of({3}));
}

TEST(SuffixDrafter, ProposesWhatTheOracleFinds) {
  for (const bool chain : {false, true}) {
    for (const SuffixDrafter::Options& options :
         {SuffixDrafter::Options{},
          SuffixDrafter::Options{.length = 4, .total = 9, .cut = 0.02, .factor = 1},
          SuffixDrafter::Options{.length = 40, .total = 40, .cut = 0.3, .factor = 100}}) {
      SuffixDrafter drafter(options);
      const OpenShape open(options.length, options.total);
      const auto line = chain_shape(options.length);
      test::SuffixOracle oracle{.length = options.length,
                                .total = options.total,
                                .cut = options.cut,
                                .factor = options.factor,
                                .chain = chain};
      if (chain) oracle.total = std::min(oracle.total, line->n_nodes());
      expect_drafts_of(drafter, chain ? static_cast<const TreeShape&>(*line) : open, oracle);
    }
  }
}

// A text helps later ones, within the memory allowed.
TEST(SuffixDrafter, RemembersEarlierTexts) {
  SuffixDrafter forgetful({});
  SuffixDrafter drafter({.across = 1000});
  const OpenShape shape(16, 16);
  std::mt19937 random(4);
  const Tokens text = random_text(200, 500, random);
  const TokenSpan beginning = TokenSpan(text).first(10);
  for (Drafter* each : {static_cast<Drafter*>(&forgetful), static_cast<Drafter*>(&drafter)}) {
    OneText one(*each, shape);
    one.begin(text);
    one.draft(text);
    one.end();
    one.id = 6;
    one.begin(beginning);
    const OracleDraft draft = one.draft(beginning);
    if (each == &forgetful) {
      EXPECT_TRUE(draft.empty());
    } else {
      ASSERT_GT(draft.size(), 3U);
      for (std::size_t node = 0; node < draft.size(); ++node) {
        EXPECT_EQ(draft[node].token, text[10 + node]);
      }
    }
    one.end();
  }
  for (int n = 0; n < 50; ++n) {
    OneText one(drafter, shape);
    const Tokens other = random_text(1 + static_cast<int>(random() % 900), 500, random);
    one.begin(other);
    one.draft(other);
    one.end();
    EXPECT_LE(drafter.n_remembered(), 1000);
  }
  EXPECT_GT(drafter.n_remembered(), 400);
}

// --- The memory of ngram for earlier texts

TEST(ContinuationTable, KnowsWhatCameLastBehindAString) {
  ContinuationTable table(2, 1000);
  EXPECT_EQ(table.after(Tokens{1, 2}), kNoToken);
  table.add(Tokens{1, 2, 3, 1, 2, 4});
  EXPECT_EQ(table.after(Tokens{1, 2}), 4);
  EXPECT_EQ(table.after(Tokens{9, 2, 3}), 1);  // the last two tokens count
  EXPECT_EQ(table.after(Tokens{2, 1}), kNoToken);
  EXPECT_EQ(table.after(Tokens{2, 4}), kNoToken);  // nothing followed it
  EXPECT_EQ(table.after(Tokens{2}), kNoToken);
  EXPECT_EQ(table.n_known(), 3);
  table.add(Tokens{1});
  table.add(Tokens{});
  EXPECT_EQ(table.n_known(), 3);
}

TEST(ContinuationTable, TellsStringsOfOnePlaceApartAndIsBounded) {
  ContinuationTable table(1, 1);
  table.add(Tokens{5, 6});
  EXPECT_EQ(table.after(Tokens{5}), 6);
  table.add(Tokens{7, 8});  // the only place holds the newest string
  EXPECT_EQ(table.after(Tokens{5}), kNoToken);
  EXPECT_EQ(table.after(Tokens{7}), 8);
  EXPECT_EQ(table.n_known(), 1);
  std::mt19937 random(2);
  ContinuationTable larger(3, 100);
  for (int n = 0; n < 20; ++n) {
    const Tokens text = random_text(60, 1000, random);
    larger.add(text);
    EXPECT_EQ(larger.after(TokenSpan(text).first(59)), text.back());
    EXPECT_LE(larger.n_known(), 100);
  }
  EXPECT_GT(larger.n_known(), 80);
}

// Compares with a map of all strings of the ended texts; the table has a place for each.
TEST(NgramDrafter, DraftsWhatEarlierTextsHadBehindTheLongestString) {
  constexpr int kLongest = 3;
  std::mt19937 random(17);
  NgramDrafter drafter({.length = 6, .across = 1 << 20});
  NgramDrafter forgetful({.length = 6});
  const auto line = chain_shape(6);
  std::map<Tokens, TokenId> earlier;
  int n_from_earlier = 0;
  for (int n = 0; n < 30; ++n) {
    const Tokens text = random_text(60, 12, random);
    OneText one(drafter, *line);
    OneText own(forgetful, *line);
    const TokenSpan prompt = TokenSpan(text).first(8);
    one.begin(prompt);
    own.begin(prompt);
    for (std::size_t length = 8; length <= text.size(); ++length) {
      const TokenSpan tokens = TokenSpan(text).first(length);
      const Tokens last(tokens.end() - kLongest, tokens.end());
      const auto stood = std::search(tokens.begin(), tokens.end() - 1, last.begin(), last.end());
      const bool is_own = stood != tokens.end() - 1;
      Tokens expected;
      Tokens end = last;
      for (auto at = earlier.find(end); !is_own && at != earlier.end() && expected.size() < 6;
           at = earlier.find(end)) {
        expected.push_back(at->second);
        end.erase(end.begin());
        end.push_back(at->second);
      }
      const OracleDraft by_itself = own.draft(tokens);
      Tokens drafted;
      for (const auto& node : one.draft(tokens)) drafted.push_back(node.token);
      if (expected.empty()) {
        for (const auto& node : by_itself) expected.push_back(node.token);
      } else {
        ++n_from_earlier;
      }
      ASSERT_EQ(drafted, expected) << n << ", " << length;
    }
    one.end();
    own.end();
    for (std::size_t at = kLongest; at < text.size(); ++at) {
      earlier[Tokens(text.begin() + static_cast<long>(at) - kLongest,
                     text.begin() + static_cast<long>(at))] = text[at];
    }
    EXPECT_EQ(drafter.n_remembered(), static_cast<int>(earlier.size()));
  }
  EXPECT_EQ(forgetful.n_remembered(), 0);
  EXPECT_GT(n_from_earlier, 100);
}

// Concurrent texts: each uses its own past, and another's once that has ended.
TEST(NgramDrafter, SharesTextsWhenTheyEnd) {
  NgramDrafter drafter({.length = 4, .across = 10000});
  const auto line = chain_shape(4);
  const Tokens first = {1, 2, 3, 4, 5, 6};
  const Tokens second = {9, 1, 2, 3};
  OneText a(drafter, *line);
  OneText b(drafter, *line);
  b.id = a.id + 1;
  a.begin(first);
  b.begin(second);
  EXPECT_TRUE(a.draft(first).empty());
  EXPECT_TRUE(b.draft(second).empty());
  a.end();
  const OracleDraft draft = b.draft(second);
  ASSERT_EQ(draft.size(), 3U);
  for (std::size_t node = 0; node < 3; ++node) EXPECT_EQ(draft[node].token, first[3 + node]);
  b.end();
  EXPECT_GT(drafter.n_remembered(), 3);
}

std::string refusal(const std::string& spec) {
  try {
    (void)read_drafter(spec);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LookupDrafterSpecs, SayWhatIsWrong) {
  EXPECT_EQ(refusal("ngram:min=4,max=2"),
            "[read drafter] ngram: expected min of at most max=2, got min=4");
  EXPECT_EQ(refusal("ngram:min=4"), "no error");  // max follows
  EXPECT_EQ(refusal("ngram:across=-1"),
            "[read drafter] ngram:across=-1 across: expected a number from 0 to 16777216, got -1");
  EXPECT_EQ(refusal("ngram:across=1000"), "no error");
  EXPECT_NE(refusal("ngram:match=best").find("one of latest, first"), std::string::npos);
  EXPECT_NE(refusal("ngram:5").find("key=value"), std::string::npos);
  EXPECT_NE(refusal("reference").find("file=, a text or a folder of texts"), std::string::npos);
  EXPECT_NE(refusal("reference:file=a,min=2,min=3").find("min twice"), std::string::npos);
  EXPECT_NE(refusal("suffix:cut=0").find("a number from"), std::string::npos);
  EXPECT_NE(refusal("suffix:depth=3").find("keys among length"), std::string::npos);
}

TEST(LookupDrafterSpecs, ReferencesAreFilesAndFolders) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "texts" / "more");
  std::ofstream(directory.path() / "texts" / "b.txt") << "bcd";
  std::ofstream(directory.path() / "texts" / "more" / "c.txt") << "xyz";
  std::ofstream(directory.path() / "a.txt") << "bce";
  DrafterMaterials materials;
  materials.vocabulary_size = 256;
  materials.tokenize = [](std::string_view text, std::string_view) {
    return Tokens(text.begin(), text.end());
  };
  const std::string folder = (directory.path() / "texts").string();
  const std::string file = (directory.path() / "a.txt").string();
  const auto drafted = [&](const std::string& spec, const Tokens& text) {
    const DrafterPlan plan = read_drafter(spec);
    const auto drafter = plan.make(materials);
    OneText one(*drafter, *plan.shape);
    const OracleDraft draft = one.draft(text);
    return draft.empty() ? ' ' : static_cast<char>(draft.front().token);
  };
  EXPECT_EQ(drafted("reference:file=" + folder, {'b', 'c'}), 'd');
  EXPECT_EQ(drafted("reference:file=" + folder, {'x', 'y'}), 'z');
  EXPECT_EQ(drafted("reference:file=" + file + ",file=" + folder, {'b', 'c'}), 'e');
  EXPECT_EQ(drafted("reference:file=" + folder + ",file=" + file, {'b', 'c'}), 'd');
  EXPECT_THROW(read_drafter("reference:file=/nowhere").make(materials), Error);
  std::filesystem::create_directory(directory.path() / "empty");
  EXPECT_THROW(
      read_drafter("reference:file=" + (directory.path() / "empty").string()).make(materials),
      Error);
}

}  // namespace
}  // namespace outrider
