// SPDX-License-Identifier: Apache-2.0
// A model that drafts in one pass: its drafts equal the model's own output for the text and masks,
// after any number of rounds and texts. Files and specs that do not fit are refused. The comparison
// must also notice models with one fault each.
#include "speculate/drafters/pard_drafter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/load_model.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/head_files.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/proofs/masked_mutants.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;

constexpr TokenId kMask = 7;

struct Text {
  Text(SequenceId text_id, std::vector<TokenId> prompt, const SamplingParams& sampling,
       int vocabulary)
      : id(text_id), tokens(std::move(prompt)), transform(sampling, vocabulary), chance(text_id) {
    history.add_prompt(tokens);
  }
  Context context() const {
    return {.id = id, .tokens = tokens, .history = &history, .transform = &transform};
  }
  void add(TokenId token) {
    tokens.push_back(token);
    history.add_generated(token);
  }
  SequenceId id;
  std::vector<TokenId> tokens;
  Transform transform;
  TokenHistory history;
  CounterChance chance;
  DraftTree tree;
  Verdict verdict;
};

class PardDrafterState : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    reference_ = draft_model();
    vocabulary_ = reference_->config().vocabulary_size;
  }
  std::unique_ptr<LanguageModel> draft_model() const {
    return load_model(folder_.path() / "draft", {.n_threads = 1});
  }

  // The distribution after a node: the model's, for the text and a mask for each level, from a new
  // sequence.
  Distribution from_scratch(const Text& text, int node) {
    std::vector<TokenId> prefix = text.tokens;
    prefix.insert(prefix.end(), static_cast<std::size_t>(text.tree.node(node).depth), kMask);
    const auto sequence = reference_->open({});
    const TokenBlock block{.sequence = sequence.get(), .tokens = prefix, .parents = {}};
    ForwardOutput output;
    reference_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block}},
                        output);
    std::vector<float> logits(output.logits_row(0).begin(), output.logits_row(0).end());
    logits[kMask] = -std::numeric_limits<float>::infinity();
    std::vector<TokenId> path;
    text.tree.path_tokens(node, path);
    text.transform.penalise(logits, text.history, path);
    Distribution dist;
    text.transform.distribution(logits, dist);
    return dist;
  }

  struct Found {
    std::string fault;  // the first; empty: none
    int n_checked = 0;
    int n_accepted = 0;
    int n_asked = 0;  // distributions after leaves
  };

  // Three texts over many rounds, some of which end and continue others; verdicts are random.
  Found look_at(std::unique_ptr<LanguageModel> model, TokenId mask = kMask) {
    const std::vector<std::shared_ptr<const TreeShape>> shapes = {
        chain_shape(6), std::make_shared<FixedShape>(widths_tree(std::vector{3, 2, 1})),
        std::make_shared<FixedShape>(eagle1_tree(), Siblings::with_replacement),
        std::make_shared<DynamicShape>(DynamicShape::Limits{.total = 9, .depth = 4, .top_k = 3})};
    PardDrafter drafter(std::move(model), vocabulary_, mask);
    Found found;
    std::mt19937 random(3);
    const auto below = [&random](int n) { return static_cast<int>(random() % n); };
    const auto compare = [&](const Text& text, int node, const Distribution& dist) {
      const Distribution expected = from_scratch(text, node);
      ++found.n_checked;
      if (dist.ids == expected.ids && dist.probs == expected.probs) return;
      if (!found.fault.empty()) return;
      found.fault = fmt::format("another distribution behind {} tokens, depth {}",
                                text.tokens.size(), text.tree.node(node).depth);
    };
    std::deque<Text> texts;
    texts.emplace_back(1, std::vector<TokenId>{1, 50, 60}, SamplingParams{.temperature = 1},
                       vocabulary_);
    texts.emplace_back(2, std::vector<TokenId>{1, 9, 8, 7, 6, 5},
                       SamplingParams{.temperature = 0.8, .repetition_penalty = 1.3}, vocabulary_);
    texts.emplace_back(3, std::vector<TokenId>{4}, SamplingParams{.temperature = 0}, vocabulary_);
    for (Text& text : texts) drafter.begin(text.context());
    for (int round = 0; round < 40; ++round) {
      if (round % 10 == 9) {
        // A new text that begins with the first text, or with a little less of it.
        Text& first = texts[0];
        Text& text = texts[1];
        drafter.end(text.id);
        text.id = 10 + round;
        text.tokens = first.tokens;
        text.tokens.resize(first.tokens.size() - static_cast<std::size_t>(below(3)));
        text.history = {};
        text.history.add_prompt(text.tokens);
        drafter.begin_behind(text.context(), first.id, text.tokens.size() - 1);
      }
      std::vector<Context> contexts;
      for (const Text& text : texts) contexts.push_back(text.context());
      std::vector<DraftJob> jobs;
      for (std::size_t index = 0; index < texts.size(); ++index) {
        Text& text = texts[index];
        text.tree.reset(text.tokens.back(), static_cast<std::int64_t>(text.tokens.size()));
        jobs.push_back({.context = &contexts[index],
                        .budget = {.depth = below(7), .n_nodes = below(4) == 0 ? below(6) : 100},
                        .shape = shapes[static_cast<std::size_t>(below(4))].get(),
                        .chance = &text.chance,
                        .tree = &text.tree});
      }
      drafter.propose(jobs);
      std::vector<RoundResult> results;
      for (std::size_t index = 0; index < texts.size(); ++index) {
        Text& text = texts[index];
        for (int node = 0; node < text.tree.n_nodes(); ++node) {
          const int dist = text.tree.node(node).draft_prob;
          if (dist != kNoDistribution) compare(text, node, text.tree.distribution(dist));
        }
        text.verdict.path.clear();
        int node = 0;
        while (below(5) != 0) {
          std::vector<int> children;
          for (int child = text.tree.next_child(node, node); child >= 0;
               child = text.tree.next_child(node, child)) {
            children.push_back(child);
          }
          if (children.empty()) break;
          node = children[static_cast<std::size_t>(below(static_cast<int>(children.size())))];
          text.verdict.path.push_back(node);
        }
        if (text.tree.node(node).draft_prob == kNoDistribution) {
          Distribution dist;
          if (drafter.draft_at(contexts[index], text.tree, node, dist, nullptr)) {
            compare(text, node, dist);
            ++found.n_asked;
          }
        }
        text.verdict.next = below(vocabulary_);
        found.n_accepted += static_cast<int>(text.verdict.path.size());
      }
      for (Text& text : texts) {
        for (const int node : text.verdict.path) text.add(text.tree.node(node).token);
        text.add(text.verdict.next);
      }
      contexts.clear();
      for (const Text& text : texts) contexts.push_back(text.context());
      for (std::size_t index = 0; index < texts.size(); ++index) {
        results.push_back({.context = &contexts[index],
                           .tree = &texts[index].tree,
                           .verdict = &texts[index].verdict});
      }
      drafter.observe(results);
    }
    for (const Text& text : texts) drafter.end(text.id);
    return found;
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<LanguageModel> reference_;
  int vocabulary_ = 0;
};

