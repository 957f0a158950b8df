// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/seq2seq.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "train/batches/answer_batches.h"
#include "train/losses/distillation.h"
#include "train/losses/losses.h"
#include "train/losses/weighted_means.h"
#include "train/modules/t5_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

Tensor rows_of(const std::vector<TokenId>& tokens, int n_rows) {
  return torch::tensor(tokens, torch::kInt64).view({n_rows, -1}).to(training_device());
}

Tensor list_of(const std::vector<std::int32_t>& values) {
  return torch::tensor(values, torch::kInt64).to(training_device());
}

// A batch as tensors on the training device.
struct PairTensors {
  PairTensors(const PairBatch& batch, TokenId start)
      : sources(rows_of(batch.sources, batch.n_pairs)), n_in_sources(list_of(batch.n_in_sources)) {
    const Tensor targets = rows_of(batch.targets, batch.n_pairs);
    const Tensor begin = torch::full({batch.n_pairs, 1}, start, targets.options());
    read = torch::cat({begin, targets.narrow(1, 0, batch.target_length - 1)}, 1);
    const Tensor lengths = list_of(batch.n_in_targets);
    const Tensor counts =
        torch::arange(batch.target_length, lengths.options()).unsqueeze(0) < lengths.unsqueeze(1);
    places = counts.flatten().nonzero().squeeze(1);
    predicted = targets.flatten().index_select(0, places);
  }
  Tensor sources;       // (n_pairs, source_length) int64
  Tensor n_in_sources;  // (n_pairs) int64
  Tensor read;          // (n_pairs, target_length) int64: the decoder's input
  Tensor places;        // (n_counted): indices in the flattened targets that are not padding
  Tensor predicted;     // (n_counted) int64: their tokens
};

// The cross-entropy with the smoothed distribution of a token: (1 - share) on the token, and share
// spread over all tokens, where -log prob = log sum - logit.
Tensor smoothed(const Tensor& losses, const Tensor& logits, const Tensor& tokens, double share) {
  if (share == 0) return losses;
  const Tensor spoken = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1);
  return losses + share * (spoken - logits.mean(-1));
}

class Seq2SeqObjective final : public Objective {
 public:
  explicit Seq2SeqObjective(const Seq2SeqOptions& options)
      : options_(options),
        model_(make_t5(options.config, options.products, options.init, options.seed)) {
    model_->set_dropout(options.dropout);
    if (options.teacher.empty()) return;
    const T5Config config = read_t5_config(options.teacher);
    if (config.vocabulary_size != options.config.vocabulary_size ||
        config.start != options.config.start) {
      throw Error("train seq2seq", options.teacher.string(),
                  fmt::format("{} tokens, and decoders that begin with {}",
                              options.config.vocabulary_size, options.config.start),
                  fmt::format("{} and {}", config.vocabulary_size, config.start));
    }
    teacher_ = make_t5(config, options.products, options.teacher, options.seed);
    teacher_->eval();
    for (Tensor& parameter : teacher_->parameters()) parameter.requires_grad_(false);
  }

