// SPDX-License-Identifier: Apache-2.0
#include "model/heads/gemma4_assistant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/files/hub_cache.h"
#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"
#include "model/config_section.h"
#include "model/load/gguf_config.h"
#include "model/load/json_config.h"
#include "model/load/layer_loader.h"
#include "model/load/read_size.h"
#include "model/pass/pass_builder.h"
#include "model/weight_loader.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load assistant";
constexpr const char* kModelType = "gemma4_assistant";
constexpr std::string_view kGgufArchitecture = "gemma4-assistant";
// In a layer with a window of w tokens, transformers' mask lets a row read the last w + 1 tokens
// that the target has run, all before the row's own place. Windows here include that place.
constexpr int kBeyondWindow = 2;

// --- reads of the target ---

struct Lender {
  int layer = -1;
  const Attention* attention = nullptr;
};
struct Lenders {
  Lender windowed, whole;  // for each kind, the last layer with keys of its own
};

Lenders lenders_of(const PassList& list) {
  Lenders lenders;
  for (const Op& op : list.ops) {
    const auto* const attend = std::get_if<op::Attend>(&op.what);
    if (attend == nullptr || !attend->attention->has_own_keys() ||
        attend->attention->values_in_keys > 0) {
      continue;
    }
    Lender& its = attend->attention->window > 0 ? lenders.windowed : lenders.whole;
    its = {.layer = op.layer, .attention = attend->attention};
  }
  return lenders;
}

void require_heads_of(const std::filesystem::path& path, const Attention& own,
                      const Attention& target) {
  const auto shown = [](const Attention& attention) {
    return fmt::format("{} of {} elements and a window of {}", attention.n_kv_heads,
                       attention.head_dim, attention.window);
  };
  if (own.n_kv_heads == target.n_kv_heads && own.head_dim == target.head_dim &&
      own.window == target.window) {
    return;
  }
  throw Error(kOperation, path.string(),
              fmt::format("heads of keys as the target has them, {}", shown(target)), shown(own));
}

// --- its files ---

struct Config {
  std::unique_ptr<const Gemma4> family;
  int state_dim = 0;
  int n_clusters = 0;  // 0: none
  int n_read = 0;
};

// Bounds of state_dim, the same as check_config's for a stream.
constexpr int kMaxStateDim = 1 << 20;

// llama.cpp's converter leaves the clusters out, so all tokens have logits.
Config read_config(const GgufFile& file, const LentLayers& lent) {
  constexpr ConfigKey kStateDim = {nullptr, "embedding_length_out"};
  constexpr ConfigKey kModules = {nullptr, "nextn_predict_layers"};
  const GgufConfig source(file);
  if (source.architecture() != kGgufArchitecture) {
    throw Error(kOperation, file.description(),
                fmt::format("general.architecture to be {}", kGgufArchitecture),
                source.architecture());
  }
  Config config;
  config.family = std::make_unique<Gemma4>(source, lent);
  config.state_dim = source.required_whole(kStateDim);
  require_range(source, kStateDim, config.state_dim, 1, kMaxStateDim);
  const int n_layers = config.family->config().n_layers;
  if (const int n = source.whole(kModules).value_or(n_layers); n != n_layers) {
    source.fail(kModules, fmt::format("all layers, {}", n_layers), fmt::format("{}", n));
  }
  source.refuse_unread();
  return config;
}

