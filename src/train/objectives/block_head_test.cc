// SPDX-License-Identifier: Apache-2.0
// Heads that draft a block: the engine computes what training computed, what they export, and their
// gradients.
#include "train/objectives/block_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "model/heads/block_head.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "tests/support/goldens/golden_heads.h"
#include "tests/support/gradient_differences.h"
#include "tests/support/models/run_model.h"
#include "tests/support/near.h"

namespace outrider::train {
namespace {

using test::GoldenHeads;
using test::near;
using ::testing::ElementsAre;
using Form = BlockHeadConfig::Markov::Form;
using Weights = BlockHeadOptions::Weights;

// Two texts, the second with a prompt of five tokens and a gap.
Batch two_texts() {
  Batch batch{.n_sequences = 2, .length = 18, .tokens = {}, .weights = {}};
  for (int text = 0; text < 2; ++text) {
    for (int i = 0; i < 18; ++i) {
      batch.tokens.push_back((7 * i + 3 * i * i + 5 * text) % 23);
      const bool is_read = text == 0 ? i == 0 : i < 5 || i == 12;
      batch.weights.push_back(is_read ? 0.0F : 1.0F);
    }
  }
  return batch;
}

class BlockHeads : public GoldenHeads {
 protected:
  BlockHeads() {
    run_.batches = std::make_shared<test::OneBatch>(two_texts());
    run_.held_out = run_.batches;
  }

  BlockHeadOptions options(BlockHeadKind kind) const {
    return {.run = run_,
            .kind = kind,
            .n_layers = 2,
            .n_slots = 4,
            .n_anchors = 64,
            .mask = 21,
            .weights = Weights::decay,
            .gamma = 2,
            .markov = Form::vanilla,
            .markov_rank = 3};
  }
  static std::map<std::string, double> figures(Objective& objective) {
    std::map<std::string, double> named;
    for (const auto& [name, value] : objective.evaluate()) named[name] = value;
    return named;
  }
};

// The engine's output for every block along the text: the sums that evaluate() computes.
struct EngineFigures {
  explicit EngineFigures(const std::filesystem::path& target_path,
                         const std::filesystem::path& head_path, BlockHeadKind kind,
                         const Batch& batch, double gamma)
      : target_(load_model(target_path, {.n_threads = 1})),
        head_(load_block_head(head_path, *target_, kind, {.n_threads = 1})),
        gamma_(gamma) {
    for (int i = 0; i < batch.n_sequences; ++i) {
      const auto first = static_cast<std::size_t>(i) * static_cast<std::size_t>(batch.length);
      const auto length = static_cast<std::size_t>(batch.length);
      read_text(std::span(batch.tokens).subspan(first, length),
                std::span(batch.weights).subspan(first, length));
    }
  }

  double token_loss = 0, l1_distance = 0, confidence_loss = 0;  // sums
  double accepted_0 = 0, accepted_1 = 0;
  double weight = 0;
  int n_blocks = 0;

 private:
  static std::vector<double> dist(std::span<const float> logits) {
    const double top = *std::max_element(logits.begin(), logits.end());
    std::vector<double> dist(logits.size());
    double sum = 0;
    for (std::size_t i = 0; i < dist.size(); ++i) sum += dist[i] = std::exp(logits[i] - top);
    for (double& prob : dist) prob /= sum;
    return dist;
  }

  void read_text(std::span<const TokenId> tokens, std::span<const float> weights) {
    const auto text = target_->open({});
    const TokenBlock block{.sequence = text.get(), .tokens = tokens, .parents = {}};
    ForwardOutput seen;
    target_->forward({&block, 1}, {.feature_layers = head_->feature_layers()}, seen);
    std::vector<float> states(tokens.size() * static_cast<std::size_t>(head_->dim()));
    head_->read(seen.features, states);
    const auto n_drafted = static_cast<std::size_t>(head_->config().n_drafted());
    for (std::size_t anchor = 1; anchor + n_drafted < tokens.size(); ++anchor) {
      const std::span<const float> counts = weights.subspan(anchor + 1, n_drafted);
      if (std::find(counts.begin(), counts.end(), 0.0F) == counts.end()) {
        read_block(tokens, counts, states, anchor, seen);
      }
    }
  }

