// SPDX-License-Identifier: Apache-2.0
#include "measure/plan/shape_of_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/hub_cache.h"
#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"
#include "model/config_section.h"
#include "model/families/registry.h"
#include "model/language_model.h"
#include "model/load/decoder_weights.h"
#include "model/load/names_in_file.h"
#include "model/load/text_part.h"
#include "model/load_model.h"
#include "model/require_decoder.h"
#include "model/stored_weights.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "plan speed";

ModelShape shape_of(const ModelConfig& config) {
  ModelShape shape;
  shape.n_layers = config.n_layers;
  shape.dim = config.dim;
  shape.n_heads = config.n_heads;
  shape.n_kv_heads = config.n_kv_heads;
  shape.head_dim = config.head_dim;
  shape.hidden_dim = config.hidden_dim;
  shape.vocabulary_size = config.vocabulary_size;
  shape.tied_head = config.tied_head;
  if (config.architecture == "glm4_moe") {
    throw Error(kOperation, config.architecture, "experts that rows choose alone",
                "one that every row uses beside them");
  }
  if (config.n_experts > 0) {
    if (config.n_expert_layers != config.n_layers) {
      throw Error(kOperation, config.architecture, "experts in all layers or in none",
                  fmt::format("in {} of {}", config.n_expert_layers, config.n_layers));
    }
    shape.hidden_dim = config.expert_dim;
    shape.n_experts = config.n_experts;
    shape.n_active = config.n_experts_used;
  }
  shape.has_gate = config.architecture != "gpt2" && config.architecture != "gpt_neox";
  return shape;
}

// The plan's formulas cover attention only.
void require_attention(const ModelConfig& config, bool has_recurrent_layers) {
  require_decoder(config, kOperation);
  if (config.latent_dim > 0) {
    throw Error(kOperation, config.architecture, "heads with keys and values of their own",
                "latent attention");
  }
  if (config.whole_head_dim > 0) {
    throw Error(kOperation, config.architecture, "layers of one shape",
                "heads of two kinds, and layers that read the keys of others");
  }
  if (config.architecture == "nemotron_h") {
    throw Error(kOperation, config.architecture, "layers of one shape", "layers of one block each");
  }
  if (!has_recurrent_layers) return;
  throw Error(kOperation, config.architecture, "layers that all attend", "recurrent layers");
}

void set_windows(const std::vector<int>& windows, ModelShape& shape) {
  for (const int window : windows) {
    if (window == 0) continue;
    ++shape.n_window_layers;
    shape.window = window;  // all windows of a family are equal
  }
}

// Whether a tensor belongs to one of the layers. Higher numbers belong to multi-token prediction
// modules.
bool is_of_layers(std::string_view name, std::string_view prefix, int n_layers) {
  if (!name.starts_with(prefix)) return false;
  int layer = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, layer);
  return error == std::errc() && rest != end && *rest == '.' && layer < n_layers;
}

// gpt-oss' experts in MXFP4: codes (n, n_rows, n_blocks, 16), two per byte, and a scale byte per
// block.
bool add_blocks(const TensorView& tensor, WeightShare& stored) {
  if (tensor.type != ElementType::u8) return false;
  const bool has_codes = tensor.name.ends_with("_blocks");
  if (!has_codes && !tensor.name.ends_with("_scales")) return false;
  stored.type = name_of(ElementType::mxfp4);
  if (has_codes) stored.n_weights += 2 * static_cast<double>(tensor.n_elements());
  stored.n_bytes += static_cast<double>(tensor.data.size());
  return true;
}

// The matrices of products: those of the layers, experts single or stacked, and the output matrix.
// Experts' biases have two dimensions, GPT-2's old masks four.
std::vector<WeightShare> stored_weights(const TensorSource& source, const NamesInFile& names,
                                        const ModelShape& shape) {
  const std::string head = (shape.tied_head ? names.embedding() : names.head()) + ".weight";
  const std::string layers = names.layers();
  std::map<std::string, WeightShare> by_type;
  WeightShare blocks;
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.name != head && !is_of_layers(tensor.name, layers, shape.n_layers)) continue;
    if (add_blocks(tensor, blocks)) continue;
    if (tensor.shape.size() != 2 && tensor.shape.size() != 3) continue;
    if (tensor.name.ends_with("bias")) continue;
    if (!is_weight_type(tensor.type)) {
      throw Error(
          kOperation, source.description(),
          fmt::format("tensor {} of a float type or one of GGUF's quantised ones", tensor.name),
          tensor.type_name());
    }
    WeightShare& stored = by_type[tensor.type_name()];
    stored.type = tensor.type_name();
    stored.n_weights += static_cast<double>(tensor.n_elements());
    stored.n_bytes += static_cast<double>(tensor.data.size());
  }
  std::vector<WeightShare> all;
  all.reserve(by_type.size() + 1);
  if (blocks.n_bytes > 0) all.push_back(std::move(blocks));
  for (auto& [type, stored] : by_type) all.push_back(std::move(stored));
  std::stable_sort(all.begin(), all.end(), [](const WeightShare& a, const WeightShare& b) {
    return a.n_bytes > b.n_bytes;
  });
  return all;
}

// The tensors of a directory's text model.
std::unique_ptr<TensorSource> open_directory(const std::filesystem::path& path) {
  std::unique_ptr<TensorSource> source = open_safetensors_directory(path);
  const std::filesystem::path file = path / "config.json";
  if (text_config_of(parse_config(file), file)) source = open_text_part(std::move(source));
  return source;
}

}  // namespace

ModelShape shape_of_file(const std::filesystem::path& given) {
  require_model(given);
  const std::filesystem::path path = without_hub_cache(given);
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  std::unique_ptr<const Family> family;
  std::unique_ptr<TensorSource> source;
  if (is_directory) {
    family = read_family(path);
    source = open_directory(path);
  } else {
    std::unique_ptr<GgufFile> file = open_gguf(path);
    family = read_family(*file);
    source = std::move(file);
  }
  require_attention(family->config(), family->recurrent_layers().n > 0);
  const NamesInFile names(*source, family->names(), !is_directory);
  ModelShape shape = shape_of(family->config());
  shape.name = given.filename().empty() ? given.string() : given.filename().string();
  shape.tied_head = has_tied_head(*source, family->config(), names);
  shape.stored = stored_weights(*source, names, shape);
  return shape;
}

ModelShape shape_of_model(const Model& model) {
  const LanguageModel& language_model = model.language_model();
  const Footprint footprint = language_model.footprint();
  require_attention(language_model.config(), footprint.state_bytes > 0);
  ModelShape shape = shape_of(language_model.config());
  shape.name = model.path().filename().string();
  set_windows(footprint.windows, shape);
  for (const Footprint::Share& share : footprint.shares) {
    shape.stored.push_back({.type = share.kind,
                            .n_weights = static_cast<double>(share.n_weights),
                            .n_bytes = static_cast<double>(share.n_bytes)});
  }
  return shape;
}

}  // namespace outrider
