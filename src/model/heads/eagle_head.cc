// SPDX-License-Identifier: Apache-2.0
#include "model/heads/eagle_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/files/hub_cache.h"
#include "io/safetensors/safetensors.h"
#include "model/heads/draft_vocabulary.h"
#include "model/heads/eagle_config.h"
#include "model/heads/head_weights.h"
#include "model/heads/layered_head.h"
#include "model/heads/medusa_heads.h"
#include "model/shared_output.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load EAGLE head";

// The contents of a head's directory, checked against the target.
struct HeadFiles {
  EagleConfig config;
  std::shared_ptr<const TensorSource> source;  // holds the embeddings
};

HeadFiles open_head(const std::filesystem::path& path, const ModelConfig& target) {
  if (holds_medusa_heads_alone(path)) {
    throw Error(kOperation, path.string(), "a directory with config.json and model.safetensors",
                fmt::format("Medusa heads (medusa:{})", path.string()));
  }
  if (!std::filesystem::exists(path / "config.json")) {
    throw Error(kOperation, path.string(), "a directory with config.json and model.safetensors",
                std::filesystem::exists(path) ? "no config.json" : "nothing there");
  }
  HeadFiles files;
  files.config = read_eagle_config(path, target);
  const ModelConfig& layer = files.config.layer;
  const auto require_same = [&](const char* what, int head, int wanted) {
    if (head == wanted) return;
    throw Error(kOperation, path.string(), fmt::format("the target's {} of {}", what, wanted),
                fmt::format("{}", head));
  };
  require_same("width", layer.dim, target.dim);
  require_same("vocabulary", layer.vocabulary_size, target.vocabulary_size);
  files.source = open_safetensors_directory(path);
  return files;
}

struct EagleWeights {
  DecoderLayer layer;
  Linear fc;  // (dim, inputs)
};

class EagleHead final : public LayeredHead {
 public:
  EagleHead(Parts parts, Linear fc, SharedOutput output, const EagleConfig& config)
      : LayeredHead(std::move(parts)),
        fc_(std::move(fc)),
        output_(std::move(output)),
        feature_layers_{this->parts().target->config().n_layers} {
    build([&](PassBuilder& pass, const Inputs& inputs) {
      std::vector<op::Normalise::Part> read;
      if (config.reads_tokens) read.push_back({inputs.embedding, nullptr});
      if (config.reads_states) read.push_back({inputs.state, nullptr});
      pass.linear_into(pass.stream(), pass.join(read), fc_);
      pass.begin_layer(0);
      compose_pre_norm(pass, this->parts().layers.front());  // there is no norm before attention
    });
  }

  std::span<const int> feature_layers() const override { return feature_layers_; }
  void read(std::span<const float> features, std::span<float> states) override {
    std::copy(features.begin(), features.end(), states.begin());
  }

 private:
  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    output_.project(states, output);
  }

  Linear fc_;
  SharedOutput output_;
  std::array<int, 1> feature_layers_;
};

struct Eagle3Weights {
  std::vector<DecoderLayer> layers;  // the first one's attention norm is the embedding's
  Linear fc;                         // (dim, hidden states read * dim)
  // Norms of fc's input, applied one after the other: each over all of it, or (dim) for each state.
  std::vector<std::vector<Norm>> feature_norms;
  Norm state_norm;                 // (dim)
  Norm head_norm;                  // (dim)
  Linear head;                     // (draft vocabulary, dim)
  std::vector<float> mask_hidden;  // as fc reads them; empty if the head drafts step by step
};

class Eagle3Head final : public LayeredHead {
 public:
  // All weights but those of the layers, which are in `parts`.
  Eagle3Head(Parts parts, Eagle3Weights weights, EagleConfig config,
             std::vector<TokenId> draft_vocabulary)
      : LayeredHead(std::move(parts)),
        weights_(std::move(weights)),
        config_(std::move(config)),
        draft_vocabulary_(std::move(draft_vocabulary)) {
    build([&](PassBuilder& pass, const Inputs& inputs) { compose(pass, inputs); },
          config_.norm_output ? &weights_.head_norm : nullptr);
    PassBuilder fuse(config_.layer.dim);
    fuse_.read = fuse.buffer(weights_.fc.matrix.k());
    const op::Normalise::Part features = {fuse_.read, nullptr};
    fuse.linear_into(fuse.stream(), fuse.join({&features, 1}), weights_.fc);
    fuse_.give = fuse.stream();
    fuse_.pass.emplace(fuse.take(), this->parts().machine);

    PassBuilder say(config_.layer.dim);
    say_.read = say.stream();
    // If the rows' states are normalised already, the output matrix reads them directly.
    say.spread_logits(say.norm(say.stream(), config_.norm_output ? no_norm_ : weights_.head_norm),
                      weights_.head.matrix, draft_vocabulary_,
                      this->parts().config.vocabulary_size);
    say_.pass.emplace(say.take(), this->parts().machine);

    if (!config_.mask_token) return;
    mask_ = {.token = *config_.mask_token,
             .state = std::vector<float>(static_cast<std::size_t>(config_.layer.dim))};
    Eagle3Head::read(weights_.mask_hidden, mask_.state);
  }