  void read_block(std::span<const TokenId> tokens, std::span<const float> counts,
                  std::span<const float> states, std::size_t anchor, const ForwardOutput& seen) {
    const auto dim = static_cast<std::size_t>(head_->dim());
    const auto n_drafted = counts.size();
    const auto sequence = head_->open();
    const BlockHead::Known known = {.sequence = sequence.get(),
                                    .states = states.first(anchor * dim)};
    head_->remember({&known, 1});
    std::vector<float> given(n_drafted * dim);
    const BlockHead::Block block = {.sequence = sequence.get(), .anchor = tokens[anchor]};
    head_->draft({&block, 1}, given);
    ForwardOutput said;
    head_->project(given, said);
    double reached_0 = 1, reached_1 = 1;
    std::vector<float> state;
    for (std::size_t k = 0; k < n_drafted; ++k) {
      const std::span<const float> row = said.logits_row(static_cast<int>(k));
      std::vector<float> logits(row.begin(), row.end());
      double confidence = 0;
      if (MarkovHead* const markov = head_->markov()) {
        const MarkovHead::Node node = {.token = tokens[anchor + k],
                                       .slot_output = std::span(given).subspan(k * dim, dim),
                                       .state = state};
        confidence = markov->confidence(node);
        std::vector<float> latent(static_cast<std::size_t>(markov->rank()));
        std::vector<float> next(latent.size());
        markov->read({&node, 1}, next, latent);
        state = next;
        ForwardOutput added;
        markov->give(latent, added);
        for (std::size_t i = 0; i < logits.size(); ++i) logits[i] += added.logits_row(0)[i];
      }
      const std::vector<double> draft_prob = dist(logits);
      const std::vector<double> target_prob = dist(seen.logits_row(static_cast<int>(anchor + k)));
      double distance = 0;
      for (std::size_t i = 0; i < draft_prob.size(); ++i) {
        distance += std::abs(draft_prob[i] - target_prob[i]);
      }
      const double slot_weight = counts[k] * std::exp(-static_cast<double>(k) / gamma_);
      const auto token = static_cast<std::size_t>(tokens[anchor + k + 1]);
      token_loss -= slot_weight * std::log(draft_prob[token]);
      l1_distance += slot_weight * distance;
      const double acceptance = 1 - distance / 2;
      confidence_loss -= slot_weight * (acceptance * std::log(confidence) +
                                        (1 - acceptance) * std::log(1 - confidence));
      weight += slot_weight;
      const auto best = [](const std::vector<double>& dist) {
        return std::max_element(dist.begin(), dist.end()) - dist.begin();
      };
      reached_0 *= best(draft_prob) == best(target_prob) ? 1 : 0;
      reached_1 *= acceptance;
      accepted_0 += reached_0;
      accepted_1 += reached_1;
    }
    ++n_blocks;
  }

