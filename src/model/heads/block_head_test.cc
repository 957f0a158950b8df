// SPDX-License-Identifier: Apache-2.0
// Heads that draft a block. Compares their forward pass with a program written from the public ones
// (tests/golden/make/make_block_heads_golden.py), in every file format. A block's bits must depend
// only on its text.
#include "model/heads/block_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/table.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::DflashForm;
using test::golden_block_shape;
using test::near;

const json& golden() {
  static const json kGolden =
      json::parse(std::ifstream(fs::path(OUTRIDER_SOURCE_DIR) / "tests/golden/block_heads.json"));
  return kGolden;
}

// Keys that the golden program adds to the shape.
constexpr const char* kGoldenKeys =
    R"({"rms_norm_eps": 1e-6, "dflash_config": {"mask_token_id": 21}})";

// The engine computes in f32, the program in f64. Weights are of order one, sums have at most 24
// terms, and rows pass three layers of the target and two of the head. Normalised values of order
// one, and logits, sums of eight of them, differ by less than 1e-5.
constexpr double kTolerance = 1e-5;

void expect_near(std::span<const float> values, const json& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(near(values[i], expected.at(i), kTolerance)) << "at " << i;
  }
}

class BlockHeads : public ::testing::Test {
 protected:
  BlockHeads() {
    test::write_hugging_face(test::golden_target(), directory_.path() / "target");
    target_ = load_model(directory_.path() / "target", {.n_threads = 1});
  }

  fs::path head_path() const { return directory_.path() / "head"; }

  // The golden head with config.json changed by `patch`.
  std::unique_ptr<BlockHead> load(const std::string& patch = "{}", DflashForm form = {}) {
    json config = json::parse(kGoldenKeys);
    if (form.speculators) {
      config = {{"mask_token_id", 21}};
      config["transformer_layer_config"] = {{"rms_norm_eps", 1e-6}};
    }
    config.update(json::parse(patch), /*merge_objects=*/true);  // keeps null values
    form.config = config.dump();
    test::write_dflash_head(golden_block_shape(), form, head_path());
    return load_block_head(head_path(), *target_,
                           form.markov.empty() ? BlockHeadKind::dflash : BlockHeadKind::dspark,
                           {.n_threads = 1});
  }

  // (n, dim): the states of a text's tokens.
  std::vector<float> states_of(BlockHead& head, std::span<const TokenId> tokens) {
    const auto sequence = target_->open({});
    const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
    ForwardOutput output;
    target_->forward({&block, 1},
                     {.logits = {.kind = RowSet::Kind::none, .rows = {}},
                      .feature_layers = head.feature_layers()},
                     output);
    std::vector<float> states(tokens.size() * static_cast<std::size_t>(head.dim()));
    head.read(output.features, states);
    return states;
  }

  static void remember(BlockHead& head, Sequence& sequence, std::span<const float> states,
                       std::size_t first, std::size_t n) {
    const auto width = static_cast<std::size_t>(head.dim());
    const BlockHead::Known known = {.sequence = &sequence,
                                    .states = states.subspan(first * width, n * width)};
    head.remember({&known, 1});
  }

  static std::vector<float> draft(BlockHead& head, Sequence& sequence, TokenId anchor) {
    std::vector<float> given(static_cast<std::size_t>(head.config().n_drafted() * head.dim()));
    const BlockHead::Block block = {.sequence = &sequence, .anchor = anchor};
    head.draft({&block, 1}, given);
    return given;
  }

  // Compares every golden block of a variant: hidden states, logits and drafts.
  void expect_golden(BlockHead& head, const std::string& variant) {
    for (std::size_t text = 0; text < golden().at("texts").size(); ++text) {
      const auto tokens = golden().at("texts").at(text).get<std::vector<TokenId>>();
      const std::vector<float> states = states_of(head, std::span(tokens).first(tokens.size() - 1));
      const json& context = golden().at("context").at(text);
      const auto width = static_cast<std::size_t>(head.dim());
      ASSERT_EQ(states.size(), context.size() * width);
      for (std::size_t i = 0; i < context.size(); ++i) {
        expect_near(std::span(states).subspan(i * width, width), context.at(i));
      }
      const auto sequence = head.open();
      std::size_t n_known = 0;
      for (const json& block : golden().at("dflash").at(variant).at(text)) {
        SCOPED_TRACE(variant + ", text " + std::to_string(text) + ", block at " +
                     block.at("start").dump());
        const auto start = block.at("start").get<std::size_t>();
        remember(head, *sequence, states, n_known, start - n_known);
        n_known = start;
        expect_golden_block(head, *sequence, block);
        ASSERT_EQ(sequence->n_kept(), static_cast<int>(start));
      }
    }
  }