Config read_config(const std::filesystem::path& file, const LentLayers& lent) {
  nlohmann::json json = parse_config(file);
  const ConfigSection section(json, file.string());
  const std::string model_type = section.text_or("model_type", "none");
  if (model_type != kModelType) section.fail("model_type", kModelType, model_type);
  if (section.find("text_config") == nullptr) section.fail("text_config", "an object", "none");
  const nlohmann::json text = json["text_config"];
  const ConfigSection of_text = *section.section("text_config");
  const std::string text_type = of_text.text_or("model_type", "gemma4_text");
  if (text_type != "gemma4_text") of_text.fail("model_type", "gemma4_text", text_type);

  Config config;
  const JsonConfig layers(text, file);
  config.family = std::make_unique<Gemma4>(layers, lent);
  layers.refuse_unread();
  json.erase("text_config");
  const JsonConfig whole(json, file);
  // Defaults are transformers'.
  config.state_dim = read_size(whole, {"backbone_hidden_size", nullptr}, 1536, 1, kMaxStateDim);
  constexpr ConfigKey kTied = {"tie_word_embeddings", nullptr};
  if (!whole.flag(kTied).value_or(true)) {
    whole.fail(kTied, "true (an assistant's output matrix is its embedding)", "false");
  }
  constexpr ConfigKey kClusters = {"num_centroids", nullptr};
  const int n_tokens = config.family->config().vocabulary_size;
  constexpr ConfigKey kRead = {"centroid_intermediate_top_k", nullptr};
  const int n_clusters = read_size(whole, kClusters, 2048, 1, 1 << 24);
  const int n_read = whole.whole(kRead).value_or(32);
  if (whole.flag({"use_ordered_embeddings", nullptr}).value_or(false)) {
    if (n_tokens % n_clusters != 0) {
      whole.fail(kClusters, fmt::format("a divisor of vocab_size, {}", n_tokens),
                 fmt::format("{}", n_clusters));
    }
    require_range(whole, kRead, n_read, 1, n_clusters);
    config.n_clusters = n_clusters;
    config.n_read = n_read;
  }
  whole.refuse_unread();
  return config;
}

constexpr const char* kOrdering = "masked_embedding.token_ordering";

// Each token once, ordered by cluster.
std::vector<TokenId> read_ordering(const TensorSource& source, int n_tokens) {
  const TensorView* const stored = source.find(kOrdering);
  if (stored == nullptr || stored->type != ElementType::i64 ||
      stored->shape != std::vector<std::int64_t>{n_tokens}) {
    throw Error(kOperation, source.description(),
                fmt::format("tensor {} of {} i64 numbers", kOrdering, n_tokens),
                stored == nullptr
                    ? "none"
                    : fmt::format("{} of {}", stored->n_elements(), name_of(stored->type)));
  }
  std::vector<bool> known(static_cast<std::size_t>(n_tokens));
  std::vector<TokenId> tokens(known.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::int64_t token = 0;
    std::memcpy(&token, stored->data.data() + i * sizeof token, sizeof token);
    if (token < 0 || token >= n_tokens || known[static_cast<std::size_t>(token)]) {
      throw Error(kOperation, source.description(),
                  fmt::format("{} to name each token below {} once", kOrdering, n_tokens),
                  fmt::format("{} at {}", token, i));
    }
    known[static_cast<std::size_t>(token)] = true;
    tokens[i] = static_cast<TokenId>(token);
  }
  return tokens;
}

void require_same(const std::filesystem::path& path, const char* what, int own, int of_target) {
  if (own == of_target) return;
  throw Error(kOperation, path.string(), fmt::format("the target's {} of {}", what, of_target),
              fmt::format("{}", own));
}

