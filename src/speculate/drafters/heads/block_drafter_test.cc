// SPDX-License-Identifier: Apache-2.0
// Drafters with block heads: their drafts against those of an independent program
// (tests/golden/make/make_block_heads_golden.py), and files that are refused.
#include "speculate/drafters/heads/block_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/elementary.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/tree_shapes/best_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/goldens/golden_drafts.h"
#include "tests/support/models/head_files.h"
#include "tests/support/models/tiny_heads.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;
using test::golden_shape;
using test::TinyShape;

const nlohmann::json& golden() {
  static const nlohmann::json all = nlohmann::json::parse(
      std::ifstream(fs::path(OUTRIDER_SOURCE_DIR) / "tests/golden/block_heads.json"));
  return all;
}

class BlockDrafters : public test::HeadFiles {
 protected:
  // markov: the form of the Markov head; empty: none.
  void write_golden(const std::string& markov) const {
    test::write_dflash_head(
        test::golden_block_shape(),
        {.config = R"({"rms_norm_eps": 1e-6, "dflash_config": {"mask_token_id": 21}})",
         .markov = markov},
        head_path());
  }
};

// Greedy generation with a context that grows by the accepted tokens. Compares every round's draft,
// its accepted length and the text (block_heads.json, "runs").
void expect_golden_runs(LanguageModel& target, Drafter& drafter, const std::string& name,
                        int n_drafted) {
  const auto shape = std::make_shared<FixedShape>(
      widths_tree(std::vector<int>(static_cast<std::size_t>(n_drafted), 1)), Siblings::top_ranks);
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(target, &drafter, *acceptance, shape, nullptr);
  for (std::size_t index = 0; index < golden().at("texts").size(); ++index) {
    const nlohmann::json& run = golden().at("runs").at(name).at(index);
    const auto expected = run.at("tokens").get<std::vector<TokenId>>();
    auto text = golden().at("texts").at(index).get<std::vector<TokenId>>();
    text.resize(golden().at("growth").at(0));
    text.push_back(expected.front());  // the first anchor
    CounterChance chance(1);
    Stream stream(static_cast<SequenceId>(index), text,
                  Transform({.temperature = 0}, target.config().vocabulary_size), chance);
    stream.max_total = target.config().context_length;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    for (const nlohmann::json& round : run.at("rounds")) {
      const auto start = round.at("start").get<std::size_t>();
      ASSERT_EQ(stream.tokens.size(), start + 1);
      decoder.round(streams, [](Stream&, const Committed&) { return false; });
      ASSERT_EQ(stream.tree.n_drafted(), n_drafted);
      for (int node = 1; node <= n_drafted; ++node) {
        EXPECT_EQ(stream.tree.node(node).token,
                  round.at("drafts").at(static_cast<std::size_t>(node - 1)));
      }
      EXPECT_EQ(stream.tokens.size() - start - 2, round.at("accepted").get<std::size_t>());
    }
    text.insert(text.end(), expected.begin() + 1, expected.end());
    EXPECT_EQ(stream.tokens, text);
    decoder.end(stream);
  }
}

TEST_F(BlockDrafters, DraftAsTheGoldenProgram) {
  write_golden("");
  expect_golden_runs(*target_, *make_of("dflash"), "dflash", 4);
  write_golden("rnn");
  expect_golden_runs(*target_, *make_of("dspark"), "dspark", 5);
}