  void expect_golden_block(BlockHead& head, Sequence& sequence, const json& expected) {
    const std::vector<float> given = draft(head, sequence, expected.at("anchor"));
    ForwardOutput output;
    head.project(given, output);
    const auto width = static_cast<std::size_t>(head.dim());
    const auto n_drafted = static_cast<std::size_t>(head.config().n_drafted());
    ASSERT_EQ(output.logits.n_rows(), static_cast<int>(n_drafted));
    const std::size_t unused = expected.at("hidden").size() - n_drafted;
    ASSERT_EQ(unused, head.config().gives_next ? 0U : 1U);
    for (std::size_t i = 0; i < n_drafted; ++i) {
      SCOPED_TRACE("draft " + std::to_string(i));
      expect_near(std::span(given).subspan(i * width, width), expected.at("hidden").at(unused + i));
      const std::span<const float> logits = output.logits_row(static_cast<int>(i));
      expect_near(logits, expected.at("logits").at(unused + i));
      if (unused == 0) continue;
      EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
                expected.at("drafts").at(i).get<std::ptrdiff_t>());
    }
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<LanguageModel> target_;
};

constexpr const char* kSliding =
    R"({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 3})";

TEST_F(BlockHeads, DraftAsTheGoldenProgram) {
  expect_golden(*load(), "full");
  expect_golden(*load(kSliding), "sliding");
  expect_golden(*load(R"({"dflash_config": {"causal": true}})"), "causal");
}

// The anchor's slot counts as well if slots predict the token after them.
TEST_F(BlockHeads, GiveTheNextTokenWhereTheFileSaysSo) {
  const auto head = load(R"({"sample_from_anchor": true})");
  EXPECT_EQ(head->config().n_drafted(), 5);
  expect_golden(*head, "full");
}

// The places of a key, and which one wins if two differ (vLLM's qwen3_dflash.py).
TEST_F(BlockHeads, ReadTheKeysWhereOthersDo) {
  const std::map<std::string, std::string> variants = {
      {R"({"is_causal": true, "dflash_config": {"causal": false}})", "causal"},
      {R"({"is_causal": false, "dflash_config": {"causal": true}})", "full"},
      {R"({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 9,
           "dflash_config": {"swa_window_size": 3}})",
       "sliding"},
      {R"({"layer_types": ["full_attention", "full_attention"], "sliding_window": 3})", "full"},
      {R"({"sliding_window": 3, "use_sliding_window": false})", "full"},
      {R"({"block_size": null, "dflash_config": {"block_size": 5}})", "full"},
      {R"({"mask_token_id": 21, "target_layer_ids": [0, 1], "dflash_config": null})", "full"},
      {R"({"is_neox_style": true, "rope_theta": null, "rope_parameters": {"rope_type": "default",
           "rope_theta": 500}})",
       "full"},
  };
  for (const auto& [patch, variant] : variants) {
    SCOPED_TRACE(patch);
    expect_golden(*load(patch), variant);
  }
  // All layers have windows and read the whole block.
  const auto all_slide = load(R"({"dflash_config": {"use_swa": true, "swa_window_size": 7}})");
  for (const BlockHeadConfig::Layer& layer : all_slide->config().attention) {
    EXPECT_EQ(layer.window, 7);
    EXPECT_TRUE(layer.reads_whole_block);
  }
  const auto not_causal = load(R"({"is_causal": false, "sliding_window": 3,
      "layer_types": ["full_attention", "sliding_attention"]})");
  EXPECT_EQ(not_causal->config().attention.at(1).window, 3);
  EXPECT_TRUE(not_causal->config().attention.at(1).reads_whole_block);
}

TEST_F(BlockHeads, OtherFormsDraftAsTheGoldenProgram) {
  expect_golden(*load("{}", {.prefix = "model."}), "full");
  expect_golden(*load("{}", {.speculators = true}), "full");
  expect_golden(*load(R"({"transformer_layer_config": {"sliding_window": 3,
                          "layer_types": ["full_attention", "sliding_attention"]}})",
                      {.speculators = true}),
                "sliding");
}

// The rows of its own output matrix are the tokens that "d2t" names, and no others.
TEST_F(BlockHeads, DraftFromAVocabularyOfTheirOwn) {
  const std::vector<TokenId> vocabulary = {2, 3, 5, 7, 11, 13, 17, 19};
  const auto head = load("{}", {.speculators = true, .draft_vocabulary = vocabulary});
  const auto tokens = golden().at("texts").at(0).get<std::vector<TokenId>>();
  const json& block = golden().at("dflash").at("full").at(0).at(0);
  const auto start = block.at("start").get<std::size_t>();
  const auto sequence = head->open();
  remember(*head, *sequence, states_of(*head, std::span(tokens).first(start)), 0, start);
  ForwardOutput output;
  head->project(draft(*head, *sequence, tokens[start]), output);
  for (std::size_t slot = 1; slot < 5; ++slot) {
    const std::span<const float> logits = output.logits_row(static_cast<int>(slot) - 1);
    ASSERT_EQ(logits.size(), 23U);
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      EXPECT_TRUE(near(logits[static_cast<std::size_t>(vocabulary[id])],
                       block.at("logits").at(slot).at(id), kTolerance));
    }
    EXPECT_EQ(std::count_if(logits.begin(), logits.end(), [](float x) { return std::isinf(x); }),
              23 - static_cast<std::ptrdiff_t>(vocabulary.size()));
  }
}

