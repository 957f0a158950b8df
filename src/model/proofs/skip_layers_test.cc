// SPDX-License-Identifier: Apache-2.0
// Passes that skip layers: bit for bit those of a model without these layers, and separate from
// full passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "model/decoder_model.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using Layers = std::vector<int>;

test::TinyModel four_layers() {
  test::TinyShape shape;
  shape.seed = 9;
  shape.n_layers = 4;
  return test::make_tiny_model(shape);
}

// `model` without the listed layers.
test::TinyModel without(const test::TinyModel& model, const Layers& skipped) {
  test::TinyModel rest = model;
  rest.tensors.clear();
  rest.shape.n_layers = 0;
  const auto prefix_of = [](int layer) { return "model.layers." + std::to_string(layer) + "."; };
  for (int layer = 0; layer < model.shape.n_layers; ++layer) {
    if (std::find(skipped.begin(), skipped.end(), layer) != skipped.end()) continue;
    for (test::TinyTensor tensor : model.tensors) {
      if (tensor.name.rfind(prefix_of(layer), 0) != 0) continue;
      tensor.name.replace(0, prefix_of(layer).size(), prefix_of(rest.shape.n_layers));
      rest.tensors.push_back(tensor);
    }
    ++rest.shape.n_layers;
  }
  for (const test::TinyTensor& tensor : model.tensors) {
    if (tensor.name.rfind("model.layers.", 0) != 0) rest.tensors.push_back(tensor);
  }
  return rest;
}

std::unique_ptr<LanguageModel> load_tiny(const test::TinyModel& model, int n_threads) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(model, directory.path());
  LoadOptions options;
  options.n_threads = n_threads;
  auto loaded = load_model(directory.path(), options);
  dynamic_cast<DecoderModel&>(*loaded).set_min_share_ns(0);
  return loaded;
}