TEST_F(BlockDrafters, RefuseWhatDoesNotFit) {
  const auto refused = [&](const std::string& patch, const TinyShape& shape = golden_shape()) {
    test::write_dflash_head(shape, {.config = patch}, head_path());
    return refusal_of("dflash");
  };
  expect_refused(refusal_of("dflash"), "got nothing there");
  fs::create_directories(head_path());
  expect_refused(refusal_of("dflash"), "got no config.json");
  EXPECT_EQ(refused(""), "");

  // A head for another target: other width, vocabulary or number of layers.
  TinyShape wide = golden_shape();
  wide.dim = 16;
  expect_refused(refused("", wide), "hidden_size to be the target's, 8, got 16");
  expect_refused(refused(R"({"target_hidden_size": 16})"),
                 "target_hidden_size to be the target's, 8, got 16");
  TinyShape verbose = golden_shape();
  verbose.vocabulary_size = 24;
  expect_refused(refused("", verbose), "vocab_size to be the target's, 23, got 24");
  TinyShape deep = golden_shape();
  deep.n_layers = 4;
  expect_refused(refused("", deep), "num_target_layers to be the target's, 3, got 4");
  expect_refused(refused(R"({"dflash_config": {"target_layer_ids": [0, 2]}})"),
                 "dflash_config.target_layer_ids to be layers of a target of 3");
  expect_refused(refused(R"({"dflash_config": {"target_layer_ids": [0, -2]}})"),
                 "dflash_config.target_layer_ids to be layers of a target of 3");
  expect_refused(refused(R"({"dflash_config": {"target_layer_ids": [0, 2147483647]}})"),
                 "dflash_config.target_layer_ids to be layers of a target of 3");
  expect_refused(refused(R"({"dflash_config": {"target_layer_ids": []}})"), "1 to 64 layers");

  expect_refused(refused(R"({"block_size": 0})"), "block_size to be 2 to 64, got 0");
  expect_refused(refused(R"({"block_size": 1})"), "block_size to be 2 to 64, got 1");
  expect_refused(refused(R"({"block_size": -5})"), "block_size to be 2 to 64, got -5");
  expect_refused(refused(R"({"block_size": 65})"), "block_size to be 2 to 64, got 65");
  expect_refused(refused(R"({"block_size": null})"), "block_size to be there, got no such key");
  expect_refused(refused(R"({"dflash_config": {"mask_token_id": null}})"),
                 "mask_token_id to be there, got no such key");
  expect_refused(refused(R"({"dflash_config": {"mask_token_id": 23}})"),
                 "dflash_config.mask_token_id to be a token of the target, 0 to 22, got 23");
  expect_refused(refused(R"({"dflash_config": {"mask_token_id": -1}})"), "0 to 22, got -1");

  // Sliding windows, and heads of other kinds.
  expect_refused(refused(R"({"sliding_window": 3})"), "layer_types to be there");
  expect_refused(refused(R"({"layer_types": ["sliding_attention"]})"), "layer_types to be 2");
  expect_refused(refused(R"({"layer_types": ["full_attention", "sliding_attention"]})"),
                 "sliding_window to be there");
  expect_refused(refused(R"({"dflash_config": {"use_swa": true, "swa_window_size": 0}})"),
                 "dflash_config.swa_window_size to be 1 or more, got 0");
  expect_refused(refused(R"({"layer_types": ["full_attention", "linear_attention"]})"),
                 "full_attention or sliding_attention, got \"linear_attention\"");
  expect_refused(refused(R"({"dflash_config": {"attention_sink_bias": true}})"),
                 "dflash_config.attention_sink_bias to be absent");
  expect_refused(refused(R"({"dflash_config": {"conv_kernel_size": 2}})"),
                 "dflash_config.conv_kernel_size to be absent");
  // Keys that count only in another place of the file, or not at all.
  expect_refused(refused(R"({"use_swa": true, "swa_window_size": 0})"),
                 "swa_window_size to be 1 or more, got 0");
  expect_refused(refused(R"({"dflash_config": {"layer_types": ["full_attention"]}})"),
                 "dflash_config.layer_types to be absent");
  expect_refused(refused(R"({"dflash_config": {"aux_hidden_state_layer_ids": [0, 3]}})"),
                 "dflash_config.aux_hidden_state_layer_ids to be layers of a target of 3");
  expect_refused(refused(R"({"has_lm_head": true})"),
                 "has_lm_head to be as has_embed_tokens, false, got true");
  expect_refused(refused(R"({"is_neox_style": false})"), "is_neox_style to be true or absent");
  expect_refused(refused(R"({"logit_scale": 0.5})"), "logit_scale");
  expect_refused(refused(R"({"speculators_model_type": "eagle3"})"),
                 "speculators_model_type to be dflash or dspark, got eagle3");
  expect_refused(refused(R"({"markov_rank": 4, "markov_head_type": "vanilla"})"),
                 "markov_rank to be absent, or the head to be named dspark:PATH, got 4");

  // Missing tensors, and unknown ones.
  expect_refused(refused(R"({"num_hidden_layers": 3})"), "a tensor layers.2.");
  expect_refused(refused(R"({"num_hidden_layers": 1})"), "layers.1.");
  expect_refused(refused(R"({"dflash_config": {"target_layer_ids": [0, 1, 1]}})"), "fc.weight");
  expect_refused(refused(R"({"num_key_value_heads": 2})"), "layers.0.self_attn.k_proj.weight");
  // A head of another kind, and a model.
  test::write_eagle_head(golden_shape(), head_path());
  expect_refused(refusal_of("dflash"), "block_size to be there");
  fs::remove_all(head_path());
  test::write_hugging_face(test::golden_target(), head_path());
  expect_refused(refusal_of("dflash"), "block_size to be there");
}

