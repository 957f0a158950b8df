// SPDX-License-Identifier: Apache-2.0
#include "train/objectives/block_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "outrider/error.h"
#include "train/batches/block_anchors.h"
#include "train/losses/block_losses.h"
#include "train/losses/losses.h"
#include "train/losses/target_tensors.h"
#include "train/losses/weighted_means.h"
#include "train/modules/block_module.h"
#include "train/modules/head_config.h"
#include "train/modules/markov_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

// The weights of the three parts of DSpark's loss (arXiv 2607.05147; DeepSpec's config).
constexpr double kTokenWeight = 0.1;
constexpr double kDistanceWeight = 0.9;
constexpr double kConfidenceWeight = 1.0;

// The layers and, for dspark, the Markov head, whose parameters are beside the layers'.
class BlockHeadModuleImpl : public BlockModuleImpl {
 public:
  BlockHeadModuleImpl(const ModelConfig& config, int n_features, const BlockHeadOptions& options)
      : BlockModuleImpl(config, n_features, options.run.products) {
    if (options.kind == BlockHeadKind::dspark) {
      markov = MarkovModule(options.markov, options.markov_rank, config.dim, config.vocabulary_size,
                            options.run.products);
      for (const auto& child : markov->named_children()) {
        register_module(child.key(), child.value());
      }
    }
    initialise(*this, config.n_layers);
  }
  MarkovModule markov{nullptr};
};
TORCH_MODULE(BlockHeadModule);

class BlockHeadObjective final : public Objective {
 public:
  explicit BlockHeadObjective(const BlockHeadOptions& options);

  torch::nn::Module& trained() override { return *head_; }
  Loss loss(std::int64_t batch_number) override;
  std::vector<Metric> evaluate() override;
  void export_to(const std::filesystem::path& directory) override;

 private:
  bool is_dspark() const { return options_.kind == BlockHeadKind::dspark; }
  int n_drafted() const { return is_dspark() ? options_.n_slots : options_.n_slots - 1; }

  // The head's outputs for each slot of a batch's blocks, (n, n_drafted, ...).
  struct Said {
    Tensor tokens;         // int64: of the text
    Tensor weights;        // the weight of each
    Tensor logits;         // (n, n_drafted, vocabulary_size)
    Tensor confidence;     // before its sigmoid; for dspark
    Tensor target_logits;  // (n, n_drafted, vocabulary_size), if requested
  };
  Said say(const Batch& batch, const AnchorChoice& choice, bool with_target,
           c10::optional<at::Generator> generator);

  struct Parts {
    Tensor loss;
    std::vector<std::pair<std::string, Tensor>> figures;
    Tensor n_blocks;
  };
  Parts judge(const Said& said) const;
  // The sum of weights times values, over the normaliser.
  Tensor mean_of(const Tensor& values, const Tensor& slot_weights, const Tensor& n_blocks) const;

  BlockHeadOptions options_;
  ModelConfig config_;
  std::vector<int> layers_;
  SharedMatrices shared_;
  BlockHeadModule head_{nullptr};
};

void require(bool is_met, const char* flag, const std::string& expected, double got) {
  if (!is_met) throw UsageError("train block head", flag, expected, fmt::format("{}", got));
}

ModelConfig layers_of(const BlockHeadOptions& options) {
  ModelConfig config = head_config(options.run.target->config());
  config.n_layers = options.n_layers;
  config.rotary_dim = 0;  // such heads rotate the whole head
  return config;
}

BlockHeadObjective::BlockHeadObjective(const BlockHeadOptions& options)
    : options_(options),
      config_(layers_of(options)),
      layers_(block_feature_layers(options.run.target->config().n_layers)),
      shared_(*options.run.target) {
  require(options.n_layers >= 1, "layers", "at least 1", options.n_layers);
  require(options.n_slots >= 2 && options.n_slots <= kMaxBlockSlots, "block",
          fmt::format("2 to {}", kMaxBlockSlots), options.n_slots);
  require(options.n_anchors >= 1, "anchors", "at least 1", options.n_anchors);
  require(options.mask >= 0 && options.mask < config_.vocabulary_size, "mask-token",
          fmt::format("a token of the target, 0 to {}", config_.vocabulary_size - 1), options.mask);
  require(options.gamma > 0, "gamma", "above 0", options.gamma);
  if (is_dspark()) {
    require(options.markov_rank >= 1 && options.markov_rank <= kMaxMarkovRank, "rank",
            fmt::format("1 to {}", kMaxMarkovRank), options.markov_rank);
  }
  torch::manual_seed(options.run.seed);
  head_ = BlockHeadModule(config_, static_cast<int>(layers_.size()), options);
  head_->to(training_device());
}