Gemma4Assistant::Parts read_weights(WeightLoader& walk, const Config& config) {
  const Gemma4& family = *config.family;
  const int dim = family.config().dim;
  LayerLoader from(walk, "");
  Gemma4Assistant::Parts parts;
  parts.before = from.linear({"pre_projection", "nextn.pre_projection"}, dim, 2 * config.state_dim,
                             Bias::never);
  parts.after =
      from.linear({"post_projection", "nextn.post_projection"}, config.state_dim, dim, Bias::never);
  for (int i = 0; i < family.config().n_layers; ++i) {
    const std::string prefix = fmt::format("{}{}.", from.is_gguf() ? "blk." : "model.layers.", i);
    LayerLoader layer(walk, prefix);
    parts.layers.push_back(family.load_layer(layer, i));
  }
  parts.final_norm = family.load_norm(from, {"model.norm", "output_norm"}, dim);
  parts.head = from.linear({"model.embed_tokens", "token_embd"}, family.config().vocabulary_size,
                           dim, Bias::never)
                   .matrix;
  walk.ignore("lm_head.weight");     // a copy of the embedding, if the file has one
  walk.ignore("rope_freqs.weight");  // GGUF's configuration of RoPE
  if (config.n_clusters > 0) {
    parts.clusters = Gemma4Assistant::Clusters{
        .scores = {.matrix = from.f32_matrix({"masked_embedding.centroids", nullptr},
                                             config.n_clusters, dim),
                   .bias = {}},
        .n_read = config.n_read,
        .tokens = {}};
    walk.ignore(kOrdering);
  }
  walk.require_all_read_below("");
  return parts;
}

}  // namespace

Gemma4Assistant::Gemma4Assistant(Parts parts)
    : parts_(std::move(parts)), feature_layers_{parts_.target->config().n_layers} {
  const CpuPass& target = *parts_.target->key_writer();
  PassBuilder pass(parts_.family->config().dim);
  pass.read_caches_of(target.list());
  embedding_ = pass.buffer(state_dim());
  state_ = pass.buffer(state_dim());
  given_ = pass.buffer(state_dim());
  for (RopeTable& table : parts_.family->ropes()) pass.rope(std::move(table));
  const op::Normalise::Part read[] = {{embedding_, nullptr}, {state_, nullptr}};
  pass.linear_into(pass.stream(), pass.join(read), parts_.before);
  for (std::size_t i = 0; i < parts_.layers.size(); ++i) {
    pass.begin_layer(static_cast<int>(i));
    parts_.family->compose(pass, parts_.layers[i]);
  }
  pass.end_layers();
  const Rows last = pass.norm(pass.stream(), parts_.final_norm);
  pass.linear_into(given_, last, parts_.after);
  if (parts_.clusters) {
    scores_ = pass.buffer(parts_.clusters->n());
    pass.linear_into(scores_, last, parts_.clusters->scores);
  }
  pass.logits(last, nullptr, parts_.head, {});
  pass_.emplace(pass.take(), target);
}

void Gemma4Assistant::forward(std::span<const KeyReaders> readers, std::span<const TokenId> tokens,
                              std::span<const float> states, ForwardOutput& output) {
  const auto width = static_cast<std::size_t>(state_dim());
  int n_rows = 0;
  for (const KeyReaders& reader : readers) n_rows += reader.n_rows;
  const auto n = static_cast<std::size_t>(n_rows);
  if (tokens.size() != n || states.size() != n * width) {
    throw Error("forward", "rows", fmt::format("{} tokens and states of {}", n, n * width),
                fmt::format("{} and {}", tokens.size(), states.size()));
  }
  pass_->prepare_readers(readers);
  float* const logits = output.logits.start_pass(n_rows, vocabulary_size());
  output.feature_width = state_dim();
  if (output.features.size() < n * width) output.features.resize(n * width);
  if (n == 0) return;
  embeddings_.resize(n * width);
  parts_.target->embed(tokens, embeddings_);
  std::copy(embeddings_.begin(), embeddings_.end(), pass_->row(embedding_, 0));
  std::copy(states.begin(), states.end(), pass_->row(state_, 0));
  pass_->run({.logits = logits});
  std::copy_n(pass_->row(given_, 0), n * width, output.features.begin());
  if (!parts_.clusters) return;
  const auto n_tokens = static_cast<std::size_t>(vocabulary_size());
  for (std::size_t row = 0; row < n; ++row) {
    keep_best_clusters(pass_->row(scores_, static_cast<std::int64_t>(row)),
                       {logits + row * n_tokens, n_tokens});
  }
}