TEST_F(BlockDrafters, MarkovRefuseWhatDoesNotFit) {
  const auto refused = [&](const std::string& patch, const std::string& markov = "gated") {
    test::write_dflash_head(golden_shape(), {.config = patch, .markov = markov}, head_path());
    return refusal_of("dspark");
  };
  for (const char* form : {"vanilla", "gated", "rnn"}) EXPECT_EQ(refused("", form), "");
  expect_refused(refused("", ""),
                 "markov_rank to be 1 to 65536 (without one, the head is named "
                 "dflash:PATH), got no such key");
  expect_refused(refused(R"({"markov_rank": -4})"), "got -4");
  expect_refused(refused(R"({"markov_rank": 5})"), "markov_head.markov_w1.weight of shape (23, 5)");
  expect_refused(refused(R"({"markov_head_type": "cubic"})"),
                 "markov_head_type to be vanilla, gated or rnn, got cubic");
  expect_refused(refused(R"({"markov_head_type": "rnn"})"), "markov_head.joint_proj.weight");
  expect_refused(refused(R"({"markov_head_type": "vanilla"})"), "markov_head.gate_proj.");
  expect_refused(refused(R"({"enable_confidence_head": false})"), "confidence_head.proj.");
  expect_refused(refused(R"({"confidence_head_with_markov": false})"),
                 "confidence_head.proj.weight of shape (1, 8), got (1, 12)");
  test::write_dflash_head(golden_shape(), {}, head_path());
  EXPECT_THROW(make("dspark:" + head_path().string() + ",accept=2"), UsageError);
  EXPECT_THROW(make("dflash:" + head_path().string() + ",accept=0.5"), UsageError);
}