BlockHeadObjective::Said BlockHeadObjective::say(const Batch& batch, const AnchorChoice& choice,
                                                 bool with_target,
                                                 c10::optional<at::Generator> generator) {
  const torch::ScalarType type = head_->type();
  const TargetTensors seen(*options_.run.target, batch, layers_, type, with_target);
  const AnchoredBlocks blocks(seen.tokens, seen.weights, choice, std::move(generator));
  const std::int64_t n_drafted = choice.n_drafted;

  Tensor read = torch::full({blocks.anchors.size(0), blocks.anchors.size(1), options_.n_slots},
                            options_.mask, blocks.tokens.options());
  read.select(-1, 0).copy_(blocks.tokens.select(-1, 0));
  const Tensor states = head_->read(seen.features);
  const BlockPlaces places(config_, blocks.anchors, batch.length, options_.n_slots,
                           states.options());
  const Tensor given = head_->forward(shared_.embed(read, type), states, places);
  const Tensor slots = given.narrow(2, options_.n_slots - n_drafted, n_drafted).flatten(0, 1);

  const Tensor tokens = blocks.tokens.flatten(0, 1);
  Said said;
  said.tokens = tokens.narrow(1, 1, n_drafted);
  said.weights = blocks.weights.flatten(0, 1);
  said.logits = shared_.logits(slots, options_.run.products);
  if (head_->markov) {
    const MarkovModuleImpl::Given added =
        head_->markov->forward(slots, tokens.narrow(1, 0, n_drafted));
    said.logits = said.logits + added.logits;
    said.confidence = added.confidence;
  }
  if (with_target) {
    said.target_logits =
        seen.logits.flatten(0, 1).index_select(0, blocks.judges).view(said.logits.sizes());
  }
  return said;
}

Tensor BlockHeadObjective::mean_of(const Tensor& values, const Tensor& slot_weights,
                                   const Tensor& n_blocks) const {
  if (options_.weights == BlockHeadOptions::Weights::decay) {
    return weighted_mean(values, slot_weights);
  }
  return (values * slot_weights).sum() / n_blocks.clamp_min(1);
}

BlockHeadObjective::Parts BlockHeadObjective::judge(const Said& said) const {
  Parts parts;
  const Tensor counts = said.weights > 0;
  parts.n_blocks = counts.select(-1, 0).sum();
  const Tensor token_losses = cross_entropy_rows(said.logits, said.tokens);
  const Tensor slot_weights =
      said.weights *
      (options_.weights == BlockHeadOptions::Weights::decay
           ? decaying_weights(token_losses.size(-1), options_.gamma, said.weights.options())
           : d_pace_weights(token_losses, counts));
  const auto mean = [&](const Tensor& values) {
    return mean_of(values, slot_weights, parts.n_blocks);
  };
  const Tensor token_loss = mean(token_losses);
  parts.figures.emplace_back("token_loss", token_loss);
  if (said.confidence.defined()) {
    const Tensor distances = l1_distance(said.logits, said.target_logits);
    const Tensor acceptance = 1 - distances.detach() / 2;
    const Tensor confidence_loss = mean(torch::binary_cross_entropy_with_logits(
        said.confidence, acceptance, {}, {}, at::Reduction::None));
    const Tensor distance = mean(distances);
    parts.figures.emplace_back("l1_distance", distance);
    parts.figures.emplace_back("confidence_loss", confidence_loss);
    parts.loss = kTokenWeight * token_loss + kDistanceWeight * distance +
                 kConfidenceWeight * confidence_loss;
  } else {
    parts.loss = token_loss;
  }
  const torch::NoGradGuard no_grad;
  const Tensor reach = accepted_length(torch::exp(-token_losses) * counts);
  parts.figures.emplace_back("reach", reach.sum() / parts.n_blocks.clamp_min(1));
  return parts;
}

Loss BlockHeadObjective::loss(std::int64_t batch_number) {
  const Said said =
      say(options_.run.batches->batch(batch_number),
          {.n_blocks = options_.n_anchors, .n_drafted = n_drafted()}, is_dspark(), c10::nullopt);
  const Parts parts = judge(said);
  Loss total{.value = parts.loss,
             .n_tokens = (said.weights > 0).sum().item<std::int64_t>(),
             .metrics = {}};
  for (const auto& [name, value] : parts.figures) {
    total.metrics.emplace_back(name, value.item<double>());
  }
  return total;
}

