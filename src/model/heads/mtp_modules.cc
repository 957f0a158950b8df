// SPDX-License-Identifier: Apache-2.0
#include "model/heads/mtp_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/files/hub_cache.h"
#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"
#include "model/config_section.h"
#include "model/families/llama.h"
#include "model/families/registry.h"
#include "model/heads/layered_head.h"
#include "model/load/open_model.h"
#include "model/shared_output.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load MTP modules";
constexpr const char* kKey = "num_nextn_predict_layers";
// Far more than any model has; a larger number is no such file.
constexpr int kMaxModules = 64;

// The parts of modules: published ones use those of their own family, ours those of a Llama.
class TrainedModules final : public Family {
 public:
  explicit TrainedModules(const ModelConfig& config) : Family(config) {}
  std::optional<ModuleNames> module_names() const override { return ModuleNames{}; }
  DecoderLayer load_layer(LayerLoader& from, int /*layer*/) const override {
    return load_llama_layer(from, config());
  }
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }
};

struct ModuleWeights {
  DecoderLayer layer;
  Norm embedding_norm;  // (dim)
  Norm state_norm;      // (dim)
  Norm head_norm;       // (dim)
  Linear join;          // (dim, 2 dim)
};

class MtpModule final : public LayeredHead {
 public:
  // All weights but those of the layer, which are in `parts`. runs_on: the rows' states are those
  // after the norm.
  MtpModule(Parts parts, ModuleWeights weights, const Family& family,
            std::shared_ptr<SharedOutput> output, bool runs_on)
      : LayeredHead(std::move(parts)),
        weights_(std::move(weights)),
        output_(std::move(output)),
        runs_on_(runs_on),
        feature_layers_{this->parts().target->config().n_layers} {
    build(
        [&](PassBuilder& pass, const Inputs& inputs) {
          const op::Normalise::Part joined[] = {{inputs.embedding, &weights_.embedding_norm},
                                                {inputs.state, &weights_.state_norm}};
          pass.linear_into(pass.stream(), pass.join(joined), weights_.join);
          pass.begin_layer(0);
          family.compose(pass, this->parts().layers.front());
        },
        runs_on ? &weights_.head_norm : nullptr);
  }

  std::span<const int> feature_layers() const override { return feature_layers_; }
  void read(std::span<const float> features, std::span<float> states) override {
    std::copy(features.begin(), features.end(), states.begin());
  }

