#include "model/heads/eagle_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "model/config_section.h"
#include "model/heads/head_weights.h"
#include "model/heads/medusa_heads.h"
#include "model/heads/one_layer_head.h"
#include "model/shared_output.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load EAGLE head";

// What a head's directory says, checked against the target.
struct HeadFiles {
  ModelConfig config;
  nlohmann::json json;  // config.json
  std::string config_path;
  std::unique_ptr<TensorSource> source;
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
  files.config = read_head_config_json(path);
  files.config_path = (path / "config.json").string();
  files.json = parse_config(path / "config.json");
  const auto require_same = [&](const char* what, int head, int wanted) {
    if (head == wanted) return;
    throw Error(kOperation, path.string(), fmt::format("the target's {} of {}", what, wanted),
                fmt::format("{}", head));
  };
  require_same("width", files.config.dim, target.dim);
  require_same("vocabulary", files.config.vocabulary_size, target.vocabulary_size);
  if (files.config.n_layers != 1) {
    throw Error(kOperation, path.string(), "one layer", fmt::format("{}", files.config.n_layers));
  }
  files.source = open_safetensors_directory(path);
  return files;
}

struct EagleWeights {
  DecoderLayer layer;
  Linear fc;  // (dim, inputs)
};

// What of its row's two inputs an EAGLE head reads: both, but for trained ablations.
struct EagleInputs {
  bool states = true;
  bool tokens = true;
};