std::vector<Metric> BlockHeadObjective::evaluate() {
  if (options_.run.held_out == nullptr) return {};
  const torch::NoGradGuard no_grad;
  WeightedMeans means;
  for (int number = 0; number < options_.run.n_held_out_batches; ++number) {
    // The same blocks in every evaluation, without using torch's own generator.
    const at::Generator generator =
        at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(number));
    const Said said = say(options_.run.held_out->batch(number),
                          {.n_blocks = options_.n_anchors, .n_drafted = n_drafted(), .whole = true},
                          true, generator);
    const Parts parts = judge(said);
    const auto n_blocks = parts.n_blocks.item<double>();
    means.add("loss", parts.loss.item<double>(), n_blocks);
    for (const auto& [name, value] : parts.figures) {
      means.add(name, value.item<double>(), n_blocks);
    }
    // Blocks are complete, or do not count.
    const Tensor counts = (said.weights.select(-1, 0) > 0).to(said.weights.scalar_type());
    const Tensor overlaps = compare_distributions(said.logits, said.target_logits).overlap;
    const Tensor agrees =
        (said.logits.argmax(-1) == said.target_logits.argmax(-1)).to(overlaps.scalar_type());
    const auto add = [&](const std::string& name, const Tensor& of_blocks) {
      means.add(name, weighted_mean(of_blocks, counts).item<double>(), n_blocks);
    };
    add("accepted_0", accepted_length(agrees));
    add("accepted_1", accepted_length(overlaps));
    for (int k = 1; k <= n_drafted(); ++k) {
      add(fmt::format("agreement_{}", k), agrees.select(-1, k - 1));
      add(fmt::format("overlap_{}", k), overlaps.select(-1, k - 1));
    }
  }
  return means.metrics();
}

void BlockHeadObjective::export_to(const std::filesystem::path& directory) {
  nlohmann::ordered_json json = llama_config_json(config_, options_.run.export_type);
  json["architectures"] = {is_dspark() ? "Qwen3DSparkModel" : "DFlashDraftModel"};
  json["model_type"] = "qwen3";
  json["layer_types"] =
      std::vector<std::string>(static_cast<std::size_t>(config_.n_layers), "full_attention");
  json["block_size"] = options_.n_slots;
  json["num_target_layers"] = options_.run.target->config().n_layers;
  std::vector<int> outputs;  // files count the layers whose outputs are read
  for (const int stream : layers_) outputs.push_back(stream - 1);
  nlohmann::ordered_json own = {{"mask_token_id", options_.mask}, {"target_layer_ids", outputs}};
  if (is_dspark()) {
    json.update(own);
    json["num_anchors"] = options_.n_anchors;
    json["markov_rank"] = options_.markov_rank;
    json["markov_head_type"] = name_of(options_.markov);
    json["enable_confidence_head"] = true;
    json["confidence_head_with_markov"] = true;
  } else {
    json["dflash_config"] = std::move(own);
  }
  write_json(directory, "config.json", json);
  // Written last: without it the directory is not a head yet.
  write_parameters(directory, "model.safetensors", *head_, options_.run.export_type);
}

constexpr std::pair<const char*, BlockHeadConfig::Markov::Form> kForms[] = {
    {"vanilla", BlockHeadConfig::Markov::Form::vanilla},
    {"gated", BlockHeadConfig::Markov::Form::gated},
    {"rnn", BlockHeadConfig::Markov::Form::recurrent}};

}  // namespace

BlockHeadConfig::Markov::Form markov_form_named(const std::string& name) {
  for (const auto& [known, form] : kForms) {
    if (name == known) return form;
  }
  throw UsageError("train dspark", "markov", "vanilla, gated or rnn", name);
}

std::string name_of(BlockHeadConfig::Markov::Form form) {
  for (const auto& [name, known] : kForms) {
    if (form == known) return name;
  }
  return {};
}

std::vector<int> block_feature_layers(int n_layers) {
  constexpr int kMax = 5;
  const int first = n_layers >= 8 ? 2 : std::min(1, n_layers - 1);
  const int last = n_layers >= 8 ? n_layers - 2 : n_layers - 1;
  const int n = std::min(kMax, last - first + 1);
  if (n == 1) return {last};
  std::vector<int> streams;
  for (int i = 0; i < n; ++i) {
    streams.push_back(first + static_cast<int>(std::lrint(  // halves to even, like Python's round
                                  static_cast<double>(i) * (last - first) / (n - 1))));
  }
  return streams;
}

std::shared_ptr<Objective> make_block_head(const BlockHeadOptions& options) {
  return std::make_shared<BlockHeadObjective>(options);
}

}  // namespace outrider::train
