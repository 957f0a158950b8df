// SPDX-License-Identifier: Apache-2.0
#include "train/fit_router.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "outrider/error.h"

namespace outrider::train {
namespace {

using torch::Tensor;

constexpr double kLargestLoss = 30;                                    // nats (fit_router.h)
constexpr std::size_t kWidth = std::tuple_size_v<RouterFeatures> + 1;  // a one for the bias

// The softmax of a row of logits, with every token of the vocabulary.
void distribution_of(std::span<const float> logits, Distribution& out) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  out.ids.clear();
  out.probs.clear();
  double sum = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    out.ids.push_back(static_cast<TokenId>(id));
    out.probs.push_back(std::exp(double{logits[id]} - largest));
    sum += out.probs.back();
  }
  for (double& prob : out.probs) prob /= sum;
}

double loss_of(const Distribution& distribution, TokenId token) {
  const double prob = distribution.probs[static_cast<std::size_t>(token)];
  return prob > 0 ? std::min(kLargestLoss, -std::log(prob)) : kLargestLoss;
}

double score(const RouterWeights& router, const RouterFeatures& features) {
  double sum = router.bias;
  for (std::size_t i = 0; i < features.size(); ++i) sum += router.weights[i] * features[i];
  return sum;
}

}  // namespace

std::vector<RouterSample> collect_router_samples(Teacher& target, Teacher& drafter,
                                                 BatchSource& batches, std::int64_t first,
                                                 std::int64_t n,
                                                 const std::function<void()>& on_batch) {
  if (target.config().vocabulary_size != drafter.config().vocabulary_size) {
    throw Error("fit router", "drafter's vocabulary",
                fmt::format("the target's {} tokens", target.config().vocabulary_size),
                fmt::format("{}", drafter.config().vocabulary_size));
  }
  std::vector<RouterSample> samples;
  Distribution draft_prob;
  Distribution target_prob;
  for (std::int64_t number = first; number < first + n; ++number) {
    const Batch batch = batches.batch(number);
    // With logits, without features.
    target.run(batch.tokens, batch.n_sequences, true, {});
    drafter.run(batch.tokens, batch.n_sequences, true, {});
    for (int row = 0; row + 1 < batch.n_sequences * batch.length; ++row) {
      const auto next = static_cast<std::size_t>(row) + 1;
      // A sequence's first place has weight 0, so no row predicts across two sequences.
      if (batch.weights[next] == 0) continue;
      distribution_of(target.output().logits_row(row), target_prob);
      distribution_of(drafter.output().logits_row(row), draft_prob);
      const RouterFeatures features = router_features(draft_prob, target_prob);
      samples.push_back({.features = features,
                         .draft_loss = loss_of(draft_prob, batch.tokens[next]),
                         .target_loss = loss_of(target_prob, batch.tokens[next]),
                         .total_variation = 1 - overlap(draft_prob, target_prob)});
    }
    if (on_batch) on_batch();
  }
  return samples;
}

double balanced_price(const std::vector<RouterSample>& samples) {
  double gain = 0;
  double rejections = 0;
  for (const RouterSample& sample : samples) {
    gain += sample.draft_loss - sample.target_loss;
    rejections += sample.total_variation;
  }
  return gain > 0 && rejections > 0 ? gain / rejections : 0;
}

RouterWeights fit_router(const std::vector<RouterSample>& samples, double price) {
  if (samples.empty()) throw Error("fit router", "samples", "at least one", "none");
  std::vector<double> rows;
  std::vector<double> gains;
  for (const RouterSample& sample : samples) {
    rows.insert(rows.end(), sample.features.begin(), sample.features.end());
    rows.push_back(1);
    gains.push_back(sample.draft_loss - sample.target_loss - price * sample.total_variation);
  }
  const auto n = static_cast<std::int64_t>(samples.size());
  const Tensor x =
      torch::tensor(rows, torch::kFloat64).view({n, static_cast<std::int64_t>(kWidth)});
  const Tensor gain = torch::tensor(gains, torch::kFloat64);
  const Tensor weight = gain.abs();
  const Tensor right = (gain > 0).to(torch::kFloat64);  // 1: deferring is the cheaper decision
  const double ridge = 1e-6 * std::max(weight.sum().item<double>(), 1e-300);
  const Tensor identity = torch::eye(static_cast<std::int64_t>(kWidth), torch::kFloat64);
  const auto loss = [&](const Tensor& coefficients) {
    const Tensor scores = x.matmul(coefficients);
    // weight * (log(1 + e^s) - right * s), without overflow.
    const Tensor terms = torch::logaddexp(scores, torch::zeros_like(scores)) - right * scores;
    return ((weight * terms).sum() + 0.5 * ridge * coefficients.square().sum()).item<double>();
  };

  Tensor coefficients = torch::zeros({static_cast<std::int64_t>(kWidth)}, torch::kFloat64);
  double value = loss(coefficients);
  // The loss is convex in these seven coefficients, and Newton's method takes about a dozen steps.
  // After 100 steps the coefficients are used as they are.
  for (int step = 0; step < 100; ++step) {
    const Tensor prob = torch::sigmoid(x.matmul(coefficients));
    const Tensor gradient = x.t().matmul(weight * (prob - right)) + ridge * coefficients;
    const Tensor curvature =
        x.t().matmul(x * (weight * prob * (1 - prob)).unsqueeze(1)) + ridge * identity;
    Tensor move = torch::linalg_solve(curvature, gradient);
    double moved = loss(coefficients - move);
    while (moved > value && move.abs().max().item<double>() > 1e-12) {
      move = move / 2;
      moved = loss(coefficients - move);
    }
    coefficients = coefficients - move;
    const bool done = value - moved <= 1e-12 * std::abs(value);
    value = moved;
    if (done) break;
  }
  RouterWeights router;
  for (std::size_t i = 0; i + 1 < kWidth; ++i) {
    router.weights[i] = coefficients[static_cast<std::int64_t>(i)].item<double>();
  }
  router.bias = coefficients[static_cast<std::int64_t>(kWidth) - 1].item<double>();
  return router;
}

RouterOutcome judge_router(const std::vector<RouterSample>& samples, const RouterWeights& router) {
  RouterOutcome outcome;
  const double bar = router.threshold <= 0   ? -std::numeric_limits<double>::infinity()
                     : router.threshold >= 1 ? std::numeric_limits<double>::infinity()
                                             : std::log(router.threshold / (1 - router.threshold));
  for (const RouterSample& sample : samples) {
    const bool defers = score(router, sample.features) > bar;
    outcome.loss += defers ? sample.target_loss : sample.draft_loss;
    outcome.rejection += defers ? sample.total_variation : 0;
    outcome.deferral_rate += defers ? 1 : 0;
  }
  const auto n = std::max<double>(1, static_cast<double>(samples.size()));
  return {outcome.loss / n, outcome.rejection / n, outcome.deferral_rate / n};
}

}  // namespace outrider::train
