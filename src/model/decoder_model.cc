// SPDX-License-Identifier: Apache-2.0
#include "model/decoder_model.h"

#include <fmt/format.h>

#include <utility>

#include "model/pass/on_device/run_on_device.h"
#include "model/pass/pass_builder.h"
#include "model/stored_weights.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// The encoder's pass: the keys and values that the decoder's layers read.
PassList compose_encoder(const Family& family, const DecoderWeights& weights) {
  PassBuilder pass(family.config().dim);
  pass.embed(weights.embedding, family.embedding_scale());
  for (const DecoderLayer& layer : weights.encoder_layers) family.compose_encoder(pass, layer);
  const Rows read = pass.norm(pass.stream(), weights.encoder_norm);
  for (const DecoderLayer& layer : weights.layers) pass.keys_and_values(read, layer.cross);
  return pass.take();
}

// The whole forward pass.
PassList compose(const Family& family, const DecoderWeights& weights) {
  const ModelConfig& config = family.config();
  PassBuilder pass(config.dim, config.has_encoder() ? compose_encoder(family, weights).caches
                                                    : std::vector<LayerCache>{});
  pass.embed(weights.embedding, family.embedding_scale());
  if (!weights.positions.shape.empty()) pass.add_positions(weights.positions);
  if (!weights.layer_inputs.empty()) pass.layer_inputs(weights.layer_inputs, config.n_layers);
  for (RopeTable& table : family.ropes()) pass.rope(std::move(table));
  pass.leave_feature(0, nullptr);
  for (int i = 0; i < config.n_layers; ++i) {
    pass.begin_layer(i);
    family.compose(pass, weights.layers[static_cast<std::size_t>(i)]);
    // The last feature is the input of the output matrix.
    pass.leave_feature(i + 1, i + 1 == config.n_layers ? &weights.final_norm : nullptr);
  }
  pass.end_layers();
  pass.logits(pass.stream(), &weights.final_norm, weights.head, family.logit_form(),
              weights.head_parts);
  return pass.take();
}

std::unique_ptr<PassExecutor> make_executor(const DecoderModel::Parts& parts) {
  PassList list = compose(*parts.family, parts.weights);
  const ModelConfig& config = parts.family->config();
  if (parts.device == nullptr) {
    return std::make_unique<CpuPass>(std::move(list), config, parts.machine);
  }
  return std::make_unique<DevicePass>(
      std::move(list), config,
      DevicePass::Machine{.device = parts.device,
                          .name = parts.device_name,
                          .kv = parts.machine.kv,
                          .max_cache_bytes = parts.machine.max_cache_bytes});
}

}  // namespace

DecoderModel::DecoderModel(Parts parts)
    : parts_(std::move(parts)),
      executor_(make_executor(parts_)),
      cpu_(dynamic_cast<CpuPass*>(executor_.get())),
      projection_(parts_.weights.head, parts_.family->logit_form(), parts_.machine,
                  parts_.weights.head_parts) {
  if (parts_.device != nullptr) {
    // The device has them now, and no product with them runs on the processor. The output matrix
    // stays, for heads.
    for (DecoderLayer& layer : parts_.weights.layers) {
      for_each_linear(layer, [](Linear& linear) { linear.matrix.release(); });
    }
  }
  if (config().has_encoder()) {
    encoder_pass_ =
        std::make_unique<CpuPass>(compose_encoder(*parts_.family, parts_.weights), *cpu_);
  }
}

// prepare() refuses sequences of other models.
void DecoderModel::encode(Sequence& sequence) {
  auto* const text = dynamic_cast<KvSequence*>(&sequence);
  KvSequence* const encoder = text == nullptr ? nullptr : text->encoder();
  if (encoder_pass_ == nullptr || encoder == nullptr || !encoder->empty()) return;
  const TokenBlock block{.sequence = encoder, .tokens = encoder->input(), .parents = {}};
  encoder_pass_->prepare({&block, 1}, {.kind = RowSet::Kind::none});
  encoder_pass_->run({});
  encoder->finish_encoder();
}