 private:
  void write_logits(std::span<const float> states, ForwardOutput& output) override {
    if (runs_on_) return output_->project(states, output);
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
  std::shared_ptr<SharedOutput> output_;  // shared by all modules
  bool runs_on_;
  std::array<int, 1> feature_layers_;
  std::vector<float> normed_;  // (n_asked, dim)
};

// The names of module k's tensors.
struct ModulePlace {
  std::string parts;
  std::string layer;
};

ModulePlace place_of(const OpenedModel& opened, const ModuleNames& names, int k) {
  const bool is_gguf = opened.names == NamingScheme::gguf;
  if (!is_gguf && names.apart != nullptr) {
    return {names.apart, fmt::format("{}layers.{}.", names.apart, k)};
  }
  const DecoderNames layers = opened.family->names();
  const std::string prefix =
      fmt::format("{}{}.", is_gguf ? layers.layers.gguf : layers.layers.hugging_face,
                  opened.family->config().n_layers + k);
  return {prefix, prefix};
}

std::string join_of(const OpenedModel& opened, const ModuleNames& names, int k) {
  return fmt::format(
      "{}{}.weight", place_of(opened, names, k).parts,
      opened.names == NamingScheme::gguf ? names.join.gguf : names.join.hugging_face);
}

// The number of modules in the family's own format, by their tensors; 0: none.
int count_own_modules(const OpenedModel& opened, const ModuleNames& names) {
  int n_modules = 0;
  while (n_modules <= kMaxModules &&
         opened.source->find(join_of(opened, names, n_modules)) != nullptr) {
    ++n_modules;
    if (names.apart != nullptr && opened.names != NamingScheme::gguf) break;
  }
  return n_modules;
}

// The number of modules that a directory's config.json gives.
int read_n_modules(const std::filesystem::path& path) {
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
  if (n_modules < 1 || n_modules > kMaxModules) {
    keys.fail(kKey, fmt::format("1 to {}", kMaxModules), fmt::format("{}", n_modules));
  }
  return n_modules;
}

void require_same(const std::filesystem::path& path, const ModelConfig& modules,
                  const ModelConfig& target) {
  const auto require = [&](const char* what, int of_modules, int of_target) {
    if (of_modules == of_target) return;
    throw Error(kOperation, path.string(), fmt::format("the target's {} of {}", what, of_target),
                fmt::format("{}", of_modules));
  };
  require("width", modules.dim, target.dim);
  require("vocabulary", modules.vocabulary_size, target.vocabulary_size);
  require("number of layers", modules.n_layers, target.n_layers);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Returns the number of modules. For modules of ours, their family replaces the one that the files
// name.
int find_modules(const std::filesystem::path& path, const ModelConfig& target,
                 OpenedModel& opened) {
  const std::optional<ModuleNames> own = opened.family->module_names();
  const int n_own = own ? count_own_modules(opened, *own) : 0;
  if (n_own > 0) {
    require_same(path, opened.family->config(), target);
    const bool is_one = own->apart != nullptr;
    if (n_own > (is_one ? 1 : kMaxModules)) {
      throw Error(kOperation, path.string(),
                  is_one ? "one module" : fmt::format("{} modules at most", kMaxModules),
                  fmt::format("{} or more", n_own));
    }
    return n_own;
  }
  const bool has_ours = is_folder(path) && count_mtp_modules(*opened.source) > 0;
  if ((own && !has_ours) || !is_folder(path)) {
    const std::string missing = own ? join_of(opened, *own, 0) : "modules";
    throw Error(kOperation, path.string(),
                own ? fmt::format("multi-token prediction modules ({})", missing)
                    : fmt::format("modules, which files of {} do not have",
                                  opened.family->config().architecture),
                "none (many files are passed on without them)");
  }
  opened.family = std::make_unique<TrainedModules>(target);
  return read_n_modules(path);
}

ModuleWeights read_module(WeightLoader& walk, const OpenedModel& opened, int k) {
  const Family& family = *opened.family;
  const ModuleNames names = *family.module_names();
  const ModulePlace place = place_of(opened, names, k);
  const int dim = family.config().dim;
  LayerLoader layer(walk, place.layer);
  LayerLoader parts(walk, place.parts);
  ModuleWeights read{.layer = family.load_module_layer(layer),
                     .embedding_norm = family.load_norm(parts, names.embedding_norm, dim),
                     .state_norm = family.load_norm(parts, names.state_norm, dim),
                     .head_norm = family.load_norm(parts, names.head_norm, dim),
                     .join = parts.linear(names.join, dim, 2 * dim, Bias::never)};
  // Published modules repeat the target's embedding and output matrix.
  for (const char* copy :
       {"embed_tokens", "shared_head.head", "nextn.embed_tokens", "nextn.shared_head_head"}) {
    if (names.apart == nullptr || parts.is_gguf()) {
      walk.ignore(fmt::format("{}{}.weight", place.parts, copy));
    }
  }
  walk.require_all_read_below(place.parts);
  return read;
}

}  // namespace

int count_mtp_modules(const TensorSource& source) {
  const std::span<const TensorView> tensors = source.tensors();
  return static_cast<int>(
      std::count_if(tensors.begin(), tensors.end(), [](const TensorView& tensor) {
        const bool is_behind_layers =
            tensor.name.starts_with("model.layers.") || tensor.name.starts_with("blk.");
        return tensor.name == "mtp.fc.weight" ||
               (is_behind_layers && tensor.name.ends_with(".eh_proj.weight"));
      }));
}

bool has_mtp_modules(const std::filesystem::path& path) {
  if (!is_folder(path)) {
    // GGUF files hold a family's own modules only.
    const auto file = open_gguf(path);
    return count_mtp_modules(*file) > 0 && read_family(*file)->module_names().has_value();
  }
  const std::filesystem::path file = path / "config.json";
  if (!std::filesystem::exists(file)) return false;
  const nlohmann::json json = parse_config(file);
  const bool is_announced = ConfigSection(json, file.string()).whole_or(kKey, 0) > 0;
  try {
    const auto source = open_safetensors_directory(path);
    if (source->find("mtp.fc.weight") != nullptr) return true;
    // Files are sometimes published without the modules that their configuration announces.
    return is_announced && count_mtp_modules(*source) > 0;
  } catch (const Error&) {
    if (is_announced) throw;
    return false;  // loading the model reports what is wrong with it
  }
}

std::vector<std::unique_ptr<FeatureHead>> load_mtp_modules(const std::filesystem::path& given,
                                                           LanguageModel& target,
                                                           const LoadOptions& options) {
  const std::filesystem::path path = without_hub_cache(given);
  if (is_folder(path) ? !std::filesystem::exists(path / "config.json")
                      : !std::filesystem::exists(path)) {
    throw Error(kOperation, path.string(),
                "a Hugging Face directory with modules behind its layers, or a .gguf file", "none");
  }
  OpenedModel opened = open_model(path);
  const int n_modules = find_modules(path, target.config(), opened);
  WeightOptions weight_options = make_weight_options(options);
  weight_options.names = opened.names;
  weight_options.quantisation = opened.quantisation;
  weight_options.experts_in_file = false;  // its one layer is read in every draft
  WeightLoader loader(*opened.source, weight_options);
  std::vector<ModuleWeights> all = loader.run([&](WeightLoader& walk) {
    std::vector<ModuleWeights> modules;
    modules.reserve(static_cast<std::size_t>(n_modules));
    for (int k = 0; k < n_modules; ++k) modules.push_back(read_module(walk, opened, k));
    return modules;
  });
  const auto output = std::make_shared<SharedOutput>(target, weight_options);
  std::vector<std::unique_ptr<FeatureHead>> heads;
  for (ModuleWeights& weights : all) {
    LayeredHead::Parts parts;
    parts.config = opened.family->config();
    parts.config.n_layers = 1;
    parts.layers.push_back(std::move(weights.layer));
    parts.target = &target;
    parts.machine = {.table = weight_options.table,
                     .kv = kv_kind(options, loader.all_f32()),
                     .max_cache_bytes = max_cache_bytes(options),
                     .n_threads = weight_options.n_threads};
    heads.push_back(std::make_unique<MtpModule>(std::move(parts), std::move(weights),
                                                *opened.family, output, n_modules == 1));
  }
  return heads;
}

}  // namespace outrider
