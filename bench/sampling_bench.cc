// SPDX-License-Identifier: Apache-2.0
// The cost of sampling and verification beside a pass: turning rows of logits into distributions,
// and judging drafts of sixteen nodes, at vocabularies of 32k and 128k.
//
// There are two kinds of rows. Peaked rows follow Zipf's law with exponent 1.5 plus some
// noise: the nucleus of 0.95 at temperature 0.8 is about a dozen tokens, as for text that a trained
// model predicts well. Flat rows are normal numbers, as from a model with random weights: the
// nucleus is most of the vocabulary. A drafter's rows are the target's plus noise. Rounds cycle
// through more rows than the second-level cache holds, as after a pass.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_main.h"
#include "model/language_model.h"
#include "sampling/counter_chance.h"
#include "sampling/transform.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/draft_tree.h"
#include "speculate/logits_views.h"
#include "speculate/rule.h"

namespace outrider {
namespace {

constexpr int kDraftNodes = 16;
constexpr int kRounds = 3;

enum class Kind { peaked, flat };

// Rows of one kind: one row plus one row of noise, which is rotated by a different offset each
// time. Drawing each row afresh would take longer than the whole measurement.
class Rows {
 public:
  Rows(Kind kind, int vocabulary)
      : row_(static_cast<std::size_t>(vocabulary)), noise_(row_.size()) {
    std::normal_distribution<float> normal;
    for (float& value : noise_) value = 0.3F * normal(random_);
    std::iota(row_.begin(), row_.end(), 1.0F);
    std::shuffle(row_.begin(), row_.end(), random_);
    for (float& logit : row_) {
      logit = kind == Kind::peaked ? -1.5F * std::log(logit) : normal(random_);
    }
  }
  std::vector<float> make() {
    std::rotate(row_.begin(), row_.begin() + place(), row_.end());
    return with_noise(row_);
  }
  std::vector<float> with_noise(std::vector<float> row) {
    std::rotate(noise_.begin(), noise_.begin() + place(), noise_.end());
    for (std::size_t i = 0; i < row.size(); ++i) row[i] += noise_[i];
    return row;
  }

 private:
  std::ptrdiff_t place() { return static_cast<std::ptrdiff_t>(random_() % row_.size()); }

  std::mt19937_64 random_{1};
  std::vector<float> row_;
  std::vector<float> noise_;
};

// Drafts and the target's rows for them, the root's first.
struct Rounds {
  std::vector<DraftTree> trees;
  std::vector<ForwardOutput> outputs;
};

// chain: each node the child of the one before. Otherwise a tree of widths 4 and 3. coupled: the
// draft is drawn with the noise of the verification.
Rounds make_rounds(const Transform& transform, Kind kind, int vocabulary, bool chain, bool coupled,
                   Chance& chance) {
  Rows rows(kind, vocabulary);
  Rounds rounds;
  for (int round = 0; round < kRounds; ++round) {
    DraftTree& tree = rounds.trees.emplace_back();
    ForwardOutput& output = rounds.outputs.emplace_back();
    tree.reset(0, 100 * (round + 1));
    float* logits = output.logits.start_pass(kDraftNodes + 1, vocabulary);
    for (int node = 0; node <= kDraftNodes; ++node) {
      std::vector<float> row = rows.make();
      logits = std::copy(row.begin(), row.end(), logits);
      const int n_children = chain       ? (node < kDraftNodes ? 1 : 0)
                             : node == 0 ? 4
                             : node < 5  ? 3
                                         : 0;
      if (n_children == 0) continue;
      row = rows.with_noise(std::move(row));
      const int dist = tree.add_distribution();
      transform.distribution(row, tree.distribution(dist));
      tree.set_draft_prob(node, dist);
      for (int child = 0; child < n_children; ++child) {
        const Draw draw = coupled
                              ? Draw{tree.n_committed() + tree.node(node).depth, 0, Purpose::token}
                              : Draw{tree.n_committed(), tree.n_nodes(), Purpose::draft};
        tree.add_child(node, chance.categorical(tree.distribution(dist), draw), dist);
      }
    }
  }
  return rounds;
}

void transform_rows(benchmark::State& state, const SamplingParams& params, Kind kind,
                    int vocabulary) {
  const Transform transform(params, vocabulary);
  Rows source(kind, vocabulary);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < kDraftNodes; ++i) rows.push_back(source.make());
  Distribution out;
  std::size_t next = 0;
  std::size_t n_kept = 0;
  for (auto _ : state) {
    transform.distribution(rows[next++ % rows.size()], out);
    benchmark::DoNotOptimize(out.probs.data());
    n_kept += out.ids.size();
  }
  state.counters["support"] = static_cast<double>(n_kept) / static_cast<double>(state.iterations());
}

void draw_tokens(benchmark::State& state, const SamplingParams& params, Kind kind, int vocabulary) {
  const Transform transform(params, vocabulary);
  Distribution out;
  transform.distribution(Rows(kind, vocabulary).make(), out);
  CounterChance chance(1);
  std::int64_t position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(chance.categorical(out, {++position, 0, Purpose::token}));
  }
}