// Verification may ask for the distribution after a node that the draft did not run: it belongs to
// the node's own path.
TEST_F(BlockDrafters, MarkovShowTheDistributionOfAPath) {
  for (const std::string markov : {"vanilla", "gated", "rnn"}) {
    SCOPED_TRACE(markov);
    write_golden(markov);
    const auto drafter = make_of("dspark");
    auto text = golden().at("texts").at(0).get<std::vector<TokenId>>();
    text.resize(golden().at("growth").at(0).get<std::size_t>() + 1);
    const nlohmann::json& chain = golden().at("dspark").at(markov).at(0).at(0);
    const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
    Decoder decoder(*target_, drafter.get(), *acceptance, chain_shape(5), nullptr);
    CounterChance chance(1);
    Stream stream(0, text, Transform({.temperature = 1}, target_->config().vocabulary_size),
                  chance);
    stream.max_total = target_->config().context_length;
    decoder.begin(stream);
    DraftTree tree;
    tree.reset(text.back(), static_cast<std::int64_t>(text.size()));
    for (int node = 0; node < 5; ++node) {
      const auto place = static_cast<std::size_t>(node);
      Distribution dist;
      ASSERT_TRUE(drafter->draft_at(stream.context(), tree, node, dist, nullptr));
      const auto logits = chain.at("logits").at(place).get<std::vector<double>>();
      double total = 0;
      for (const double logit : logits) total += std::exp(logit);
      for (std::size_t token = 0; token < logits.size(); ++token) {
        EXPECT_TRUE(test::near(dist.prob(static_cast<TokenId>(token)),
                               std::exp(logits[token]) / total, 1e-5))
            << "node " << node;
      }
      tree.add_child(node, chain.at("drafts").at(place), kPointMass, Replacement::with);
    }
    Distribution beyond;
    EXPECT_FALSE(drafter->draft_at(stream.context(), tree, 5, beyond, nullptr));
    decoder.end(stream);
  }
}

// A path ends before the first token whose confidence is too low (block_heads.json).
TEST_F(BlockDrafters, MarkovEndPathsByTheirConfidence) {
  write_golden("gated");
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  const auto shape = std::make_shared<FixedShape>(widths_tree(std::vector{1, 1, 1, 1, 1}));
  std::set<int> lengths;
  for (const double least : {0.2, 0.23, 0.45, 0.7}) {
    const auto drafter =
        make("dspark:" + head_path().string() + ",accept=" + std::to_string(least));
    for (std::size_t index = 0; index < golden().at("texts").size(); ++index) {
      for (std::size_t block = 0; block < 3; ++block) {
        const nlohmann::json& chain = golden().at("dspark").at("gated").at(index).at(block);
        auto text = golden().at("texts").at(index).get<std::vector<TokenId>>();
        text.resize(
            golden().at("dflash").at("full").at(index).at(block).at("start").get<std::size_t>() +
            1);
        int expected = 0;
        while (expected < 5 &&
               chain.at("confidences").at(static_cast<std::size_t>(expected)) >= least) {
          ++expected;
        }
        lengths.insert(expected);
        Decoder decoder(*target_, drafter.get(), *acceptance, shape, nullptr);
        CounterChance chance(1);
        Stream stream(0, text, Transform({.temperature = 0}, target_->config().vocabulary_size),
                      chance);
        stream.max_total = target_->config().context_length;
        decoder.begin(stream);
        Stream* const streams[] = {&stream};
        decoder.round(streams, [](Stream&, const Committed&) { return false; });
        EXPECT_EQ(stream.tree.n_drafted(), expected) << least << ", text " << index;
        decoder.end(stream);
      }
    }
  }
  EXPECT_EQ(lengths, (std::set<int>{0, 1, 2, 5}));
}

// A text whose prompt has been run, and a drafter made of a head.
class HeadedText {
 public:
  HeadedText(LanguageModel& target, std::unique_ptr<BlockHead> head,
             const std::vector<TokenId>& text, double temperature)
      : head_(head.get()),
        drafter_(std::move(head)),
        acceptance_(make_multi_round(std::make_shared<ExactRule>())),
        decoder_(target, &drafter_, *acceptance_, chain_shape(1), nullptr),
        chance_(1),
        stream_(0, text, Transform({.temperature = temperature}, target.config().vocabulary_size),
                chance_) {
    stream_.max_total = target.config().context_length;
    decoder_.begin(stream_);
    read_slots(target, text);
  }

