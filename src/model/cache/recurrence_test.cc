// SPDX-License-Identifier: Apache-2.0
// States of gated delta rules and of Mamba-2: compares keep() with a plain implementation of the
// rule, bit by bit, over trees, page boundaries, forks, rewinds and any number of threads.
#include "model/cache/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "model/pass/op.h"
#include "tests/support/kernel_tables.h"

namespace outrider {
namespace {

constexpr DeltaShape kSmall = {
    .n_taps = 3, .n_key_heads = 2, .n_value_heads = 6, .key_dim = 5, .value_dim = 19};
// Large enough for several threads to replay it.
constexpr DeltaShape kLarge = {.n_taps = 4,
                               .n_key_heads = 3,
                               .n_value_heads = 6,
                               .key_dim = 32,
                               .value_dim = 80,
                               .is_tiled = true};

// The step functions of either rule.
struct Rule {
  const char* name;
  RecurrentShape (*shape_of)(const DeltaShape& shape);
  bool subtracts;
};
constexpr Rule kRules[] = {{"delta", shape_of_delta, true}, {"mamba", shape_of_mamba, false}};

std::vector<LayerCache> layers_of(const Rule& rule, const DeltaShape& shape) {
  const LayerCache recurrent{.recurrent = rule.shape_of(shape)};
  return {recurrent, {.n_heads = 1, .head_dim = 4}, recurrent};
}

// A node's inputs, by its token: between 0 and 1, so that states stay finite.
std::vector<float> inputs_of(const DeltaShape& shape, int token, int layer) {
  std::minstd_rand random(static_cast<unsigned>(token * 4 + layer + 1));
  std::vector<float> inputs(static_cast<std::size_t>(shape.input_width()));
  for (float& input : inputs) input = static_cast<float>(random() % 4096) / 8192;
  return inputs;
}

// The rule, element by element.
void step(const Rule& rule, const DeltaShape& shape, const std::vector<float>& inputs,
          std::vector<float>& state) {
  const auto in = [&](int at) { return inputs[static_cast<std::size_t>(at)]; };
  const int width = shape.convolved_width();
  const int window = (shape.n_taps - 1) * width;
  std::copy(state.begin() + width, state.begin() + window, state.begin());
  std::copy_n(inputs.begin(), width, state.begin() + window - width);
  for (int head = 0; head < shape.n_value_heads; ++head) {
    const int key_head = shape.is_tiled ? head % shape.n_key_heads
                                        : head / (shape.n_value_heads / shape.n_key_heads);
    for (int column = 0; column < shape.value_dim; ++column) {
      const auto cell = [&](int row) -> float& {
        return state[static_cast<std::size_t>(
            window + (head * shape.key_dim + row) * shape.value_dim + column)];
      };
      const auto key = [&](int row) { return in(width + key_head * shape.key_dim + row); };
      const float beta = in(shape.input_width() - 2 * shape.n_value_heads + head);
      const float decay = in(shape.input_width() - shape.n_value_heads + head);
      float memory = 0;
      for (int row = 0; rule.subtracts && row < shape.key_dim; ++row) {
        memory = std::fma(key(row), cell(row) * decay, memory);
      }
      const float value =
          in(width + shape.n_key_heads * shape.key_dim + head * shape.value_dim + column);
      const float delta = beta * (value - memory);
      for (int row = 0; row < shape.key_dim; ++row) {
        cell(row) = std::fma(key(row), delta, cell(row) * decay);
      }
    }
  }
}

struct Kept {
  std::unique_ptr<KvSequence> sequence;
  std::vector<int> tokens;
};

void expect_state(const Rule& rule, const DeltaShape& shape, const Kept& kept) {
  ASSERT_EQ(kept.sequence->n_kept(), static_cast<int>(kept.tokens.size()));
  if (kept.tokens.empty()) return;
  for (const int layer : {0, 2}) {
    std::vector<float> expected(static_cast<std::size_t>(shape.state_width()));
    for (const int token : kept.tokens) step(rule, shape, inputs_of(shape, token, layer), expected);
    EXPECT_EQ(
        std::memcmp(kept.sequence->state(layer), expected.data(), expected.size() * sizeof(float)),
        0)
        << layer << " after " << kept.tokens.size();
  }
}

// Adds a random tree, or a chain of 100, and keeps a random path.
void grow(const DeltaShape& shape, std::mt19937& random, int& next_token, Kept& kept) {
  KvSequence& sequence = *kept.sequence;
  const int n_new = random() % 4 == 0 ? 100 : 1 + static_cast<int>(random() % 12);
  sequence.ensure_slots(n_new);
  std::vector<int> tokens;
  for (int i = 0; i < n_new; ++i) {
    sequence.append(n_new == 100 ? i - 1 : static_cast<int>(random() % (i + 1)) - 1);
    tokens.push_back(next_token++);
    for (const int layer : {0, 2}) {
      const std::vector<float> inputs = inputs_of(shape, tokens.back(), layer);
      std::copy(inputs.begin(), inputs.end(), sequence.inputs(i, layer));
    }
  }
  std::vector<int> path;
  for (int node = static_cast<int>(random() % (n_new + 1)) - 1; node >= 0;
       node = sequence.parent(node)) {
    path.insert(path.begin(), node);
  }
  sequence.keep(path);
  for (const int node : path) kept.tokens.push_back(tokens[static_cast<std::size_t>(node)]);
}

void run_random_texts(const Rule& rule, const DeltaShape& shape, const KvCache::Replay& replay,
                      int n_steps) {
  SCOPED_TRACE(rule.name);
  std::mt19937 random(7);
  int next_token = 1;
  const auto cache = std::make_shared<KvCache>(layers_of(rule, shape), kernels::KvKind::f32);
  cache->set_replay(replay);
  std::vector<Kept> texts;
  texts.push_back({std::make_unique<KvSequence>(cache), {}});
  for (int i = 0; i < n_steps; ++i) {
    Kept& kept = texts[random() % texts.size()];
    const unsigned choice = random() % 6;
    if (choice == 0) {
      const int n_kept = kept.sequence->n_kept();
      const int wanted = n_kept - static_cast<int>(random() % (n_kept + 1));
      kept.tokens.resize(static_cast<std::size_t>(kept.sequence->rewind(wanted)));
    } else if (choice == 1 && texts.size() < 3) {
      auto fork = kept.sequence->fork();
      std::vector<int> tokens = kept.tokens;
      texts.push_back({std::unique_ptr<KvSequence>(static_cast<KvSequence*>(fork.release())),
                       std::move(tokens)});
    } else {
      grow(shape, random, next_token, kept);
    }
    for (const Kept& text : texts) expect_state(rule, shape, text);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(StateRecurrence, KeepsWhatTheRuleMakesOfAcceptedNodes) {
  for (const auto& [name, table] : test::runnable_tables()) {
    SCOPED_TRACE(name);
    for (const Rule& rule : kRules) {
      run_random_texts(rule, kSmall, {.table = table, .n_threads = 1}, 60);
    }
  }
}

TEST(StateRecurrence, KeepsItOnAnyNumberOfThreads) {
  const auto tables = test::runnable_tables();
  for (const int n_threads : {1, 2, 5}) {
    SCOPED_TRACE(n_threads);
    for (const Rule& rule : kRules) {
      run_random_texts(rule, kLarge, {.table = tables.back().table, .n_threads = n_threads}, 12);
    }
  }
}

TEST(StateRecurrence, ShapesThatDoNotAddUpAreRefused) {
  for (const Rule& rule : kRules) {
    std::vector<LayerCache> layers = layers_of(rule, kSmall);
    EXPECT_NO_THROW(make_cache_groups(layers, kernels::KvKind::f32));
    layers[0].recurrent.state_width += 1;
    EXPECT_THROW(make_cache_groups(layers, kernels::KvKind::f32), std::exception);
    layers = layers_of(rule, kSmall);
    layers[2].recurrent = rule.shape_of(kLarge);
    EXPECT_THROW(make_cache_groups(layers, kernels::KvKind::f32), std::exception);
  }
  std::vector<LayerCache> both = layers_of(kRules[0], kSmall);
  both[2].recurrent = shape_of_mamba(kSmall);
  EXPECT_THROW(make_cache_groups(both, kernels::KvKind::f32), std::exception);
}

}  // namespace
}  // namespace outrider