  std::span<const int> feature_layers() const override { return config_.feature_layers; }
  const Mask* mask() const override { return config_.mask_token ? &mask_ : nullptr; }

  void read(std::span<const float> features, std::span<float> states) override {
    fuse_.run(normed(features), static_cast<int>(states.size()) / config_.layer.dim, {});
    if (!states.empty()) {
      std::copy_n(fuse_.pass->row(fuse_.give, 0), states.size(), states.begin());
    }
  }

 private:
  // A pass over rows without sequences.
  struct RowsPass {
    Rows read, give;
    std::optional<CpuPass> pass;

    void run(std::span<const float> rows, int n_rows, const CpuPass::Outputs& outputs) {
      pass->prepare_rows(n_rows);
      if (n_rows == 0) return;
      std::copy(rows.begin(), rows.end(), pass->row(read, 0));
      pass->run(outputs);
    }
  };

  void compose(PassBuilder& pass, const Inputs& inputs) {
    const DecoderLayer& first = parts().layers.front();
    Rows state = inputs.state;
    const Norm* norm = &weights_.state_norm;
    if (config_.norm_before_residual) state = pass.norm(state, *std::exchange(norm, nullptr));
    const op::Normalise::Part joined[] = {{inputs.embedding, &first.before_attention},
                                          {state, norm}};
    const Rows read = pass.join(joined);
    pass.copy(state, pass.stream());
    pass.begin_layer(0);
    pass.add(pass.attention(read, first.attention));
    pass.add(pass.gated_mlp(pass.norm(pass.stream(), first.before_mlp), first.mlp));
    for (std::size_t i = 1; i < parts().layers.size(); ++i) {
      pass.begin_layer(static_cast<int>(i));
      compose_pre_norm(pass, parts().layers[i]);
    }
  }

  // features (n, width of fc's input) after the head's norms, if any.
  std::span<const float> normed(std::span<const float> features) {
    if (weights_.feature_norms.empty()) return features;
    normed_.assign(features.begin(), features.end());
    for (const std::vector<Norm>& norms : weights_.feature_norms) {
      std::size_t at = 0;
      for (std::size_t i = 0; at < normed_.size(); ++i) {
        const Norm& norm = norms[i % norms.size()];
        parts().machine.table->rms_norm(normed_.data() + at, norm.weight.data(),
                                        static_cast<int>(norm.weight.size()), norm.epsilon,
                                        normed_.data() + at);
        at += norm.weight.size();
      }
    }
    return normed_;
  }

  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    const ModelConfig& config = parts().config;
    const auto n_rows = static_cast<int>(states.size()) / config.dim;
    float* const logits = output.logits.start_pass(n_rows, config.vocabulary_size);
    say_.run(states, n_rows, {.logits = logits});
  }

  Eagle3Weights weights_;
  EagleConfig config_;
  std::vector<TokenId> draft_vocabulary_;  // the target's id for each draft id
  Norm no_norm_;
  Mask mask_;                  // if the head has one
  RowsPass fuse_;              // hidden states to one state
  RowsPass say_;               // a state to logits
  std::vector<float> normed_;  // hidden states, reused
};

// The parts of both kinds of head, without the layers.
LayeredHead::Parts parts_of(const HeadFiles& files, LanguageModel& target, WeightLoader& loader,
                            const LoadOptions& options) {
  LayeredHead::Parts parts;
  parts.config = files.config.layer;
  parts.target = &target;
  parts.machine = {.table = loader.options().table,
                   .kv = kv_kind(options, loader.all_f32()),
                   .max_cache_bytes = max_cache_bytes(options),
                   .n_threads = loader.options().n_threads};
  constexpr const char* kEmbedding = "embed_tokens.weight";
  if (loader.has(kEmbedding)) {
    parts.source = files.source;
    parts.embedding =
        &loader.tensor(kEmbedding, {files.config.layer.vocabulary_size, files.config.layer.dim});
  }
  return parts;
}

std::unique_ptr<FeatureHead> load_eagle(const HeadFiles& files, LanguageModel& target,
                                        WeightLoader& loader, const LoadOptions& options) {
  const EagleConfig& config = files.config;
  const bool has_norms = config.norm_before_residual || config.norm_before_fc ||
                         config.norm_each_feature || config.norm_output;
  if (has_norms || config.mask_token) {
    throw Error(kOperation, files.source->description(),
                fmt::format("a tensor midlayer.hidden_norm.weight, as config.json speaks of {}",
                            has_norms ? "EAGLE-3's norms" : "P-EAGLE's mask token"),
                "none");
  }
  if (config.layer.n_layers != 1) {
    throw Error(kOperation, files.source->description(), "one layer",
                fmt::format("{}", config.layer.n_layers));
  }
  const int dim = config.layer.dim;
  const int n_read = (config.reads_states ? 1 : 0) + (config.reads_tokens ? 1 : 0);
  EagleWeights weights = loader.run([&](WeightLoader& walk) {
    EagleWeights read{.layer = layer_of(walk, config.layer, "layers.0.", {.attention_norm = false}),
                      .fc = walk.linear("fc", dim, n_read * dim, Bias::if_stored)};
    walk.require_all_read_below("layers.");
    return read;
  });
  LayeredHead::Parts parts = parts_of(files, target, loader, options);
  parts.layers.push_back(std::move(weights.layer));
  return std::make_unique<EagleHead>(std::move(parts), std::move(weights.fc),
                                     SharedOutput(target, loader.options()), config);
}