TEST_F(PardDrafterState, IsThatOfOneRebuiltFromScratch) {
  const Found found = look_at(draft_model());
  EXPECT_EQ(found.fault, "");
  EXPECT_GT(found.n_checked, 300);
  EXPECT_GT(found.n_accepted, 60);
  EXPECT_GT(found.n_asked, 20);
}

TEST_F(PardDrafterState, BrokenOnesAreNoticed) {
  using Passed = test::PassedLanguageModel;
  constexpr TokenId kTold = 11;
  EXPECT_EQ(look_at(std::make_unique<Passed>(draft_model())).fault, "");
  EXPECT_NE(look_at(std::make_unique<test::SaysTheMask<Passed>>(draft_model(), kMask, kTold), kTold)
                .fault,
            "");
  EXPECT_NE(look_at(std::make_unique<test::ReadsTheRowBefore<Passed>>(draft_model())).fault, "");
  EXPECT_NE(look_at(std::make_unique<test::KeepsMasks<Passed>>(draft_model())).fault, "");
}

// Records the widest pass.
class WatchedModel final : public test::PassedLanguageModel {
 public:
  WatchedModel(std::unique_ptr<LanguageModel> inner, std::size_t& widest)
      : PassedModel(std::move(inner)), widest_(&widest) {}
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    std::size_t n_rows = 0;
    for (const TokenBlock& block : blocks) n_rows += block.tokens.size();
    *widest_ = std::max(*widest_, n_rows);
    PassedModel::forward(blocks, request, output);
  }

 private:
  std::size_t* widest_;
};