  const DraftTree& draft(const TreeShape& shape) {
    const Context context = stream_.context();
    tree_.reset(context.tokens.back(), static_cast<std::int64_t>(context.tokens.size()));
    DraftJob job{.context = &context,
                 .budget = {.depth = 100, .n_nodes = 1000},
                 .shape = &shape,
                 .chance = &chance_,
                 .tree = &tree_};
    drafter_.propose({&job, 1});
    return tree_;
  }

  // The head's distribution after a path, and its confidence there (1: it has none).
  struct Behind {
    Distribution raw;
    double confidence = 1;
  };
  Behind behind(const std::vector<TokenId>& path) {
    const Context context = stream_.context();
    DraftTree tree;
    tree.reset(context.tokens.back(), static_cast<std::int64_t>(context.tokens.size()));
    int node = 0;
    for (const TokenId token : path) node = tree.add_child(node, token, kPointMass);
    Behind behind;
    Distribution dist;
    EXPECT_TRUE(drafter_.draft_at(context, tree, node, dist, &behind.raw));
    if (head_->markov() == nullptr) return behind;
    const auto dim = static_cast<std::size_t>(head_->dim());
    behind.confidence = head_->markov()->confidence(
        {.token = tree.node(node).token,
         .slot_output = std::span<const float>(slot_outputs_).subspan(path.size() * dim, dim),
         .state = {}});
    return behind;
  }

 private:
  // Computes the outputs of the slots after the text, without the drafter.
  void read_slots(LanguageModel& target, const std::vector<TokenId>& text) {
    const auto dim = static_cast<std::size_t>(head_->dim());
    const auto known = std::span(text).first(text.size() - 1);
    const auto sequence = target.open({});
    const TokenBlock block{.sequence = sequence.get(), .tokens = known, .parents = {}};
    ForwardOutput output;
    target.forward(
        {&block, 1},
        {.logits = {.kind = RowSet::Kind::none}, .feature_layers = head_->feature_layers()},
        output);
    std::vector<float> states(known.size() * dim);
    head_->read(output.features, states);
    const auto of_head = head_->open();
    const BlockHead::Known all = {.sequence = of_head.get(), .states = states};
    head_->remember({&all, 1});
    slot_outputs_.resize(static_cast<std::size_t>(head_->config().n_drafted()) * dim);
    const BlockHead::Block slots = {.sequence = of_head.get(), .anchor = text.back()};
    head_->draft({&slots, 1}, slot_outputs_);
  }

  BlockHead* head_;
  BlockDrafter drafter_;
  std::unique_ptr<const Acceptance> acceptance_;
  Decoder decoder_;
  CounterChance chance_;
  Stream stream_;
  DraftTree tree_;
  std::vector<float> slot_outputs_;
};