class EagleHead final : public OneLayerHead {
 public:
  EagleHead(Parts parts, Linear fc, SharedOutput output, const EagleInputs& reads)
      : OneLayerHead(std::move(parts)),
        fc_(std::move(fc)),
        output_(std::move(output)),
        feature_layers_{this->parts().target->config().n_layers} {
    build([&](PassBuilder& pass, const Inputs& inputs) {
      std::vector<op::Normalise::Part> read;
      if (reads.tokens) read.push_back({inputs.embedding, nullptr});
      if (reads.states) read.push_back({inputs.state, nullptr});
      pass.linear_into(pass.stream(), pass.join(read), fc_);
      pass.begin_layer(0);
      compose_pre_norm(pass, this->parts().layer);  // there is no norm before attention
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
  DecoderLayer layer;  // its attention norm is the embedding's
  Linear fc;           // (dim, 3 dim)
  RmsNorm state_norm;  // (dim)
  RmsNorm head_norm;   // (dim)
  Linear head;         // (draft vocabulary, dim)
};

class Eagle3Head final : public OneLayerHead {
 public:
  // The weights but those of the layer, which are among the parts.
  Eagle3Head(Parts parts, Eagle3Weights weights, std::array<int, 3> feature_layers,
             std::vector<TokenId> draft_vocabulary)
      : OneLayerHead(std::move(parts)),
        weights_(std::move(weights)),
        feature_layers_(feature_layers),
        draft_vocabulary_(std::move(draft_vocabulary)) {
    build([&](PassBuilder& pass, const Inputs& inputs) {
      const DecoderLayer& layer = this->parts().layer;
      const op::Normalise::Part joined[] = {{inputs.embedding, &layer.before_attention},
                                            {inputs.state, &weights_.state_norm}};
      const Rows read = pass.join(joined);
      pass.copy(inputs.state, pass.stream());
      pass.begin_layer(0);
      pass.add(pass.attention(read, layer.attention));
      pass.add(pass.gated_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.mlp));
    });
    const int dim = this->parts().config.dim;
    PassBuilder fuse(dim);
    fuse_.read = fuse.buffer(weights_.fc.matrix.k());
    const op::Normalise::Part features = {fuse_.read, nullptr};
    fuse.linear_into(fuse.stream(), fuse.join({&features, 1}), weights_.fc);
    fuse_.give = fuse.stream();
    fuse_.pass.emplace(fuse.take(), this->parts().machine);

    PassBuilder say(dim);
    say_.read = say.stream();
    say.spread_logits(say.norm(say.stream(), weights_.head_norm), weights_.head.matrix,
                      draft_vocabulary_, this->parts().config.vocabulary_size);
    say_.pass.emplace(say.take(), this->parts().machine);
  }

  std::span<const int> feature_layers() const override { return feature_layers_; }

  void read(std::span<const float> features, std::span<float> states) override {
    fuse_.run(features, static_cast<int>(states.size()) / parts().config.dim, {});
    if (!states.empty()) {
      std::copy_n(fuse_.pass->row(fuse_.give, 0), states.size(), states.begin());
    }
  }

 private:
  // A pass over rows alone.
  struct RowsPass {
    Rows read, give;
    std::optional<CpuPass> pass;

    void run(std::span<const float> rows, int n_rows, const CpuPass::Outputs& outputs) {
      pass->lay_out_rows(n_rows);
      if (n_rows == 0) return;
      std::copy(rows.begin(), rows.end(), pass->row(read, 0));
      pass->run(outputs);
    }
  };

  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    const ModelConfig& config = parts().config;
    const auto n_rows = static_cast<int>(states.size()) / config.dim;
    float* const logits = output.logits.start_pass(n_rows, config.vocabulary_size);
    say_.run(states, n_rows, {.logits = logits});
  }

  Eagle3Weights weights_;
  std::array<int, 3> feature_layers_;
  std::vector<TokenId> draft_vocabulary_;  // the target's id of each draft id
  RowsPass fuse_;                          // three features to a state
  RowsPass say_;                           // a state to logits
};

// "d2t": what to add to a draft id for the target's. Without one, ids mean the same.
std::vector<TokenId> read_draft_vocabulary(const TensorSource& source, int n_tokens) {
  std::vector<TokenId> ids;
  const TensorView* offsets = source.find("d2t");
  if (offsets == nullptr) {
    for (TokenId id = 0; id < n_tokens; ++id) ids.push_back(id);
    return ids;
  }
  if (offsets->type != ElementType::i64 || offsets->shape.size() != 1 || offsets->shape[0] < 1 ||
      offsets->shape[0] > n_tokens) {
    throw Error(kOperation, source.description(),
                fmt::format("tensor d2t of 1 to {} i64 numbers", n_tokens),
                fmt::format("{} of {}", offsets->n_elements(), name_of(offsets->type)));
  }
  std::vector<bool> said(static_cast<std::size_t>(n_tokens));
  for (std::int64_t i = 0; i < offsets->shape[0]; ++i) {
    std::int64_t offset = 0;
    std::memcpy(&offset, offsets->data.data() + static_cast<std::size_t>(i) * sizeof offset,
                sizeof offset);
    // Compared before adding: the sum of what a file says may overflow.
    if (offset < -i || offset >= n_tokens - i || said[static_cast<std::size_t>(i + offset)]) {
      throw Error(kOperation, source.description(),
                  fmt::format("d2t to give each draft id another token below {}", n_tokens),
                  fmt::format("{} at {}", offset, i));
    }
    said[static_cast<std::size_t>(i + offset)] = true;
    ids.push_back(static_cast<TokenId>(i + offset));
  }
  return ids;
}

// As in the authors' program, or as our trainer wrote down.
std::array<int, 3> read_feature_layers(const HeadFiles& files, int n_layers) {
  const ConfigSection keys(files.json, files.config_path);
  const nlohmann::json* stored = keys.find("feature_layers");
  std::array<int, 3> layers = {2, n_layers / 2, n_layers - 3};
  const auto fail = [&](std::string_view got) {
    keys.fail("feature_layers", fmt::format("three numbers from 0 to {}", n_layers), got);
  };
  if (stored != nullptr) {
    if (!stored->is_array() || stored->size() != 3) fail(ConfigSection::shown(*stored));
    for (std::size_t i = 0; i < 3; ++i) layers[i] = keys.whole("feature_layers", (*stored)[i]);
  }
  for (const int layer : layers) {
    if (layer < 0 || layer > n_layers) fail(fmt::format("{}", layer));
  }
  return layers;
}

EagleInputs read_inputs(const HeadFiles& files) {
  const ConfigSection keys(files.json, files.config_path);
  const std::string inputs = keys.text_or("eagle_inputs", "feature+shifted-token");
  if (inputs == "token") return {.states = false, .tokens = true};
  if (inputs == "feature") return {.states = true, .tokens = false};
  if (inputs != "feature+shifted-token") {
    keys.fail("eagle_inputs", "feature+shifted-token, token or feature", inputs);
  }
  return {};
}

// What both kinds of head are made of, but the layer.
OneLayerHead::Parts parts_of(const HeadFiles& files, LanguageModel& target,
                             const WeightLoader& loader, const LoadOptions& options) {
  OneLayerHead::Parts parts;
  parts.config = files.config;
  parts.target = &target;
  parts.machine = {.table = loader.options().table,
                   .kv = kv_kind(options, loader.all_f32()),
                   .most_cache_bytes = most_cache_bytes(options),
                   .n_threads = loader.options().n_threads};
  return parts;
}

std::unique_ptr<FeatureHead> load_eagle(const HeadFiles& files, LanguageModel& target,
                                        WeightLoader& loader, const LoadOptions& options) {
  const int dim = files.config.dim;
  const EagleInputs inputs = read_inputs(files);
  const int n_read = (inputs.states ? 1 : 0) + (inputs.tokens ? 1 : 0);
  EagleWeights weights = loader.run([&](WeightLoader& walk) {
    return EagleWeights{
        .layer = layer_of(walk, files.config, "layers.0.", {.attention_norm = false}),
        .fc = walk.linear("fc", dim, n_read * dim, Bias::if_stored)};
  });
  OneLayerHead::Parts parts = parts_of(files, target, loader, options);
  parts.layer = std::move(weights.layer);
  return std::make_unique<EagleHead>(std::move(parts), std::move(weights.fc),
                                     SharedOutput(target, loader.options()), inputs);
}

std::unique_ptr<FeatureHead> load_eagle3(const HeadFiles& files, LanguageModel& target,
                                         WeightLoader& loader, const LoadOptions& options) {
  const int dim = files.config.dim;
  const std::array<int, 3> layers = read_feature_layers(files, target.config().n_layers);
  std::vector<TokenId> vocabulary =
      read_draft_vocabulary(*files.source, files.config.vocabulary_size);
  Eagle3Weights weights = loader.run([&](WeightLoader& walk) {
    return Eagle3Weights{
        .layer = layer_of(walk, files.config, "midlayer.", {.attention_width = 2 * dim}),
        .fc = walk.linear("fc", dim, 3 * dim, Bias::if_stored),
        .state_norm = norm_of(walk, "midlayer.hidden_norm.weight", files.config),
        .head_norm = norm_of(walk, "norm.weight", files.config),
        .head = walk.linear("lm_head", static_cast<int>(vocabulary.size()), dim, Bias::never)};
  });
  OneLayerHead::Parts parts = parts_of(files, target, loader, options);
  parts.layer = std::move(weights.layer);
  return std::make_unique<Eagle3Head>(std::move(parts), std::move(weights), layers,
                                      std::move(vocabulary));
}

}  // namespace

std::unique_ptr<FeatureHead> load_eagle_head(const std::filesystem::path& path,
                                             LanguageModel& target, const LoadOptions& options) {
  const WeightOptions weight_options = make_weight_options(options);
  const HeadFiles files = open_head(path, target.config());
  WeightLoader loader(*files.source, weight_options);
  return loader.has("midlayer.self_attn.q_proj.weight")
             ? load_eagle3(files, target, loader, options)
             : load_eagle(files, target, loader, options);
}

}  // namespace outrider
