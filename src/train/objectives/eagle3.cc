// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/eagle3.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "outrider/error.h"
#include "train/losses/drafted_tokens.h"
#include "train/losses/losses.h"
#include "train/losses/target_tensors.h"
#include "train/losses/weighted_means.h"
#include "train/modules/eagle3_module.h"
#include "train/modules/head_config.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class Eagle3Objective final : public Objective {
 public:
  explicit Eagle3Objective(const Eagle3Options& options)
      : options_(options),
        config_(head_config(options.run.target->config())),
        layers_(eagle3_feature_layers(options.run.target->config().n_layers)),
        vocabulary_(options.draft_vocabulary, config_.vocabulary_size),
        shared_(*options.run.target) {
    if (options.n_steps < 1) {
      throw UsageError("train eagle", "steps-ahead", "at least 1",
                       fmt::format("{}", options.n_steps));
    }
    torch::manual_seed(options.run.seed);
    head_ =
        Eagle3Head(config_, options.run.products, shared_.output.index_select(0, vocabulary_.ids()),
                   Eagle3HeadImpl::Options());
    head_->to(training_device());
  }

  torch::nn::Module& trained() override { return *head_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  struct Parts {
    Tensor loss, weight;
    Tensor agreement;  // for the first step, or for all if with_overlap
    Tensor overlap;    // only if with_overlap
  };
  // For every step. with_overlap needs passes over the whole vocabulary at each of them.
  std::vector<Parts> judge(const Batch& batch, bool with_overlap);
  Parts judge_step(const Tensor& logits, const DraftedTokens::Distributions& dists,
                   const Tensor& weights, int step, bool with_overlap) const;
  double factor(int step) const { return std::pow(options_.decay, step); }

  Eagle3Options options_;
  ModelConfig config_;
  std::array<int, 3> layers_;
  DraftedTokens vocabulary_;
  SharedMatrices shared_;
  Eagle3Head head_{nullptr};
};

// distributions, text_weights: for every place of the text, shared by all steps.
Eagle3Objective::Parts Eagle3Objective::judge_step(const Tensor& logits,
                                                   const DraftedTokens::Distributions& dists,
                                                   const Tensor& text_weights, int step,
                                                   bool with_overlap) const {
  const auto here = [&](const Tensor& of_text) { return later(of_text, step + 1, logits.size(1)); };
  DraftedTokens::Distributions rows = {.logits = {},
                                       .drafted_logits = here(dists.drafted_logits),
                                       .best = here(dists.best),
                                       .counts = here(dists.counts)};
  const Tensor weights = later(text_weights, step + 2, logits.size(1));
  Parts parts;
  parts.loss = weighted_mean(DraftedTokens::losses(logits, rows), weights);
  parts.weight = weights.sum();
  if (step == 0 || with_overlap) {
    parts.agreement = weighted_mean(vocabulary_.agrees(logits, rows), weights);
  }
  if (with_overlap) {
    rows.logits = here(dists.logits);
    parts.overlap = weighted_mean(vocabulary_.overlaps(logits, rows), weights);
  }
  return parts;
}

std::vector<Eagle3Objective::Parts> Eagle3Objective::judge(const Batch& batch, bool with_overlap) {
  const TargetTensors seen(*options_.run.target, batch, layers_, head_->type());
  const DraftedTokens::Distributions dists = vocabulary_.distributions_of(seen.logits);
  const std::int64_t n_rows = seen.tokens.size(1) - 1;
  Tensor hidden = head_->fuse(seen.features.narrow(1, 0, n_rows));
  UnrolledKeys unrolled;
  std::vector<Parts> all;
  for (int step = 0; step < options_.n_steps; ++step) {
    const Tensor embeddings = shared_.embed(later(seen.tokens, step + 1, n_rows), head_->type());
    hidden = head_->forward(hidden, embeddings, step, unrolled);
    all.push_back(judge_step(head_->logits(hidden), dists, seen.weights, step, with_overlap));
  }
  return all;
}

Loss Eagle3Objective::loss(std::int64_t batch_number) {
  const std::vector<Parts> all = judge(options_.run.batches->batch(batch_number), false);
  Loss total;
  for (int step = 0; step < options_.n_steps; ++step) {
    const Parts& parts = all[static_cast<std::size_t>(step)];
    const Tensor term = parts.loss * factor(step);
    total.value = step == 0 ? term : total.value + term;
    total.metrics.emplace_back(fmt::format("loss_{}", step), parts.loss.item<double>());
  }
  total.metrics.emplace_back("agreement", all.front().agreement.item<double>());
  total.n_tokens = static_cast<std::int64_t>(all.front().weight.item<double>());
  return total;
}

std::vector<Metric> Eagle3Objective::evaluate() {
  if (options_.run.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.run.n_held_out_batches; ++number) {
    const std::vector<Parts> all = judge(options_.run.held_out->batch(number), true);
    double loss = 0;
    for (int step = 0; step < options_.n_steps; ++step) {
      loss += factor(step) * all[static_cast<std::size_t>(step)].loss.item<double>();
    }
    means.add("loss", loss, all.front().weight.item<double>());
    for (int step = 0; step < options_.n_steps; ++step) {
      const Parts& parts = all[static_cast<std::size_t>(step)];
      const auto weight = parts.weight.item<double>();
      means.add(fmt::format("loss_{}", step), parts.loss.item<double>(), weight);
      means.add(fmt::format("overlap_{}", step), parts.overlap.item<double>(), weight);
      means.add(fmt::format("agreement_{}", step), parts.agreement.item<double>(), weight);
    }
  }
  return means.metrics();
}

void Eagle3Objective::export_to(const std::filesystem::path& directory) {
  std::vector<NamedTensor> tensors = {{"d2t", vocabulary_.offsets()},
                                      {"t2d", vocabulary_.is_drafted()}};
  for (const auto& parameter : head_->named_parameters()) {
    tensors.push_back({parameter.key(), parameter.value()});
  }
  write_tensors(directory, "model.safetensors", tensors, options_.run.export_type);
  nlohmann::ordered_json json = llama_config_json(config_, options_.run.export_type);
  json["architectures"] = {"LlamaForCausalLMEagle3"};
  json["draft_vocab_size"] = vocabulary_.ids().size(0);
  json["eagle_version"] = 3;
  json["feature_layers"] = layers_;
  write_json(directory, "config.json", json);
}

}  // namespace

std::array<int, 3> eagle3_feature_layers(int n_layers) {
  if (n_layers >= 7) return {2, n_layers / 2, n_layers - 3};
  return {n_layers >= 4 ? 1 : 0, n_layers / 2, n_layers >= 3 ? n_layers - 1 : n_layers};
}

std::shared_ptr<Objective> make_eagle3(const Eagle3Options& options) {
  return std::make_shared<Eagle3Objective>(options);
}

}  // namespace outrider::train