std::vector<std::vector<TokenId>> paths_of(const DraftTree& tree) {
  std::vector<std::vector<TokenId>> paths;
  for (int node = 1; node < tree.n_nodes(); ++node) {
    tree.path_tokens(node, paths.emplace_back());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// A best-first tree of a head consists of the likeliest of all paths. Each token counts by the
// distribution after its own path and the head's confidence there.
TEST_F(BlockDrafters, BestTreesAreTheLikeliestPaths) {
  constexpr std::size_t kDepth = 3;
  constexpr int kNodes = 30;
  auto text = golden().at("texts").at(0).get<std::vector<TokenId>>();
  text.resize(golden().at("growth").at(0).get<std::size_t>() + 1);
  for (const std::string markov : {"", "vanilla", "gated", "rnn"}) {
    write_golden(markov);
    for (const double temperature : {0.0, 1.0}) {
      SCOPED_TRACE(markov + " at temperature " + std::to_string(temperature));
      HeadedText headed(
          *target_,
          load_block_head(head_path(), *target_,
                          markov.empty() ? BlockHeadKind::dflash : BlockHeadKind::dspark,
                          {.n_threads = 1}),
          text, temperature);
      const auto grown =
          paths_of(headed.draft(BestShape({.nodes = kNodes, .depth = static_cast<int>(kDepth)})));
      using Path = std::vector<TokenId>;
      // If the distribution ignores the path, or without confidence, other paths are the likeliest.
      enum Reading { kWhole, kWithoutChain, kWithoutConfidence };
      for (const Reading reading : {kWhole, kWithoutChain, kWithoutConfidence}) {
        std::vector<std::pair<double, Path>> all;
        std::vector<std::pair<double, Path>> level = {{0, {}}};
        for (std::size_t depth = 0; depth < kDepth; ++depth) {
          std::vector<std::pair<double, Path>> next;
          for (const auto& [log_prob, path] : level) {
            HeadedText::Behind behind = headed.behind(path);
            if (reading == kWithoutChain) behind.raw = headed.behind(Path(depth, 0)).raw;
            if (reading == kWithoutConfidence) behind.confidence = 1;
            for (TokenId token = 0; token < target_->config().vocabulary_size; ++token) {
              Path longer = path;
              longer.push_back(token);
              next.emplace_back(
                  log_prob + portable_log(behind.raw.prob(token)) + portable_log(behind.confidence),
                  longer);
            }
          }
          all.insert(all.end(), next.begin(), next.end());
          level = std::move(next);
        }
        std::partial_sort(all.begin(), all.begin() + kNodes, all.end(),
                          [](const auto& a, const auto& b) { return a.first > b.first; });
        std::vector<Path> expected;
        for (int i = 0; i < kNodes; ++i)
          expected.push_back(all[static_cast<std::size_t>(i)].second);
        std::sort(expected.begin(), expected.end());
        if (reading == kWhole || markov.empty()) {
          EXPECT_EQ(grown, expected);
        } else {
          EXPECT_NE(grown, expected) << reading;
        }
      }
    }
  }
}

// A tree and everything recorded in it have the same bits on any number of threads.
TEST(BlockDraftersOnThreads, DraftTreesOfTheSameBits) {
  // Layers are large enough that four threads share the pass over a block (thread_share.h).
  TinyShape shape;
  shape.dim = 40;
  shape.n_heads = 6;
  shape.n_kv_heads = 3;
  shape.head_dim = 18;
  shape.hidden_dim = 240;
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path() / "target");
  const std::vector<TokenId> text = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
  const FixedShape wide(widths_tree(std::vector{4, 2, 2, 1}));
  const BestShape best({.nodes = 60, .depth = 8});
  for (const std::string markov : {"", "rnn"}) {
    test::write_dflash_head(shape, {.config = R"({"block_size": 16})", .markov = markov},
                            directory.path() / "head");
    for (const TreeShape* const tree_shape :
         {static_cast<const TreeShape*>(&wide), static_cast<const TreeShape*>(&best)}) {
      std::vector<std::vector<TokenId>> expected;
      std::vector<double> expected_probs;
      for (const int n_threads : {1, 2, 4}) {
        const LoadOptions options = {.n_threads = n_threads};
        const auto target = load_model(directory.path() / "target", options);
        HeadedText headed(
            *target,
            load_block_head(directory.path() / "head", *target,
                            markov.empty() ? BlockHeadKind::dflash : BlockHeadKind::dspark,
                            options),
            text, 1);
        const DraftTree& tree = headed.draft(*tree_shape);
        EXPECT_GE(tree.n_drafted(), 20);
        std::vector<double> probs;
        for (const DraftNode& node : tree.nodes()) {
          if (node.draft_prob == kNoDistribution) continue;
          const std::vector<double>& of_node = tree.distribution(node.draft_prob).probs;
          probs.insert(probs.end(), of_node.begin(), of_node.end());
        }
        if (n_threads == 1) {
          expected = paths_of(tree);
          expected_probs = probs;
        }
        EXPECT_EQ(paths_of(tree), expected) << n_threads << " threads";
        EXPECT_EQ(probs, expected_probs) << n_threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace outrider
