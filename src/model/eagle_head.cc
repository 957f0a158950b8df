#include "model/eagle_head.h"

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
#include "model/medusa_heads.h"
#include "model/one_layer_head.h"
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

struct FirstWeights {
  LlamaLayer layer;
  Linear fc;  // (dim, inputs)
};

// What of its row's two inputs an EAGLE head reads: both, but for trained ablations.
struct FirstInputs {
  bool states = true;
  bool tokens = true;
};

class FirstEagleHead final : public OneLayerHead {
 public:
  FirstEagleHead(Parts parts, Linear fc, SharedOutput output, const FirstInputs& inputs)
      : OneLayerHead(std::move(parts)),
        fc_(std::move(fc)),
        output_(std::move(output)),
        inputs_(inputs),
        feature_layers_{this->parts().target->config().n_layers} {}

  std::span<const int> feature_layers() const override { return feature_layers_; }
  void read(std::span<const float> features, std::span<float> states) override {
    std::copy(features.begin(), features.end(), states.begin());
  }

 private:
  void make_room(int n_rows) override {
    joined_.resize(n_rows, fc_.matrix.k(), parts().input_forms);
  }

  void run(const Team& team) override {
    const int dim = parts().config.dim;
    const Range mine = team.share(layers().plan().n_rows());
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      float* joined = joined_.row(static_cast<int>(i));
      if (inputs_.tokens) joined = std::copy_n(embedding(i), dim, joined);
      if (inputs_.states) std::copy_n(state(i), dim, joined);
      joined_.finish_row(*parts().table, static_cast<int>(i));
    }
    team.barrier();
    fc_.matrix.multiply(team, joined_, layers().x(0), static_cast<std::size_t>(dim));
    team.barrier();
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      add_bias(*parts().table, layers().x(i), fc_.bias);
    }
    layers().turn(team);
    layers().normalise(team, parts().layer.attention_norm);  // none: as it stands
    layers().attention(team, 0, layers().normed());
    layers().feed_forward(team, 0, nullptr);
  }

  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    output_.project(states, output);
  }

  Linear fc_;
  SharedOutput output_;
  FirstInputs inputs_;
  std::array<int, 1> feature_layers_;
  Activations joined_;  // (n_rows, inputs of fc)
};

struct ThirdWeights {
  LlamaLayer layer;               // its attention norm is the embedding's
  Linear fc;                      // (dim, 3 dim)
  std::vector<float> state_norm;  // (dim)
  std::vector<float> head_norm;   // (dim)
  Linear head;                    // (draft vocabulary, dim)
};

class ThirdEagleHead final : public OneLayerHead {
 public:
  // The weights but those of the layer, which are among the parts.
  ThirdEagleHead(Parts parts, ThirdWeights weights, std::array<int, 3> feature_layers,
                 std::vector<TokenId> draft_vocabulary)
      : OneLayerHead(std::move(parts)),
        weights_(std::move(weights)),
        feature_layers_(feature_layers),
        draft_vocabulary_(std::move(draft_vocabulary)) {}

  std::span<const int> feature_layers() const override { return feature_layers_; }