std::vector<std::vector<Norm>> feature_norms_of(WeightLoader& loader, const EagleConfig& config) {
  const auto n = static_cast<int>(config.feature_layers.size());
  std::vector<std::vector<Norm>> stages;
  if (config.norm_before_fc) {
    stages.push_back({{.weight = loader.vector("input_norm.weight", n * config.layer.dim),
                       .epsilon = config.layer.norm_epsilon}});
  }
  if (config.norm_each_feature) {
    std::vector<Norm>& norms = stages.emplace_back();
    for (int i = 0; i < n; ++i) {
      norms.push_back(norm_of(loader, fmt::format("fc_norm.{}.weight", i), config.layer));
    }
  }
  return stages;
}

// The first layer reads an embedding and a state; the others are plain.
std::vector<DecoderLayer> layers_of(WeightLoader& loader, const ModelConfig& config,
                                    const std::string& prefix) {
  std::vector<DecoderLayer> layers;
  layers.push_back(layer_of(loader, config, prefix, {.attention_width = 2 * config.dim}));
  for (int i = 1; i < config.n_layers; ++i) {
    layers.push_back(layer_of(loader, config, fmt::format("layers.{}.", i)));
  }
  return layers;
}

// Stored as one row of one text, (1, 1, hidden states * dim).
std::vector<float> mask_hidden_of(WeightLoader& loader, const TensorSource& source,
                                  const EagleConfig& config) {
  constexpr const char* kName = "mask_hidden";
  if (!config.mask_token) {
    if (!loader.has(kName)) return {};
    throw Error(kOperation, source.description(),
                "a mask token in config.json (ptd_token_id, mask_token_id or pard_token) beside "
                "the tensor mask_hidden",
                "none");
  }
  const auto n = static_cast<int>(config.feature_layers.size()) * config.layer.dim;
  std::vector<float> hidden(static_cast<std::size_t>(n));
  decode_rows(loader.tensor(kName, {1, 1, n}), 0, 1, hidden);
  return hidden;
}

std::unique_ptr<FeatureHead> load_eagle3(const HeadFiles& files, const std::string& prefix,
                                         LanguageModel& target, WeightLoader& loader,
                                         const LoadOptions& options) {
  const EagleConfig& config = files.config;
  const int dim = config.layer.dim;
  for (const int layer : config.feature_layers) {
    if (layer >= 0 && layer <= target.config().n_layers) continue;
    throw Error(kOperation, files.source->description(),
                fmt::format("layers 0 to {} to read", target.config().n_layers),
                fmt::format("{}, and no key of config.json that names others", layer));
  }
  const auto n_features = static_cast<int>(config.feature_layers.size());
  std::vector<TokenId> vocabulary =
      read_draft_vocabulary(*files.source, config.layer.vocabulary_size, kOperation);
  Eagle3Weights weights = loader.run([&](WeightLoader& walk) {
    Eagle3Weights read{
        .layers = layers_of(walk, config.layer, prefix),
        .fc = walk.linear("fc", dim, n_features * dim, Bias::if_stored),
        .feature_norms = feature_norms_of(walk, config),
        .state_norm = norm_of(walk, prefix + "hidden_norm.weight", config.layer),
        .head_norm = norm_of(walk, "norm.weight", config.layer),
        .head = walk.linear("lm_head", static_cast<int>(vocabulary.size()), dim, Bias::never),
        .mask_hidden = mask_hidden_of(walk, *files.source, config)};
    walk.require_all_read_below(prefix);
    walk.require_all_read_below("layers.");
    return read;
  });
  LayeredHead::Parts parts = parts_of(files, target, loader, options);
  parts.layers = std::move(weights.layers);
  return std::make_unique<Eagle3Head>(std::move(parts), std::move(weights), config,
                                      std::move(vocabulary));
}

}  // namespace

std::unique_ptr<FeatureHead> load_eagle_head(const std::filesystem::path& path,
                                             LanguageModel& target, const LoadOptions& options) {
  const WeightOptions weight_options = make_weight_options(options);
  const HeadFiles files = open_head(without_hub_cache(path), target.config());
  WeightLoader loader(*files.source, weight_options);
  for (const char* prefix : {"midlayer.", "layers.0."}) {
    if (!loader.has(std::string(prefix) + "hidden_norm.weight")) continue;
    return load_eagle3(files, prefix, target, loader, options);
  }
  return load_eagle(files, target, loader, options);
}

}  // namespace outrider