// Prefill, then a tree, then rows after the kept path.
std::vector<float> logits_of(LanguageModel& model, const Layers& skipped) {
  const auto sequence = model.open({});
  ForwardOutput output;
  std::vector<float> all;
  const auto pass = [&](std::vector<TokenId> tokens, std::vector<int> parents,
                        const std::vector<int>& path) {
    const TokenBlock block{sequence.get(), tokens, parents};
    model.forward({&block, 1}, {.logits = {}, .skip_layers = skipped}, output);
    for (int row = 0; row < output.logits.n_rows(); ++row) {
      all.insert(all.end(), output.logits_row(row).begin(), output.logits_row(row).end());
    }
    sequence->keep(path);
  };
  pass({1, 7, 290, 33}, {}, {0, 1, 2, 3});
  pass({5, 6, 7, 8}, {-1, -1, 1, 1}, {1, 3});
  const auto copy = sequence->fork();
  pass({59, 4}, {}, {0, 1});
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(SkipLayers, IsTheModelThatNeverHadThem) {
  const test::TinyModel tiny = four_layers();
  for (const int n_threads : {1, 2}) {
    const auto model = load_tiny(tiny, n_threads);
    for (const Layers& skipped :
         {Layers{}, Layers{3}, Layers{1, 2, 3}, Layers{0}, Layers{1, 3}, Layers{0, 1, 2}}) {
      const auto rest = load_tiny(without(tiny, skipped), n_threads);
      EXPECT_TRUE(same_bits(logits_of(*model, skipped), logits_of(*rest, {}))) << skipped.size();
    }
    EXPECT_FALSE(same_bits(logits_of(*model, {1}), logits_of(*model, {2})));
  }
}

TEST(SkipLayers, LeavesTheStreamAsItWas) {
  const auto model = load_tiny(four_layers(), 1);
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {3, 4};
  const TokenBlock block{sequence.get(), tokens, {}};
  ForwardOutput output;
  model->forward({&block, 1},
                 {.logits = {}, .feature_layers = Layers{1, 2, 3}, .skip_layers = Layers{1}},
                 output);
  const auto row = output.feature_row(1);
  EXPECT_TRUE(std::equal(row.begin(), row.begin() + 64, row.begin() + 64));
  EXPECT_FALSE(std::equal(row.begin() + 64, row.begin() + 128, row.begin() + 128));
}

// Runs a pass and returns its rows; its nodes become kept tokens.
std::vector<float> run_on(LanguageModel& model, Sequence& sequence, std::vector<TokenId> tokens,
                          const Layers& skipped) {
  ForwardOutput output;
  const TokenBlock block{&sequence, tokens, {}};
  model.forward({&block, 1}, {.logits = {}, .skip_layers = skipped}, output);
  Layers path;
  for (int node = 0; node < static_cast<int>(tokens.size()); ++node) path.push_back(node);
  sequence.keep(path);
  const std::span<const float> logits = output.logits.values();
  return {logits.begin(), logits.end()};
}

TEST(SkipLayers, AnEarlyExitGoesOnFromTheWholeModelsSequence) {
  std::vector<TokenId> prompt;
  for (int token = 0; token < 37; ++token) prompt.push_back(7 * token % 200);  // over several pages
  for (const int n_threads : {1, 2}) {
    const auto model = load_tiny(four_layers(), n_threads);
    for (const Layers& last : {Layers{3}, Layers{2, 3}, Layers{1, 2, 3}}) {
      const auto whole = model->open({});
      const auto untouched = model->open({});
      const auto own = model->open({});
      run_on(*model, *whole, prompt, {});
      run_on(*model, *untouched, prompt, {});
      run_on(*model, *own, prompt, last);
      for (int round = 0; round < 3; ++round) {
        // Each round drafts on a new fork; then the whole model continues as if there had been
        // none.
        const auto fork = model->fork_without(*whole, last);
        ASSERT_NE(fork, nullptr);
        EXPECT_EQ(fork->n_kept(), whole->n_kept());
        for (const TokenId token : {11, 12, 13}) {
          EXPECT_TRUE(
              same_bits(run_on(*model, *fork, {token}, last), run_on(*model, *own, {token}, last)));
        }
        own->truncate(whole->n_kept());
        const std::vector<TokenId> accepted = {11, 12, static_cast<TokenId>(20 + round)};
        EXPECT_TRUE(same_bits(run_on(*model, *whole, accepted, {}),
                              run_on(*model, *untouched, accepted, {})));
        run_on(*model, *own, accepted, last);
      }
    }
  }
}

TEST(SkipLayers, NoForkWhereKeysAndValuesAreOthers) {
  const auto model = load_tiny(four_layers(), 1);
  const auto other = load_tiny(four_layers(), 1);
  const auto whole = model->open({});
  run_on(*model, *whole, {1, 2, 3}, {});
  EXPECT_NE(model->fork_without(*whole, Layers{3}), nullptr);
  for (const Layers& middle : {Layers{2}, Layers{0, 3}, Layers{1, 2}, Layers{3, 4}}) {
    EXPECT_EQ(model->fork_without(*whole, middle), nullptr);
  }
  EXPECT_EQ(other->fork_without(*whole, Layers{3}), nullptr);
  const auto shortened = model->open({});
  run_on(*model, *shortened, {1, 2, 3}, {3});
  EXPECT_EQ(model->fork_without(*shortened, Layers{3}), nullptr);
  EXPECT_EQ(model->fork_without(*shortened, Layers{2, 3}), nullptr);
  // A fork serves only passes with these layers.
  const auto fork = model->fork_without(*whole, Layers{3});
  EXPECT_THROW(run_on(*model, *fork, {4}, {}), Error);
  EXPECT_THROW(run_on(*model, *fork, {4}, {2, 3}), Error);
}

// Keys and values of shortened passes are not used by other passes, nor the other way round.
TEST(SkipLayers, SequencesAreRunWithoutTheSameLayersAllTheTime) {
  const auto model = load_tiny(four_layers(), 1);
  ForwardOutput output;
  const std::vector<TokenId> tokens = {3, 4};
  const auto run = [&](Sequence& sequence, const Layers& skipped) {
    const TokenBlock block{&sequence, tokens, {}};
    model->forward({&block, 1}, {.logits = {}, .skip_layers = skipped}, output);
  };
  const auto sequence = model->open({});
  run(*sequence, {2});
  EXPECT_THROW(run(*sequence, {}), Error);
  EXPECT_THROW(run(*sequence, {2, 3}), Error);
  EXPECT_EQ(sequence->n_pending(), 2);
  sequence->keep(Layers{0, 1});
  EXPECT_THROW(run(*sequence->fork(), {}), Error);
  run(*sequence, {2});
  sequence->truncate(0);
  run(*sequence, {});
  EXPECT_THROW(run(*sequence, {2}), Error);
}

TEST(SkipLayers, RefusesLayersThatAreNotThere) {
  const auto model = load_tiny(four_layers(), 1);
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {3, 4};
  const TokenBlock block{sequence.get(), tokens, {}};
  ForwardOutput output;
  for (const Layers& wrong : {Layers{4}, Layers{-1}, Layers{2, 1}, Layers{1, 1}}) {
    EXPECT_THROW(model->forward({&block, 1}, {.logits = {}, .skip_layers = wrong}, output), Error);
    EXPECT_EQ(sequence->n_pending(), 0);
  }
}

}  // namespace
}  // namespace outrider
