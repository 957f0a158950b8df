#include "model/heads/mtp_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/hub_cache.h"
#include "io/safetensors.h"
#include "model/config_section.h"
#include "model/heads/head_weights.h"
#include "model/heads/layered_head.h"
#include "model/shared_output.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load MTP modules";
// Far more than anybody trains; what asks for more is no such file.
constexpr int kMostModules = 64;

struct ModuleWeights {
  DecoderLayer layer;
  Norm embedding_norm;  // (dim)
  Norm state_norm;      // (dim)
  Norm head_norm;       // (dim)
  Linear join;          // (dim, 2 dim)
};

class MtpModule final : public LayeredHead {
 public:
  // The weights but those of the layer, which are among the parts.
  MtpModule(Parts parts, ModuleWeights weights, std::shared_ptr<SharedOutput> output)
      : LayeredHead(std::move(parts)),
        weights_(std::move(weights)),
        output_(std::move(output)),
        feature_layers_{this->parts().target->config().n_layers} {
    build([&](PassBuilder& pass, const Inputs& inputs) {
      const op::Normalise::Part joined[] = {{inputs.embedding, &weights_.embedding_norm},
                                            {inputs.state, &weights_.state_norm}};
      pass.linear_into(pass.stream(), pass.join(joined), weights_.join);
      pass.begin_layer(0);
      compose_pre_norm(pass, this->parts().layers.front());
    });
  }

  std::span<const int> feature_layers() const override { return feature_layers_; }
  void read(std::span<const float> features, std::span<float> states) override {
    std::copy(features.begin(), features.end(), states.begin());
  }

 private:
  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    const ModelConfig& config = parts().config;
    const auto dim = static_cast<std::size_t>(config.dim);
    normed_.resize(states.size());
    for (std::size_t at = 0; at < states.size(); at += dim) {
      parts().machine.table->rms_norm(states.data() + at, weights_.head_norm.weight.data(),
                                      config.dim, weights_.head_norm.epsilon, normed_.data() + at);
    }
    output_->project(normed_, output);
  }

  ModuleWeights weights_;
  std::shared_ptr<SharedOutput> output_;  // of all modules
  std::array<int, 1> feature_layers_;
  std::vector<float> normed_;  // (n_asked, dim)
};

constexpr const char* kKey = "num_nextn_predict_layers";

int read_n_modules(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path / "config.json")) {
    throw Error(kOperation, path.string(),
                "a Hugging Face directory with modules behind its layers", "none");
  }
  const std::filesystem::path file = path / "config.json";
  const nlohmann::json json = parse_config(file);
  const ConfigSection keys(json, file.string());
  if (!json.contains(kKey)) {
    throw Error(kOperation, path.string(),
                fmt::format("a model with modules behind its layers ({} in config.json; modules in "
                            "a folder of their own are mtp:PATH)",
                            kKey),
                "one without");
  }
  const int n_modules = keys.whole_or(kKey, 0);
  if (n_modules < 1 || n_modules > kMostModules) {
    keys.fail(kKey, fmt::format("1 to {}", kMostModules), fmt::format("{}", n_modules));
  }
  return n_modules;
}

}  // namespace

bool has_mtp_modules(const std::filesystem::path& path) {
  const std::filesystem::path file = path / "config.json";
  if (!std::filesystem::exists(file)) return false;
  const nlohmann::json json = parse_config(file);
  if (ConfigSection(json, file.string()).whole_or(kKey, 0) <= 0) return false;
  // Files are passed on without the modules that their configuration speaks of.
  const auto source = open_safetensors_directory(path);
  const std::span<const TensorView> tensors = source->tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorView& tensor) {
    return tensor.name.ends_with(".eh_proj.weight");
  });
}

std::vector<std::unique_ptr<FeatureHead>> load_mtp_modules(const std::filesystem::path& given,
                                                           LanguageModel& target,
                                                           const LoadOptions& options) {
  WeightOptions weight_options = make_weight_options(options);
  const std::filesystem::path path = without_hub_cache(given);
  const int n_modules = read_n_modules(path);
  weight_options.quantisation =
      read_quantisation(parse_config(path / "config.json"), path / "config.json");
  ModelConfig config = target.config();
  const int first = config.n_layers;
  config.n_layers = 1;
  const int dim = config.dim;
  const auto source = open_safetensors_directory(path);
  WeightLoader loader(*source, weight_options);
  std::vector<ModuleWeights> all = loader.run([&](WeightLoader& walk) {
    std::vector<ModuleWeights> modules;
    for (int k = 0; k < n_modules; ++k) {
      const std::string prefix = fmt::format("model.layers.{}.", first + k);
      modules.push_back({.layer = layer_of(walk, config, prefix),
                         .embedding_norm = norm_of(walk, prefix + "enorm.weight", config),
                         .state_norm = norm_of(walk, prefix + "hnorm.weight", config),
                         .head_norm = norm_of(walk, prefix + "shared_head.norm.weight", config),
                         .join = walk.linear(prefix + "eh_proj", dim, 2 * dim, Bias::never)});
      // Published modules repeat the target's embedding and output matrix.
      walk.ignore(prefix + "embed_tokens.weight");
      walk.ignore(prefix + "shared_head.head.weight");
      walk.require_all_read_below(prefix);
    }
    return modules;
  });
  const auto output = std::make_shared<SharedOutput>(target, weight_options);
  std::vector<std::unique_ptr<FeatureHead>> heads;
  for (ModuleWeights& weights : all) {
    LayeredHead::Parts parts;
    parts.config = config;
    parts.layers.push_back(std::move(weights.layer));
    parts.target = &target;
    parts.machine = {.table = weight_options.table,
                     .kv = kv_kind(options, loader.all_f32()),
                     .most_cache_bytes = most_cache_bytes(options),
                     .n_threads = weight_options.n_threads};
    heads.push_back(std::make_unique<MtpModule>(std::move(parts), std::move(weights), output));
  }
  return heads;
}

}  // namespace outrider