  void read(std::span<const float> features, std::span<float> states) override {
    const auto dim = static_cast<std::size_t>(parts().config.dim);
    const auto n_rows = static_cast<int>(states.size() / dim);
    fused_.resize(n_rows, weights_.fc.matrix.k(), parts().input_forms);
    run_team(layers().n_threads(n_rows), [&](const Team& team) {
      const Range mine = team.share(n_rows);
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        std::copy_n(features.data() + static_cast<std::size_t>(i) * 3 * dim, 3 * dim,
                    fused_.row(static_cast<int>(i)));
        fused_.finish_row(*parts().table, static_cast<int>(i));
      }
      team.barrier();
      weights_.fc.matrix.multiply(team, fused_, states.data(), dim);
      team.barrier();
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        add_bias(*parts().table, states.data() + static_cast<std::size_t>(i) * dim,
                 weights_.fc.bias);
      }
    });
  }

 private:
  void make_room(int n_rows) override {
    joined_.resize(n_rows, 2 * parts().config.dim, parts().input_forms);
  }

  void run(const Team& team) override {
    const ModelConfig& config = parts().config;
    const KernelTable& table = *parts().table;
    const Range mine = team.share(layers().plan().n_rows());
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      float* joined = joined_.row(static_cast<int>(i));
      table.rms_norm(embedding(i), parts().layer.attention_norm.data(), config.dim,
                     config.norm_epsilon, joined);
      table.rms_norm(state(i), weights_.state_norm.data(), config.dim, config.norm_epsilon,
                     joined + config.dim);
      joined_.finish_row(table, static_cast<int>(i));
      std::copy_n(state(i), config.dim, layers().x(i));
    }
    layers().turn(team);
    layers().attention(team, 0, joined_);
    layers().feed_forward(team, 0, nullptr);
  }

  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    const ModelConfig& config = parts().config;
    const auto dim = static_cast<std::size_t>(config.dim);
    const auto n_rows = static_cast<int>(states.size() / dim);
    const std::size_t n_drafted = draft_vocabulary_.size();
    const auto n_tokens = static_cast<std::size_t>(config.vocabulary_size);
    output.n_rows = n_rows;
    output.vocabulary_size = config.vocabulary_size;
    const std::size_t n_logits = static_cast<std::size_t>(n_rows) * n_tokens;
    if (output.logits.size() < n_logits) output.logits.resize(n_logits);
    if (n_rows == 0) return;
    normed_.resize(n_rows, config.dim, parts().input_forms);
    drafted_.resize(static_cast<std::size_t>(n_rows) * n_drafted);
    run_team(layers().n_threads(n_rows), [&](const Team& team) {
      const Range mine = team.share(n_rows);
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        parts().table->rms_norm(states.data() + static_cast<std::size_t>(i) * dim,
                                weights_.head_norm.data(), config.dim, config.norm_epsilon,
                                normed_.row(static_cast<int>(i)));
        normed_.finish_row(*parts().table, static_cast<int>(i));
      }
      team.barrier();
      weights_.head.matrix.multiply(team, normed_, drafted_.data(), n_drafted);
      team.barrier();
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        float* all = output.logits.data() + static_cast<std::size_t>(i) * n_tokens;
        const float* drafted = drafted_.data() + static_cast<std::size_t>(i) * n_drafted;
        std::fill_n(all, n_tokens, -std::numeric_limits<float>::infinity());
        for (std::size_t place = 0; place < n_drafted; ++place) {
          all[draft_vocabulary_[place]] = drafted[place];
        }
      }
    });
  }

  ThirdWeights weights_;
  std::array<int, 3> feature_layers_;
  std::vector<TokenId> draft_vocabulary_;  // the target's id of each draft id
  Activations fused_;                      // (n_rows, 3 dim)
  Activations joined_;                     // (n_rows, 2 dim): what attention reads
  Activations normed_;                     // (n_asked, dim)
  std::vector<float> drafted_;             // (n_asked, draft vocabulary)
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

FirstInputs read_inputs(const HeadFiles& files) {
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
  parts.table = loader.options().table;
  parts.kv = kv_kind(options, loader.all_f32());
  parts.most_cache_bytes = most_cache_bytes(options);
  parts.n_threads = loader.options().n_threads;
  parts.input_forms = loader.input_forms();
  return parts;
}

std::unique_ptr<FeatureHead> load_first(const HeadFiles& files, LanguageModel& target,
                                        WeightLoader& loader, const LoadOptions& options) {
  const int dim = files.config.dim;
  const FirstInputs inputs = read_inputs(files);
  const int n_read = (inputs.states ? 1 : 0) + (inputs.tokens ? 1 : 0);
  FirstWeights weights = loader.run([&](WeightLoader& walk) {
    return FirstWeights{
        .layer = load_layer(walk, files.config, "layers.0.", {.attention_norm = false}),
        .fc = walk.linear("fc", dim, n_read * dim, Bias::if_stored)};
  });
  OneLayerHead::Parts parts = parts_of(files, target, loader, options);
  parts.layer = std::move(weights.layer);
  return std::make_unique<FirstEagleHead>(std::move(parts), std::move(weights.fc),
                                          SharedOutput(target, loader.options()), inputs);
}

std::unique_ptr<FeatureHead> load_third(const HeadFiles& files, LanguageModel& target,
                                        WeightLoader& loader, const LoadOptions& options) {
  const int dim = files.config.dim;
  const std::array<int, 3> layers = read_feature_layers(files, target.config().n_layers);
  std::vector<TokenId> vocabulary =
      read_draft_vocabulary(*files.source, files.config.vocabulary_size);
  ThirdWeights weights = loader.run([&](WeightLoader& walk) {
    return ThirdWeights{
        .layer = load_layer(walk, files.config, "midlayer.", {.attention_width = 2 * dim}),
        .fc = walk.linear("fc", dim, 3 * dim, Bias::if_stored),
        .state_norm = walk.vector("midlayer.hidden_norm.weight", dim),
        .head_norm = walk.vector("norm.weight", dim),
        .head = walk.linear("lm_head", static_cast<int>(vocabulary.size()), dim, Bias::never)};
  });
  OneLayerHead::Parts parts = parts_of(files, target, loader, options);
  parts.layer = std::move(weights.layer);
  return std::make_unique<ThirdEagleHead>(std::move(parts), std::move(weights), layers,
                                          std::move(vocabulary));
}

}  // namespace

std::unique_ptr<FeatureHead> load_eagle_head(const std::filesystem::path& path,
                                             LanguageModel& target, const LoadOptions& options) {
  const WeightOptions weight_options = make_weight_options(options);
  const HeadFiles files = open_head(path, target.config());
  WeightLoader loader(*files.source, weight_options);
  return loader.has("midlayer.self_attn.q_proj.weight")
             ? load_third(files, target, loader, options)
             : load_first(files, target, loader, options);
}

}  // namespace outrider