  std::unique_ptr<LanguageModel> target_;
  std::unique_ptr<BlockHead> head_;
  double gamma_;
};

// A few training steps, an export, and every figure recomputed by drafting in the engine. Weights
// of order one and sums of a few dozen terms in f32 on both sides: golden_heads.h's bound.
TEST_F(BlockHeads, ATrainedHeadIsTheSameInTheEngine) {
  struct Case {
    BlockHeadKind kind;
    Form form;
  };
  for (const auto& [kind, form] :
       {Case{BlockHeadKind::dflash, Form::vanilla}, Case{BlockHeadKind::dspark, Form::vanilla},
        Case{BlockHeadKind::dspark, Form::gated}, Case{BlockHeadKind::dspark, Form::recurrent}}) {
    SCOPED_TRACE(name_of(form) + (kind == BlockHeadKind::dflash ? ", dflash" : ", dspark"));
    BlockHeadOptions its = options(kind);
    its.markov = form;
    const auto objective = make_block_head(its);
    test::fill_with_golden_values(objective->trained());
    torch::optim::Adam optimiser(objective->trained().parameters(),
                                 torch::optim::AdamOptions(0.01));
    for (int step = 0; step < 8; ++step) {
      optimiser.zero_grad();
      objective->loss(step).value.backward();
      optimiser.step();
    }
    const auto path = out() / (name_of(form) + std::to_string(static_cast<int>(kind)));
    objective->export_to(path);
    auto trained = figures(*objective);
    const EngineFigures engine(target_path(), path, kind, run_.batches->batch(0), its.gamma);
    ASSERT_GT(engine.n_blocks, 10);
    const auto expect = [&](const char* name, double value) {
      EXPECT_TRUE(near(trained.at(name), value, test::kGoldenTolerance)) << name;
    };
    const double token_loss = engine.token_loss / engine.weight;
    expect("token_loss", token_loss);
    expect("accepted_0", engine.accepted_0 / engine.n_blocks);
    expect("accepted_1", engine.accepted_1 / engine.n_blocks);
    if (kind == BlockHeadKind::dflash) {
      expect("loss", token_loss);
      continue;
    }
    const double distance = engine.l1_distance / engine.weight;
    const double confidence_loss = engine.confidence_loss / engine.weight;
    expect("l1_distance", distance);
    expect("confidence_loss", confidence_loss);
    expect("loss", 0.1 * token_loss + 0.9 * distance + confidence_loss);
  }
}

TEST_F(BlockHeads, ExportTheAuthorsNames) {
  for (const BlockHeadKind kind : {BlockHeadKind::dflash, BlockHeadKind::dspark}) {
    const bool is_dspark = kind == BlockHeadKind::dspark;
    BlockHeadOptions its = options(kind);
    its.markov = Form::gated;
    make_block_head(its)->export_to(out());
    std::map<std::string, std::vector<std::int64_t>> expected = {
        {"fc.weight", {8, 16}}, {"hidden_norm.weight", {8}}, {"norm.weight", {8}}};
    for (const char* layer : {"layers.0.", "layers.1."}) {
      for (const auto& [name, shape] : std::map<std::string, std::vector<std::int64_t>>{
               {"input_layernorm.weight", {8}},
               {"post_attention_layernorm.weight", {8}},
               {"self_attn.q_proj.weight", {8, 8}},
               {"self_attn.k_proj.weight", {4, 8}},
               {"self_attn.v_proj.weight", {4, 8}},
               {"self_attn.o_proj.weight", {8, 8}},
               {"self_attn.q_norm.weight", {4}},
               {"self_attn.k_norm.weight", {4}},
               {"mlp.gate_proj.weight", {12, 8}},
               {"mlp.up_proj.weight", {12, 8}},
               {"mlp.down_proj.weight", {8, 12}}}) {
        expected[layer + name] = shape;
      }
    }
    if (is_dspark) {
      expected["markov_head.markov_w1.weight"] = {23, 3};
      expected["markov_head.markov_w2.weight"] = {23, 3};
      expected["markov_head.gate_proj.weight"] = {3, 11};
      expected["markov_head.gate_proj.bias"] = {3};
      expected["confidence_head.proj.weight"] = {1, 11};
      expected["confidence_head.proj.bias"] = {1};
    }
    std::map<std::string, std::vector<std::int64_t>> written;
    const auto source = open_safetensors_directory(out());
    for (const TensorView& tensor : source->tensors()) written[tensor.name] = tensor.shape;
    EXPECT_EQ(written, expected);
    const BlockHeadConfig config = read_block_head_config(out(), run_.target->config(), kind);
    EXPECT_EQ(config.n_slots, 4);
    EXPECT_EQ(config.mask, 21);
    EXPECT_EQ(config.gives_next, is_dspark);
    EXPECT_THAT(config.feature_layers, ElementsAre(1, 2));
    EXPECT_FALSE(config.own_matrices);
    EXPECT_EQ(config.layers.rope.theta, run_.target->config().rope.theta);
    EXPECT_EQ(config.markov.form, is_dspark ? Form::gated : Form::vanilla);
    EXPECT_EQ(config.markov.has_confidence, is_dspark);
    EXPECT_EQ(config.markov.confidence_reads_token, is_dspark);
  }
}

TEST_F(BlockHeads, GradientsAreDifferences) {
  for (const BlockHeadKind kind : {BlockHeadKind::dflash, BlockHeadKind::dspark}) {
    for (const Form form : {Form::vanilla, Form::gated, Form::recurrent}) {
      if (kind == BlockHeadKind::dflash && form != Form::vanilla) continue;
      SCOPED_TRACE(name_of(form));
      BlockHeadOptions its = options(kind);
      its.markov = form;
      const auto objective = make_block_head(its);
      torch::nn::Module& module = objective->trained();
      module.to(torch::kFloat64);
      test::fill_with_golden_values(module);
      const auto loss = [&] {
        torch::manual_seed(5);  // the same blocks each time
        return objective->loss(0).value;
      };
      const auto expect_differences = [&](bool of_confidence) {
        module.zero_grad();
        loss().backward();
        for (const auto& parameter : module.named_parameters()) {
          if (parameter.key().starts_with("confidence_head.") != of_confidence) continue;
          test::expect_gradient_is_difference(parameter.value(), loss,
                                              test::scattered_entries(parameter.value(), 2), 1e-7,
                                              parameter.key());
        }
      };
      if (kind == BlockHeadKind::dspark) expect_differences(true);
      // The confidence's target has no gradient, but depends on all other weights. A confidence of
      // one half is equally far from either target.
      const torch::NoGradGuard no_grad;
      for (const auto& parameter : module.named_parameters()) {
        if (parameter.key().starts_with("confidence_head.")) parameter.value().zero_();
      }
      const torch::AutoGradMode with_grad(true);
      expect_differences(false);
    }
  }
}

TEST_F(BlockHeads, FiguresComeFromTheSameBlocksEachTime) {
  BlockHeadOptions its = options(BlockHeadKind::dspark);
  its.n_anchors = 2;
  const auto objective = make_block_head(its);
  test::fill_with_golden_values(objective->trained());
  const auto before = figures(*objective);
  const auto loss = [&](std::uint64_t seed) {
    torch::manual_seed(seed);
    return objective->loss(0).value.item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
  EXPECT_EQ(figures(*objective), before);
}

TEST(BlockHeadFeatures, AreSpreadOverTheTarget) {
  EXPECT_THAT(block_feature_layers(36), ElementsAre(2, 10, 18, 26, 34));
  EXPECT_THAT(block_feature_layers(32), ElementsAre(2, 9, 16, 23, 30));
  EXPECT_THAT(block_feature_layers(8), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(block_feature_layers(7), ElementsAre(1, 2, 3, 5, 6));
  EXPECT_THAT(block_feature_layers(6), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(block_feature_layers(3), ElementsAre(1, 2));
  EXPECT_THAT(block_feature_layers(2), ElementsAre(1));
  EXPECT_THAT(block_feature_layers(1), ElementsAre(0));
}

TEST_F(BlockHeads, RefuseWhatMakesNoHead) {
  const auto refused = [&](void (*spoil)(BlockHeadOptions&)) {
    BlockHeadOptions its = options(BlockHeadKind::dspark);
    spoil(its);
    EXPECT_THROW(make_block_head(its), UsageError);
  };
  refused([](BlockHeadOptions& its) { its.n_layers = 0; });
  refused([](BlockHeadOptions& its) { its.n_slots = 1; });
  refused([](BlockHeadOptions& its) { its.n_slots = 65; });
  refused([](BlockHeadOptions& its) { its.n_anchors = 0; });
  refused([](BlockHeadOptions& its) { its.mask = 23; });
  refused([](BlockHeadOptions& its) { its.mask = kNoToken; });
  refused([](BlockHeadOptions& its) { its.gamma = 0; });
  refused([](BlockHeadOptions& its) { its.markov_rank = 0; });
  EXPECT_THROW(markov_form_named("plain"), UsageError);
}

}  // namespace
}  // namespace outrider::train