std::vector<std::string> DecoderModel::warnings() const {
  std::vector<std::string> warnings = config().warnings;
  const std::vector<std::string>& unread = parts_.weights.unread;
  if (!unread.empty()) {
    warnings.push_back(fmt::format(
        "{}: {} of its weights {} not used ({}{})", parts_.source->description(), unread.size(),
        unread.size() == 1 ? "is" : "are", unread.front(), unread.size() == 1 ? "" : ", ..."));
  }
  return warnings;
}

void DecoderModel::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                           ForwardOutput& output) {
  prepare(blocks, request);
  try {
    run(request, resize_output(request, output), output);
  } catch (...) {
    output.clear();
    throw;
  }
}

void DecoderModel::prepare(std::span<const TokenBlock> blocks, const ForwardRequest& request) {
  const ModelConfig& config = this->config();
  for (const int layer : request.feature_layers) {
    if (layer < 0 || layer > config.n_layers) {
      throw Error("forward", "feature layers", fmt::format("0 to {}", config.n_layers),
                  fmt::format("{}", layer));
    }
  }
  for (const TokenBlock& block : blocks) {
    if (!block.features.empty()) {
      throw Error("forward", "block", "no features (this model reads tokens alone)", "some");
    }
  }
  for (const TokenBlock& block : blocks) {
    if (block.sequence != nullptr) encode(*block.sequence);
  }
  executor_->prepare(blocks, request);
}

float* DecoderModel::resize_output(const ForwardRequest& request, ForwardOutput& output) {
  const ModelConfig& config = this->config();
  const PassPlan& plan = executor_->plan();
  float* logits = nullptr;
  output.logits.clear();
  if (std::shared_ptr<DistantRows> rows = executor_->distant_logits()) {
    output.logits.start_pass(plan.n_asked(), config.vocabulary_size, std::move(rows));
  } else {
    logits = output.logits.start_pass(plan.n_asked(), config.vocabulary_size);
  }
  output.feature_width = static_cast<int>(request.feature_layers.size()) * config.dim;
  const std::size_t n_features =
      static_cast<std::size_t>(plan.n_rows()) * static_cast<std::size_t>(output.feature_width);
  if (output.features.size() < n_features) output.features.resize(n_features);
  return logits;
}

// Nothing below throws, except for the loss of a device or of a rank.
void DecoderModel::run(const ForwardRequest& request, float* logits, ForwardOutput& output) {
  executor_->run({.logits = logits,
                  .feature_layers = request.feature_layers,
                  .features = output.features.data()});
  output.experts_a_layer = executor_->experts_a_layer();
}

void DecoderModel::embed(std::span<const TokenId> tokens, std::span<float> out) {
  const ModelConfig& config = this->config();
  const auto dim = static_cast<std::size_t>(config.dim);
  if (out.size() != tokens.size() * dim) {
    throw Error("embed", "output", fmt::format("{} floats", tokens.size() * dim),
                fmt::format("{}", out.size()));
  }
  const float scale = parts_.family->embedding_scale();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= config.vocabulary_size) {
      throw Error("embed", "token", fmt::format("0 to {}", config.vocabulary_size - 1),
                  fmt::format("{}", tokens[i]));
    }
    const std::span<float> x = out.subspan(i * dim, dim);
    decode_rows(parts_.weights.embedding, tokens[i], 1, x);
    for (float& value : x) value *= scale;
  }
}

void DecoderModel::project(std::span<const float> features, ForwardOutput& output) {
  projection_.project(features, output);
}

std::optional<Matrix> DecoderModel::narrower_output(WeightKind kind) const {
  const KernelTable& table = *parts_.machine.table;
  const auto tile_bytes = [&](WeightKind of) { return table.format(of).tile_bytes(config().dim); };
  if (tile_bytes(kind) >= tile_bytes(parts_.weights.head.kind())) return std::nullopt;
  const StoredWeights stored(parts_.weights.head_as_stored, kind, 0);
  Matrix narrower = Matrix::pack(stored, table, parts_.machine.n_threads);
  if (parts_.source != nullptr) parts_.source->release(parts_.weights.head_as_stored);
  return narrower;
}

}  // namespace outrider