void Gemma4Assistant::keep_best_clusters(const float* scores, std::span<float> logits) {
  const Clusters& clusters = *parts_.clusters;
  order_.resize(static_cast<std::size_t>(clusters.n()));
  std::iota(order_.begin(), order_.end(), 0);
  const auto score = [scores](int cluster) {  // NaN comes last
    return std::isnan(scores[cluster]) ? -std::numeric_limits<float>::infinity() : scores[cluster];
  };
  std::partial_sort(
      order_.begin(), order_.begin() + clusters.n_read, order_.end(),
      [&score](int a, int b) { return score(a) > score(b) || (score(a) == score(b) && a < b); });
  const auto size = clusters.tokens.size() / order_.size();
  is_read_.assign(logits.size(), 0);
  for (int i = 0; i < clusters.n_read; ++i) {
    const std::size_t first = static_cast<std::size_t>(order_[static_cast<std::size_t>(i)]) * size;
    for (const TokenId token : std::span(clusters.tokens).subspan(first, size)) {
      is_read_[static_cast<std::size_t>(token)] = 1;
    }
  }
  for (std::size_t token = 0; token < logits.size(); ++token) {
    if (is_read_[token] == 0) logits[token] = -std::numeric_limits<float>::infinity();
  }
}

bool is_gemma4_assistant(const std::filesystem::path& given) {
  const std::filesystem::path path = without_hub_cache(given);
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown)) {
    if (!is_gguf(path)) return false;
    const auto gguf = open_gguf(path);
    const std::string* const architecture = gguf->string("general.architecture");
    return architecture != nullptr && *architecture == kGgufArchitecture;
  }
  const std::filesystem::path file = path / "config.json";
  if (!std::filesystem::is_regular_file(file, unknown)) return false;
  const nlohmann::json json = parse_config(file);
  const auto type = json.find("model_type");
  if (type == json.end() || !type->is_string()) return false;
  const auto name = type->get<std::string>();
  return name.starts_with("gemma4") && name.ends_with("assistant");
}

std::unique_ptr<Gemma4Assistant> load_gemma4_assistant(const std::filesystem::path& given,
                                                       LanguageModel& target,
                                                       const LoadOptions& options) {
  const std::filesystem::path path = without_hub_cache(given);
  const CpuPass* const writer = target.key_writer();
  if (writer == nullptr) {
    throw Error(kOperation, path.string(), "a target whose keys and values can be read",
                "another kind of model");
  }
  const Lenders lenders = lenders_of(writer->list());
  const LentLayers lent = {.windowed = lenders.windowed.layer, .whole = lenders.whole.layer};
  std::unique_ptr<TensorSource> source;
  Config config;
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);
  if (is_file) {
    std::unique_ptr<GgufFile> file = open_gguf(path);
    config = read_config(*file, lent);
    source = std::move(file);
  } else {
    config = read_config(path / "config.json", lent);
  }
  const ModelConfig& layers = config.family->config();
  require_same(path, "width", config.state_dim, target.config().dim);
  require_same(path, "vocabulary", layers.vocabulary_size, target.config().vocabulary_size);
  if (!is_file) source = open_safetensors_directory(path);
  WeightOptions weight_options = make_weight_options(options);
  weight_options.names = is_file ? NamingScheme::gguf : NamingScheme::hugging_face;
  weight_options.table = &writer->table();  // a pass has one table
  WeightLoader loader(*source, weight_options);
  Gemma4Assistant::Parts parts =
      loader.run([&](WeightLoader& walk) { return read_weights(walk, config); });
  for (DecoderLayer& layer : parts.layers) {
    Attention& attention = layer.attention;
    require_heads_of(path, attention,
                     attention.window > 0 ? *lenders.windowed.attention : *lenders.whole.attention);
    if (attention.window > 0) attention.window += kBeyondWindow;
  }
  if (parts.clusters) parts.clusters->tokens = read_ordering(*source, layers.vocabulary_size);
  parts.family = std::move(config.family);
  parts.target = &target;
  return std::make_unique<Gemma4Assistant>(std::move(parts));
}

}  // namespace outrider
