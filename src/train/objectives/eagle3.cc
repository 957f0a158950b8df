#include "train/objectives/eagle3.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "outrider/error.h"
#include "train/head_config.h"
#include "train/llama_module.h"
#include "train/losses.h"
#include "train/model_directory.h"
#include "train/objective.h"
#include "train/target_tensors.h"
#include "train/training_device.h"
#include "train/weighted_means.h"

namespace outrider::train {
namespace {

using torch::Tensor;

torch::nn::Linear without_bias(std::int64_t n_in, std::int64_t n_out) {
  return torch::nn::Linear(torch::nn::LinearOptions(n_in, n_out).bias(false));
}

class Eagle3HeadImpl : public torch::nn::Module {
 public:
  // lm_head: the target's rows of the draft vocabulary, where the head's own begin.
  Eagle3HeadImpl(const ModelConfig& config, Products products, const Tensor& lm_head)
      : config_(config), products_(products) {
    fc_ = register_module("fc", without_bias(3 * config.dim, config.dim));
    midlayer_ = register_module(
        "midlayer",
        DecoderLayer(config, products,
                     DecoderLayerImpl::Options{.attention_input_width = 2 * config.dim}));
    hidden_norm_ =
        midlayer_->register_module("hidden_norm", RmsNorm(config.dim, config.norm_epsilon));
    norm_ = register_module("norm", RmsNorm(config.dim, config.norm_epsilon));
    lm_head_ = register_module("lm_head", without_bias(config.dim, lm_head.size(0)));
    initialise(*this, 1);
    const torch::NoGradGuard no_grad;
    lm_head_->weight.copy_(lm_head);
  }

  // (n_sequences, n_rows, 3 dim) -> (n_sequences, n_rows, dim)
  Tensor fuse(const Tensor& features) { return project(features, fc_, products_); }

  // The head's step over the text: what goes into the next one, (n_sequences, n_rows, dim).
  Tensor forward(const Tensor& hidden, const Tensor& embeddings, int step, UnrolledKeys& unrolled) {
    const Tensor read = torch::cat(
        {midlayer_->input_layernorm->forward(embeddings), hidden_norm_->forward(hidden)}, -1);
    const auto n_rows = static_cast<int>(hidden.size(1));
    const Tensor attended = stream_sum(
        hidden,
        midlayer_->attend_unrolled(read, rotation_of(config_, step, n_rows, hidden.options()),
                                   causal_mask(n_rows, hidden.options()), unrolled));
    return stream_sum(
        attended, midlayer_->feed_forward(midlayer_->post_attention_layernorm->forward(attended)));
  }

  // Over the draft vocabulary.
  Tensor logits(const Tensor& hidden) {
    return project(norm_->forward(hidden), lm_head_, products_);
  }

  torch::ScalarType type() const { return fc_->weight.scalar_type(); }

 private:
  ModelConfig config_;
  Products products_;
  torch::nn::Linear fc_{nullptr};
  DecoderLayer midlayer_{nullptr};
  RmsNorm hidden_norm_{nullptr};
  RmsNorm norm_{nullptr};
  torch::nn::Linear lm_head_{nullptr};
};
TORCH_MODULE(Eagle3Head);

// (draft vocabulary size) int64, ascending.
Tensor checked_vocabulary(const Eagle3Options& options) {
  const int size = options.run.target->config().vocabulary_size;
  const std::vector<TokenId>& ids = options.draft_vocabulary;
  if (ids.empty()) return torch::arange(size, torch::kInt64).to(training_device());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= size || (i > 0 && ids[i] <= ids[i - 1])) {
      throw Error("train eagle", "draft vocabulary",
                  fmt::format("ascending ids below the target's {}", size),
                  fmt::format("{}", ids[i]));
    }
  }
  return torch::tensor(ids, torch::kInt64).to(training_device());
}

class Eagle3Objective final : public Objective {
 public:
  explicit Eagle3Objective(const Eagle3Options& options)
      : options_(options),
        config_(head_config(options.run.target->config())),
        layers_(eagle3_feature_layers(options.run.target->config().n_layers)),
        vocabulary_(checked_vocabulary(options)),
        shared_(*options.run.target) {
    if (options.n_steps < 1) {
      throw UsageError("train eagle", "steps-ahead", "at least 1",
                       fmt::format("{}", options.n_steps));
    }
    is_drafted_ =
        torch::zeros({config_.vocabulary_size}, vocabulary_.options().dtype(torch::kBool));
    is_drafted_.index_fill_(0, vocabulary_, true);
    torch::manual_seed(options.run.seed);
    head_ = Eagle3Head(config_, options.run.products, shared_.output.index_select(0, vocabulary_));
    head_->to(training_device());
  }

