#include "measure/plan/shape_of_file.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/hub_cache.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "model/families/registry.h"
#include "model/language_model.h"
#include "model/load/decoder_weights.h"
#include "model/load_model.h"

namespace outrider {
namespace {

constexpr const char* kGgufHead = "output.weight";

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
  shape.has_gate = config.architecture != "gpt2" && config.architecture != "gpt_neox";
  return shape;
}

void set_windows(const std::vector<int>& windows, ModelShape& shape) {
  for (const int window : windows) {
    if (window == 0) continue;
    ++shape.n_window_layers;
    shape.window = window;  // families have windows of one width
  }
}

// The matrices of products. A tied embedding is one.
std::vector<WeightShare> stored_weights(const TensorSource& source, const Family& family,
                                        bool is_gguf, bool is_tied) {
  const DecoderNames names = family.names();
  const auto name_in = [is_gguf](const TensorName& name) {
    return std::string(is_gguf ? name.gguf : name.hugging_face) + ".weight";
  };
  std::map<std::string, WeightShare> by_type;
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.shape.size() < 2) continue;
    if (names.positions.gguf != nullptr && tensor.name == name_in(names.positions)) continue;
    if (!is_tied && tensor.name == name_in(names.embedding)) continue;
    if (is_tied && tensor.name == name_in(names.head)) continue;
    WeightShare& stored = by_type[tensor.type_name()];
    stored.type = tensor.type_name();
    stored.n_weights += static_cast<double>(tensor.n_elements());
    stored.n_bytes += static_cast<double>(tensor.data.size());
  }
  std::vector<WeightShare> all;
  all.reserve(by_type.size());
  for (auto& [type, stored] : by_type) all.push_back(std::move(stored));
  std::stable_sort(all.begin(), all.end(), [](const WeightShare& a, const WeightShare& b) {
    return a.n_bytes > b.n_bytes;
  });
  return all;
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
    source = open_safetensors_directory(path);
  } else {
    std::unique_ptr<GgufFile> file = open_gguf(path);
    family = read_family(*file);
    source = std::move(file);
  }
  ModelShape shape = shape_of(family->config());
  shape.name = given.filename().empty() ? given.string() : given.filename().string();
  shape.tied_head = is_directory ? has_tied_head(*source, family->config())
                                 : shape.tied_head && source->find(kGgufHead) == nullptr;
  shape.stored = stored_weights(*source, *family, !is_directory, shape.tied_head);
  return shape;
}

ModelShape shape_of_model(const Model& model) {
  const LanguageModel& language_model = model.language_model();
  ModelShape shape = shape_of(language_model.config());
  shape.name = model.path().filename().string();
  const Footprint footprint = language_model.footprint();
  set_windows(footprint.windows, shape);
  for (const Footprint::Share& share : footprint.shares) {
    shape.stored.push_back({.type = share.kind,
                            .n_weights = static_cast<double>(share.n_weights),
                            .n_bytes = static_cast<double>(share.n_bytes)});
  }
  return shape;
}

}  // namespace outrider