// One pass per draft, however deep. Tokens of a long text that it was not shown are run before, and
// no pass is wider than one of prefill.
TEST_F(PardDrafterState, CountsOnePassADraft) {
  const auto shape = chain_shape(kMaxDraftNodes);
  for (const auto& [n_tokens, n_drafted, n_passes] :
       {std::array{140, 90, 1}, std::array{256, 1, 1}, std::array{257, 1, 2},
        std::array{600, 100, 3}, std::array{511, 90, 3}, std::array{255, 255, 2}}) {
    SCOPED_TRACE(fmt::format("{} drafted behind {}", n_drafted, n_tokens));
    std::size_t widest = 0;
    PardDrafter drafter(std::make_unique<WatchedModel>(draft_model(), widest), vocabulary_, kMask);
    Text text(1, std::vector<TokenId>(static_cast<std::size_t>(n_tokens), 3),
              SamplingParams{.temperature = 1}, vocabulary_);
    const Context context = text.context();
    drafter.begin(context);
    text.tree.reset(text.tokens.back(), n_tokens);
    DraftJob job{.context = &context,
                 .budget = {.depth = n_drafted, .n_nodes = n_drafted},
                 .shape = shape.get(),
                 .chance = &text.chance,
                 .tree = &text.tree};
    drafter.propose({&job, 1});
    EXPECT_EQ(text.tree.n_drafted(), n_drafted);
    EXPECT_EQ(drafter.n_passes(), n_passes);
    EXPECT_LE(widest, static_cast<std::size_t>(kPrefillRows));
    const Distribution& last = text.tree.distribution(text.tree.node(n_drafted - 1).draft_prob);
    EXPECT_EQ(last.probs, from_scratch(text, n_drafted - 1).probs);
  }
}

// --- Files and specs ---------------------------------------------------------------------------

class PardFiles : public ::testing::Test {
 protected:
  // The error of a drafter of these files for a target of that vocabulary size; empty if none.
  std::string refusal_of(const std::string& spec, int target_vocabulary_size = 300) const {
    try {
      const auto drafter =
          read_drafter(spec).make({.vocabulary_size = target_vocabulary_size,
                                   .load = {.n_threads = 1},
                                   .load_model = [](const fs::path& path, const LoadOptions& as) {
                                     return load_model(path, as);
                                   }});
      EXPECT_EQ(drafter->name(), "pard");
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  std::string written(TokenId mask, bool as_gguf) const {
    test::TinyShape shape;
    shape.mask_token = mask;
    const test::TinyModel model = test::make_tiny_model(shape);
    const fs::path path = folder_.path() / (as_gguf ? "model.gguf" : "model");
    if (as_gguf) {
      test::write_gguf(model, path);
    } else {
      test::write_hugging_face(model, path);
    }
    return path.string();
  }
  test::TemporaryDirectory folder_;
};

TEST_F(PardFiles, NameTheMaskOrTheSpecDoes) {
  for (const bool as_gguf : {false, true}) {
    SCOPED_TRACE(as_gguf);
    EXPECT_EQ(load_model(written(299, as_gguf), {.n_threads = 1})->config().mask_token, 299);
    EXPECT_EQ(refusal_of("pard:" + written(299, as_gguf)), "");
    // Also a mask beyond the target's vocabulary: it is read, never drafted.
    EXPECT_EQ(refusal_of("pard:" + written(299, as_gguf), 280), "");
    expect_refused(refusal_of("pard:" + written(300, as_gguf)),
                   "the mask token to be one of the model's, 0 to 299, got 300");
    EXPECT_EQ(refusal_of("pard:" + written(300, as_gguf) + ",mask=5"), "");
    EXPECT_EQ(load_model(written(kNoToken, as_gguf), {.n_threads = 1})->config().mask_token,
              std::nullopt);
    expect_refused(refusal_of("pard:" + written(kNoToken, as_gguf)),
                   "a mask token (pard_token in config.json, tokenizer.ggml.mask_token_id, or "
                   "mask=ID), got none");
    expect_refused(refusal_of("pard:" + written(kNoToken, as_gguf) + ",mask=300"), "got 300");
    EXPECT_EQ(refusal_of("pard:" + written(kNoToken, as_gguf) + ",mask=299,length=3"), "");
  }
}

TEST_F(PardFiles, SpecsAreRefusedBeforeAnythingIsLoaded) {
  for (const char* keys : {"mask=-1", "mask=x", "length=0", "length=256", "confidence=2",
                           "vocabulary=shared", "schedule=heuristic", "weights=int3"}) {
    EXPECT_THROW(read_drafter(std::string("pard:nowhere,") + keys), UsageError) << keys;
  }
  EXPECT_THROW(read_drafter("pard"), UsageError);
  EXPECT_EQ(read_drafter("pard:nowhere").shape->depth(), 8);
  EXPECT_EQ(read_drafter("pard:nowhere,length=12").shape->depth(), 12);
}

}  // namespace
}  // namespace outrider