  torch::nn::Module& trained() override { return *head_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  // What the target says at every place, for all steps.
  struct Said {
    Tensor weights;         // (n_sequences, length)
    Tensor logits;          // (n_sequences, length, vocabulary_size)
    Tensor drafted_logits;  // (n_sequences, length, draft vocabulary size)
    Tensor best;            // (n_sequences, length) int64: the likeliest token
    Tensor counts;          // (n_sequences, length) boolean: the head can say that one
  };
  struct Parts {
    Tensor loss, weight;
    Tensor agreement;  // of the first step, or of all with with_overlap
    Tensor overlap;    // with_overlap alone
  };
  // Of every step. with_overlap: passes over the whole vocabulary at each of them.
  std::vector<Parts> judge(const Batch& batch, bool with_overlap);
  Said said_by(const TargetTensors& seen) const;
  Parts judge_step(const Tensor& logits, const Said& said, int step, bool with_overlap) const;
  double factor(int step) const { return std::pow(options_.decay, step); }

  Eagle3Options options_;
  ModelConfig config_;
  std::array<int, 3> layers_;
  Tensor vocabulary_;
  Tensor is_drafted_;  // (vocabulary_size) boolean
  SharedMatrices shared_;
  Eagle3Head head_{nullptr};
};

Eagle3Objective::Said Eagle3Objective::said_by(const TargetTensors& seen) const {
  const Tensor best = seen.logits.argmax(-1);
  return {.weights = seen.weights,
          .logits = seen.logits,
          .drafted_logits = seen.logits.index_select(-1, vocabulary_),
          .best = best,
          .counts = is_drafted_.index_select(0, best.flatten()).view_as(best)};
}

Eagle3Objective::Parts Eagle3Objective::judge_step(const Tensor& logits, const Said& said, int step,
                                                   bool with_overlap) const {
  const std::int64_t n_rows = logits.size(1);
  const Tensor weights = later(said.weights, step + 2, n_rows);
  const Tensor law_loss =
      compare_laws(logits, later(said.drafted_logits, step + 1, n_rows)).cross_entropy;
  Parts parts;
  parts.loss = weighted_mean(law_loss * later(said.counts, step + 1, n_rows), weights);
  parts.weight = weights.sum();
  const torch::NoGradGuard no_grad;
  if (step == 0 || with_overlap) {
    // The draft vocabulary ascends, so ties go to the lowest id here, too.
    const Tensor chosen =
        vocabulary_.index_select(0, logits.argmax(-1).flatten()).view({logits.size(0), n_rows});
    parts.agreement = weighted_mean(
        (chosen == later(said.best, step + 1, n_rows)).to(weights.scalar_type()), weights);
  }
  if (with_overlap) {
    const Tensor target_logits = later(said.logits, step + 1, n_rows);
    const Tensor all_logits =
        torch::full_like(target_logits, -std::numeric_limits<double>::infinity())
            .index_copy(-1, vocabulary_, logits);
    parts.overlap = weighted_mean(compare_laws(all_logits, target_logits).overlap, weights);
  }
  return parts;
}

std::vector<Eagle3Objective::Parts> Eagle3Objective::judge(const Batch& batch, bool with_overlap) {
  const TargetTensors seen(*options_.run.target, batch, layers_, head_->type());
  const Said said = said_by(seen);
  const std::int64_t n_rows = seen.tokens.size(1) - 1;
  Tensor hidden = head_->fuse(seen.features.narrow(1, 0, n_rows));
  UnrolledKeys unrolled;
  std::vector<Parts> all;
  for (int step = 0; step < options_.n_steps; ++step) {
    const Tensor embeddings = shared_.embed(later(seen.tokens, step + 1, n_rows), head_->type());
    hidden = head_->forward(hidden, embeddings, step, unrolled);
    all.push_back(judge_step(head_->logits(hidden), said, step, with_overlap));
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
  const Tensor offsets = vocabulary_ - torch::arange(vocabulary_.size(0), vocabulary_.options());
  std::vector<NamedTensor> tensors = {{"d2t", offsets}, {"t2d", is_drafted_}};
  for (const auto& parameter : head_->named_parameters()) {
    tensors.push_back({parameter.key(), parameter.value()});
  }
  write_tensors(directory, "model.safetensors", tensors, options_.run.export_type);
  nlohmann::ordered_json json = llama_config_json(config_, options_.run.export_type);
  json["architectures"] = {"LlamaForCausalLMEagle3"};
  json["draft_vocab_size"] = vocabulary_.size(0);
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
