#include "model/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/shared_output.h"
#include "model/stored_weights.h"
#include "outrider/error.h"

namespace outrider {
LlamaModel::LlamaModel(Parts parts)
    : parts_(std::move(parts)),
      layers_({.config = &parts_.config,
               .layers = parts_.weights.layers,
               .table = parts_.table,
               .kv = parts_.kv,
               .n_threads = parts_.n_threads,
               .input_forms = parts_.weights.input_forms}) {}

std::unique_ptr<Sequence> LlamaModel::open(const Prompt& prompt) { return layers_.open(prompt); }

std::unique_ptr<Sequence> LlamaModel::fork_without(const Sequence& whole,
                                                   std::span<const int> skip_layers) const {
  return layers_.fork_without(whole, skip_layers);
}

void LlamaModel::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                         ForwardOutput& output) {
  for (const int layer : request.feature_layers) {
    if (layer < 0 || layer > parts_.config.n_layers) {
      throw Error("forward", "feature layers", fmt::format("0 to {}", parts_.config.n_layers),
                  fmt::format("{}", layer));
    }
  }
  for (const TokenBlock& block : blocks) {
    if (!block.features.empty()) {
      throw Error("forward", "block", "no features (this model reads tokens alone)", "some");
    }
  }
  layers_.lay_out(blocks, request.logits, request.skip_layers);
  const PassPlan& plan = layers_.plan();
  asked_.resize(plan.n_asked(), parts_.config.dim, parts_.weights.input_forms);
  const std::size_t n_logits = static_cast<std::size_t>(plan.n_asked()) *
                               static_cast<std::size_t>(parts_.config.vocabulary_size);
  if (output.logits.size() < n_logits) output.logits.resize(n_logits);
  output.n_rows = plan.n_asked();
  output.vocabulary_size = parts_.config.vocabulary_size;
  feature_layers_ = request.feature_layers;
  skip_layers_ = request.skip_layers;
  output.feature_width = static_cast<int>(feature_layers_.size()) * parts_.config.dim;
  const std::size_t n_features =
      static_cast<std::size_t>(plan.n_rows()) * static_cast<std::size_t>(output.feature_width);
  if (output.features.size() < n_features) output.features.resize(n_features);
  features_ = output.features.data();

  // From here on nothing throws.
  layers_.begin();
  if (plan.n_rows() == 0) return;
  float* logits = output.logits.data();
  run_team(layers_.n_threads(), [this, logits](const Team& team) { run(team, logits); });
}

void LlamaModel::embed(std::span<const TokenId> tokens, std::span<float> out) {
  const auto dim = static_cast<std::size_t>(parts_.config.dim);
  if (out.size() != tokens.size() * dim) {
    throw Error("embed", "output", fmt::format("{} floats", tokens.size() * dim),
                fmt::format("{}", out.size()));
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= parts_.config.vocabulary_size) {
      throw Error("embed", "token", fmt::format("0 to {}", parts_.config.vocabulary_size - 1),
                  fmt::format("{}", tokens[i]));
    }
    decode_rows(parts_.weights.embedding, tokens[i], 1, out.subspan(i * dim, dim));
  }
}

void LlamaModel::project(std::span<const float> features, ForwardOutput& output) {
  const auto dim = static_cast<std::size_t>(parts_.config.dim);
  const int n_threads = layers_.n_threads(static_cast<int>(features.size() / dim));
  project_features(parts_.weights.head, *parts_.table, n_threads, features, asked_, output);
}

std::optional<Matrix> LlamaModel::narrower_output(WeightKind kind) const {
  const auto tile_bytes = [&](WeightKind of) {
    return parts_.table->format(of).tile_bytes(parts_.config.dim);
  };
  if (tile_bytes(kind) >= tile_bytes(parts_.weights.head.kind())) return std::nullopt;
  const StoredWeights stored(parts_.weights.head_as_stored, kind, 0);
  Matrix narrower = Matrix::pack(stored, *parts_.table, parts_.n_threads);
  if (parts_.source != nullptr) parts_.source->release(parts_.weights.head_as_stored);
  return narrower;
}

// Rows are shared out over the team as in DecoderLayers.
void LlamaModel::run(const Team& team, float* logits) {
  embed(team);
  layers_.turn(team);
  leave_features(team, 0);
  for (int i = 0; i < parts_.config.n_layers; ++i) {
    if (!skips(i)) {
      layers_.normalise(team, parts_.weights.layers[static_cast<std::size_t>(i)].attention_norm);
      layers_.attention(team, i, layers_.normed());
      layers_.feed_forward(team, i, behind(i));
    }
    leave_features(team, i + 1);
  }
  project_to_vocabulary(team, logits);
}

bool LlamaModel::skips(int layer) const {
  return std::binary_search(skip_layers_.begin(), skip_layers_.end(), layer);
}

const Matrix* LlamaModel::behind(int layer) const {
  int next = layer + 1;
  while (next < parts_.config.n_layers && skips(next)) ++next;
  if (next < parts_.config.n_layers) {
    return &parts_.weights.layers[static_cast<std::size_t>(next)].query.matrix;
  }
  return layers_.plan().n_asked() > 0 ? &parts_.weights.head : nullptr;
}

// x = embedding[token]
void LlamaModel::embed(const Team& team) {
  const PassPlan& plan = layers_.plan();
  const Range mine = team.share(plan.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    decode_rows(parts_.weights.embedding, plan.rows()[static_cast<std::size_t>(i)].token, 1,
                {layers_.x(i), static_cast<std::size_t>(parts_.config.dim)});
  }
}

// The residual stream after n_layers_done layers, for those who asked for it; after the last layer
// normalised, as the head reads it.
void LlamaModel::leave_features(const Team& team, int n_layers_done) {
  const ModelConfig& config = parts_.config;
  for (std::size_t place = 0; place < feature_layers_.size(); ++place) {
    if (feature_layers_[place] != n_layers_done) continue;
    const Range mine = team.share(layers_.plan().n_rows());
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      const float* x = layers_.x(i);
      float* feature = features_ + (static_cast<std::size_t>(i) * feature_layers_.size() + place) *
                                       static_cast<std::size_t>(config.dim);
      if (n_layers_done == config.n_layers) {
        parts_.table->rms_norm(x, parts_.weights.final_norm.data(), config.dim, config.norm_epsilon,
                               feature);
      } else {
        std::copy_n(x, config.dim, feature);
      }
    }
  }
}

// logits = Whead norm(x), for the asked rows only.
void LlamaModel::project_to_vocabulary(const Team& team, float* logits) {
  if (layers_.plan().n_asked() == 0) return;
  const ModelConfig& config = parts_.config;
  parts_.weights.head.comes_next(team);
  team.barrier();  // asked rows are shared out anew
  const Range mine = team.share(layers_.plan().n_asked());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    const int row = layers_.plan().asked()[static_cast<std::size_t>(i)];
    parts_.table->rms_norm(layers_.x(row), parts_.weights.final_norm.data(), config.dim,
                           config.norm_epsilon, asked_.row(static_cast<int>(i)));
    asked_.finish_row(*parts_.table, static_cast<int>(i));
  }
  team.barrier();
  parts_.weights.head.multiply(team, asked_, logits,
                               static_cast<std::size_t>(config.vocabulary_size));
}

}  // namespace outrider