void verify(benchmark::State& state, const Acceptance& acceptance, const SamplingParams& params,
            Kind kind, int vocabulary, bool chain) {
  const Transform transform(params, vocabulary);
  const TokenHistory history;
  CounterChance chance(1);
  const bool coupled = acceptance.draft_noise() == DraftNoise::coupled;
  const Rounds rounds = make_rounds(transform, kind, vocabulary, chain, coupled, chance);
  LogitsViews views(transform, history);
  Verdict verdict;
  std::size_t next = 0;
  std::size_t n_accepted = 0;
  for (auto _ : state) {
    const std::size_t round = next++ % kRounds;
    views.reset(rounds.trees[round], rounds.outputs[round], 0, {}, 0);
    acceptance.verify(rounds.trees[round], views, chance, verdict);
    n_accepted += verdict.path.size();
  }
  state.counters["accepted"] =
      static_cast<double>(n_accepted) / static_cast<double>(state.iterations());
}

template <class Run>
void add(const std::string& name, Run run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_benchmarks() {
  struct Setting {
    const char* name;
    SamplingParams params;
  };
  static const std::vector<Setting> settings = {
      {"p0.95", {.temperature = 0.8, .top_p = 0.95}},
      {"plain", {.temperature = 1}},
      {"k40", {.temperature = 0.8, .top_k = 40}},
      {"greedy", {.temperature = 0}},
  };
  const auto rule = std::make_shared<ExactRule>();
  static std::vector<std::unique_ptr<Acceptance>> acceptances;
  acceptances.push_back(make_multi_round(rule));
  acceptances.push_back(make_block(rule));
  acceptances.push_back(make_traversal(rule));
  acceptances.push_back(make_coupled(rule));

  for (const int vocabulary : {32'000, 128'256}) {
    for (const Kind kind : {Kind::peaked, Kind::flat}) {
      const std::string place = std::string(kind == Kind::peaked ? "peaked/" : "flat/") +
                                std::to_string(vocabulary / 1000) + "k/";
      for (const Setting& setting : settings) {
        const SamplingParams& params = setting.params;
        add("transform/" + place + setting.name,
            [=](benchmark::State& state) { transform_rows(state, params, kind, vocabulary); });
      }
      for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        const SamplingParams& params = settings[which].params;
        add("draw/" + place + settings[which].name,
            [=](benchmark::State& state) { draw_tokens(state, params, kind, vocabulary); });
      }
      for (const std::size_t which : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
        const SamplingParams& params = settings[which].params;
        for (const auto& owned : acceptances) {
          const Acceptance* acceptance = owned.get();
          for (const bool chain : {true, false}) {
            if (!chain && acceptance->chains_only()) continue;
            add("verify/" + place + settings[which].name + "/" + std::string(acceptance->name()) +
                    (chain ? "/chain" : "/tree"),
                [=](benchmark::State& state) {
                  verify(state, *acceptance, params, kind, vocabulary, chain);
                });
          }
        }
      }
    }
  }
}

}  // namespace outrider