// Along the greedy chain: corrected logits and confidences at each step, in every form.
TEST_F(BlockHeads, MarkovHeadsFollowTheGoldenChain) {
  struct Case {
    const char* name;
    DflashForm form;
    const char* patch;
  };
  const Case cases[] = {
      {"vanilla", {.markov = "vanilla"}, "{}"},
      {"gated", {.markov = "gated"}, "{}"},
      {"rnn", {.markov = "rnn"}, "{}"},
      {"vanilla_plain", {.markov = "vanilla", .confidence_reads_token = false}, "{}"},
      {"vanilla_own", {.markov = "vanilla"}, R"({"sample_from_anchor": false})"},
      {"gated", {.prefix = "model.", .markov = "gated"}, "{}"},
      {"rnn", {.speculators = true, .markov = "rnn"}, "{}"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const auto head = load(one.patch, one.form);
    MarkovHead& markov = *head->markov();
    const auto width = static_cast<std::size_t>(head->dim());
    const auto rank = static_cast<std::size_t>(markov.rank());
    for (std::size_t text = 0; text < golden().at("texts").size(); ++text) {
      const auto tokens = golden().at("texts").at(text).get<std::vector<TokenId>>();
      const std::vector<float> states =
          states_of(*head, std::span(tokens).first(tokens.size() - 1));
      for (std::size_t block = 0; block < 3; ++block) {
        const json& chain = golden().at("dspark").at(one.name).at(text).at(block);
        const auto start =
            golden().at("dflash").at("full").at(text).at(block).at("start").get<std::size_t>();
        const auto sequence = head->open();
        remember(*head, *sequence, states, 0, start);
        const std::vector<float> given = draft(*head, *sequence, tokens[start]);
        ForwardOutput slots;
        head->project(given, slots);
        ASSERT_EQ(chain.at("drafts").size(), static_cast<std::size_t>(head->config().n_drafted()));
        TokenId token = tokens[start];
        std::vector<float> state;
        for (std::size_t slot = 0; slot < chain.at("drafts").size(); ++slot) {
          SCOPED_TRACE("slot " + std::to_string(slot));
          const MarkovHead::Node node = {
              .token = token,
              .slot_output = std::span(given).subspan(slot * width, width),
              .state = state};
          EXPECT_TRUE(near(markov.confidence(node), chain.at("confidences").at(slot), kTolerance));
          std::vector<float> latent(rank);
          std::vector<float> behind(rank);
          markov.read({&node, 1}, behind, latent);
          state = behind;
          ForwardOutput added;
          markov.give(latent, added);
          std::vector<float> logits(slots.logits_row(static_cast<int>(slot)).begin(),
                                    slots.logits_row(static_cast<int>(slot)).end());
          for (std::size_t i = 0; i < logits.size(); ++i) logits[i] += added.logits_row(0)[i];
          expect_near(logits, chain.at("logits").at(slot));
          token =
              static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
          EXPECT_EQ(token, chain.at("drafts").at(slot));
        }
      }
    }
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// For any number of states at a time, after any drafts, alone or beside other blocks.
TEST_F(BlockHeads, ABlocksBitsDependOnItsTextAlone) {
  for (const char* patch : {"{}", kSliding}) {
    SCOPED_TRACE(patch);
    const auto head = load(patch);
    const auto width = static_cast<std::size_t>(head->dim());
    std::vector<std::unique_ptr<Sequence>> at_once;
    std::vector<std::vector<float>> expected;
    std::vector<BlockHead::Block> blocks;
    for (const json& text : golden().at("texts")) {
      const auto tokens = text.get<std::vector<TokenId>>();
      const std::size_t n = tokens.size() - 1 - at_once.size();  // of different lengths
      const std::vector<float> states = states_of(*head, std::span(tokens).first(n));
      const auto one_by_one = head->open();
      for (std::size_t i = 0; i < n; ++i) {
        remember(*head, *one_by_one, states, i, 1);
        (void)draft(*head, *one_by_one, tokens[i + 1]);
      }
      expected.push_back(draft(*head, *one_by_one, tokens[n]));
      at_once.push_back(head->open());
      remember(*head, *at_once.back(), states, 0, n);
      EXPECT_TRUE(same_bits(draft(*head, *at_once.back(), tokens[n]), expected.back()));
      // Rewound to an earlier place and continued.
      at_once.back()->rewind(static_cast<int>(n) - 1);
      EXPECT_EQ(at_once.back()->n_kept(), static_cast<int>(n) - 1);
      remember(*head, *at_once.back(), states, n - 1, 1);
      blocks.push_back({.sequence = at_once.back().get(), .anchor = tokens[n]});
    }
    std::vector<float> together(blocks.size() * 4 * width);
    head->draft(blocks, together);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto first = together.begin() + static_cast<std::ptrdiff_t>(i * 4 * width);
      EXPECT_TRUE(same_bits({first, first + static_cast<std::ptrdiff_t>(4 * width)}, expected[i]));
    }
  }
}

// Blocks that end before, within and after an attention's first split (kernels/table.h), and layers
// that read everything, a window, or only earlier tokens.
TEST(BlockHeadsOfLongTexts, HaveTheSameBitsOnAnyNumberOfThreads) {
  // Three key-value heads: one thread takes them all, and two or four cannot share them evenly.
  // Layers are large enough that four threads share a block's pass (thread_share.h).
  test::TinyShape shape;
  shape.context_length = 4096;
  shape.dim = 40;
  shape.n_heads = 6;
  shape.n_kv_heads = 3;
  shape.head_dim = 18;
  shape.hidden_dim = 240;
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path() / "target");
  constexpr std::size_t kMax = kernels::kSplitKeys + 32;
  const std::vector<float> states = test::chirp("states", {kMax, shape.dim});
  const auto width = static_cast<std::size_t>(shape.dim);
  for (const char* attention :
       {R"({"block_size": 16})", R"({"block_size": 16, "is_causal": true})",
        R"({"block_size": 16, "layer_types": ["full_attention", "sliding_attention"],
            "sliding_window": 500, "is_causal": false})"}) {
    test::write_dflash_head(shape, {.config = attention}, directory.path() / "head");
    std::vector<std::vector<float>> expected;
    for (const int n_threads : {1, 2, 4}) {
      const LoadOptions options = {.n_threads = n_threads};
      const auto target = load_model(directory.path() / "target", options);
      const auto head =
          load_block_head(directory.path() / "head", *target, BlockHeadKind::dflash, options);
      std::size_t n_compared = 0;
      for (const std::size_t start :
           {kernels::kSplitKeys - 16, kernels::kSplitKeys - 9, kernels::kSplitKeys + 20}) {
        const auto sequence = head->open();
        // Parts with about as many rows as there are threads.
        const auto most = static_cast<std::size_t>(300 / n_threads);
        for (std::size_t known = 0; known < start; known += std::min(most, start - known)) {
          const BlockHead::Known part = {.sequence = sequence.get(),
                                         .states = std::span(states).subspan(
                                             known * width, std::min(most, start - known) * width)};
          head->remember({&part, 1});
        }
        std::vector<float> given(15 * width);
        const BlockHead::Block block = {.sequence = sequence.get(), .anchor = 7};
        head->draft({&block, 1}, given);
        if (n_threads == 1) {
          expected.push_back(given);
        } else {
          EXPECT_TRUE(same_bits(given, expected[n_compared++]))
              << attention << ", " << n_threads << " threads, block at " << start;
        }
      }
    }
  }
}