  torch::nn::Module& trained() override { return *model_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;
  std::vector<std::vector<TokenId>> answer(std::span<const std::vector<TokenId>> sources,
                                           int max_tokens);

 private:
  Tensor logits_of(T5Module& model, const PairTensors& batch) const {
    const Tensor features =
        model->decode(batch.read, model->encode(batch.sources, batch.n_in_sources));
    return model->logits(features.flatten(0, 1).index_select(0, batch.places));
  }
  ComparedDistributions beside_teacher(const Tensor& logits, const PairTensors& batch) {
    const torch::NoGradGuard no_grad;
    const Tensor target_logits = logits_of(teacher_, batch);
    return {logits, target_logits, logits.argmax(-1) == target_logits.argmax(-1),
            torch::ones({logits.size(0)}, logits.options().requires_grad(false))};
  }

  Seq2SeqOptions options_;
  T5Module model_;
  T5Module teacher_{nullptr};
};

Loss Seq2SeqObjective::loss(std::int64_t batch_number) {
  const PairTensors batch(options_.batches->batch(batch_number), model_->config().start);
  const Tensor logits = logits_of(model_, batch);
  if (teacher_) return distillation_loss(options_.divergence, beside_teacher(logits, batch));
  const Tensor losses = cross_entropy_rows(logits, batch.predicted);
  return {.value = smoothed(losses, logits, batch.predicted, options_.label_smoothing).mean(),
          .n_tokens = batch.places.size(0),
          .metrics = {}};
}

std::vector<Metric> Seq2SeqObjective::evaluate() {
  if (options_.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  model_->eval();  // nothing is left out
  WeightedMeans means;
  for (std::int64_t number = 0; number < options_.held_out->n_batches(); ++number) {
    const PairTensors batch(options_.held_out->batch(number), model_->config().start);
    const Tensor logits = logits_of(model_, batch);
    if (teacher_) add_distillation(options_.divergence, beside_teacher(logits, batch), means);
    means.add(teacher_ ? "text_loss" : "loss",
              cross_entropy_rows(logits, batch.predicted).mean().item<double>(),
              static_cast<double>(batch.places.size(0)));
  }
  model_->train();
  return means.metrics();
}

// Writes the tokenizer's files with the padding token used in batches: transformers pads with that
// token only.
void write_tokenizer(const std::filesystem::path& from, const std::filesystem::path& directory,
                     TokenId padding) {
  if (from.empty()) return;
  copy_tokenizer(from, directory);
  const std::filesystem::path file = directory / "tokenizer_config.json";
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (std::filesystem::exists(file)) json = read_json(file);
  if (json.contains("pad_token") && !json["pad_token"].is_null()) return;
  const auto tokenizer = Tokenizer::load(from);
  if (!tokenizer->has(padding)) return;  // the matrices' rows beyond the vocabulary
  json["pad_token"] = tokenizer->piece(padding);
  if (!json.contains("tokenizer_class")) json["tokenizer_class"] = "PreTrainedTokenizerFast";
  write_json(directory, file.filename().string(), json);
}

void Seq2SeqObjective::export_to(const std::filesystem::path& directory) {
  write_tokenizer(options_.tokenizer, directory, model_->config().padding);
  write_parameters(directory, "model.safetensors", *model_, options_.export_type);
  write_json(directory, "config.json",
             t5_config_json(model_->config(), options_.export_type, options_.dropout));
}

std::vector<std::vector<TokenId>> Seq2SeqObjective::answer(
    std::span<const std::vector<TokenId>> sources, int max_tokens) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return sources[left].size() < sources[right].size();
  });
  std::vector<std::vector<TokenId>> answers(sources.size());
  std::vector<std::size_t> widths;
  widths.reserve(order.size());
  for (const std::size_t i : order) widths.push_back(sources[i].size());
  const int n_heads = model_->config().n_heads;
  if (!widths.empty() && widths.back() > longest_answered(n_heads)) {
    throw Error("answer", "text", fmt::format("at most {} tokens", longest_answered(n_heads)),
                fmt::format("{}", widths.back()));
  }
  for (std::size_t first = 0; first < order.size();) {
    const std::size_t n = n_answered_together(std::span(widths).subspan(first), n_heads);
    const std::size_t width = widths[first + n - 1];
    std::vector<TokenId> tokens;
    std::vector<std::int32_t> lengths;
    for (std::size_t i = first; i < first + n; ++i) {
      const std::vector<TokenId>& source = sources[order[i]];
      tokens.insert(tokens.end(), source.begin(), source.end());
      tokens.insert(tokens.end(), width - source.size(), model_->config().padding);
      lengths.push_back(static_cast<std::int32_t>(source.size()));
    }
    auto said = answer_greedily(model_, rows_of(tokens, static_cast<int>(n)), list_of(lengths),
                                max_tokens, options_.excluded_tokens);
    for (std::size_t i = 0; i < n; ++i) answers[order[first + i]] = std::move(said[i]);
    first += n;
  }
  return answers;
}

}  // namespace

Seq2Seq make_seq2seq(const Seq2SeqOptions& options) {
  const auto objective = std::make_shared<Seq2SeqObjective>(options);
  return {objective, [objective](std::span<const std::vector<TokenId>> sources, int max_tokens) {
            return objective->answer(sources, max_tokens);
          }};
}

}  // namespace outrider::train
