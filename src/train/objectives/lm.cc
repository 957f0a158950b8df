#include "train/objectives/lm.h"

#include <utility>

#include "io/safetensors.h"
#include "train/batch_tensors.h"
#include "train/llama_module.h"
#include "train/losses.h"
#include "train/model_directory.h"
#include "train/objective.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class LmObjective final : public Objective {
 public:
  explicit LmObjective(const LmOptions& options)
      : options_(options),
        model_(make_llama(options.config, options.products, options.init, options.seed)) {}

  torch::nn::Module& trained() override { return *model_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  struct Summed {
    Tensor mean;
    double n_counted = 0;
  };
  Summed mean_loss(const Batch& batch);

  LmOptions options_;
  LlamaModule model_;
};

LmObjective::Summed LmObjective::mean_loss(const Batch& batch) {
  const BatchTensors tensors(batch);
  const Tensor logits = model_->logits(model_->features(tensors.inputs()));
  const Tensor weights = tensors.target_weights().to(logits.scalar_type());
  return {weighted_mean(cross_entropy_rows(logits.flatten(0, 1), tensors.targets().flatten()),
                        weights.flatten()),
          weights.sum().item<double>()};
}

Loss LmObjective::loss(std::int64_t batch_number) {
  Summed summed = mean_loss(options_.batches->batch(batch_number));
  return {.value = std::move(summed.mean),
          .n_tokens = static_cast<std::int64_t>(summed.n_counted),
          .metrics = {}};
}

std::vector<Metric> LmObjective::evaluate() {
  if (options_.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  double sum = 0;
  double n_counted = 0;
  for (int number = 0; number < options_.n_held_out_batches; ++number) {
    const Summed summed = mean_loss(options_.held_out->batch(number));
    sum += summed.mean.item<double>() * summed.n_counted;
    n_counted += summed.n_counted;
  }
  return {{"loss", n_counted > 0 ? sum / n_counted : 0}};
}

void LmObjective::export_to(const std::filesystem::path& directory) {
  copy_tokenizer(options_.tokenizer, directory);
  write_parameters(directory, "model.safetensors", *model_, options_.export_type);
  write_json(directory, "config.json", llama_config_json(model_->config(), options_.export_type));
}

}  // namespace

std::shared_ptr<Objective> make_lm(const LmOptions& options) {
  return std::make_shared<LmObjective>(options);
}

}  // namespace outrider::train