// The layers that are read if the file names none: those of DFlash's authors, whose round() rounds
// halves to even.
TEST(BlockHeadConfigs, ReadTheAuthorsLayersWhereNoneAreNamed) {
  const test::TemporaryDirectory directory;
  const auto streams = [&](int n_target_layers, int n_layers) {
    test::TinyShape shape = golden_block_shape();
    shape.n_layers = n_target_layers;
    const json patch = {{"num_hidden_layers", n_layers},
                        {"dflash_config", {{"target_layer_ids", nullptr}}}};
    test::write_dflash_head(shape, {.config = patch.dump()}, directory.path());
    ModelConfig target;
    target.n_layers = n_target_layers;
    target.dim = shape.dim;
    target.vocabulary_size = shape.vocabulary_size;
    return read_block_head_config(directory.path(), target, BlockHeadKind::dflash).feature_layers;
  };
  EXPECT_EQ(streams(36, 5), (std::vector<int>{2, 10, 18, 26, 34}));
  EXPECT_EQ(streams(32, 5), (std::vector<int>{2, 9, 16, 23, 30}));
  EXPECT_EQ(streams(24, 9), (std::vector<int>{2, 5, 7, 9, 12, 15, 17, 19, 22}));
  EXPECT_EQ(streams(24, 1), (std::vector<int>{13}));
}

}  // namespace
}  // namespace outrider
