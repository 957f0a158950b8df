// SPDX-License-Identifier: Apache-2.0
#include "model/heads/block_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/files/hub_cache.h"
#include "io/safetensors/safetensors.h"
#include "model/families/llama.h"
#include "model/heads/draft_vocabulary.h"
#include "model/heads/head_weights.h"
#include "model/pass/pass_builder.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load block head";

}  // namespace

BlockHead::BlockHead(Parts parts) : parts_(std::move(parts)) {
  build_fuse();
  build_block();
  build_context();
  if (parts_.own_output) build_output();
}

void BlockHead::build_fuse() {
  PassBuilder pass(dim());
  features_ = pass.buffer(parts_.fc.matrix.k());
  const op::Normalise::Part read = {features_, nullptr};
  pass.linear_into(pass.stream(), pass.join({&read, 1}), parts_.fc);
  state_ = pass.norm(pass.stream(), parts_.state_norm);
  fuse_.emplace(pass.take(), parts_.machine);
}

void BlockHead::build_block() {
  PassBuilder pass(dim());
  slots_ = pass.stream();
  pass.rope(rope_table(parts_.config.layers));
  for (std::size_t layer = 0; layer < parts_.layers.size(); ++layer) {
    pass.begin_layer(static_cast<int>(layer));
    compose_pre_norm(pass, parts_.layers[layer]);
  }
  pass.end_layers();
  pass.leave_feature(parts_.config.layers.n_layers, &parts_.final_norm);
  block_.emplace(pass.take(), parts_.config.layers, parts_.machine);
}

void BlockHead::build_context() {
  PassBuilder pass(dim());
  known_ = pass.buffer(dim());
  pass.rope(rope_table(parts_.config.layers));
  const op::Normalise::Part part = {known_, nullptr};
  const Rows read = pass.join({&part, 1});
  for (std::size_t layer = 0; layer < parts_.layers.size(); ++layer) {
    pass.begin_layer(static_cast<int>(layer));
    pass.keys_and_values(read, parts_.layers[layer].attention);
  }
  pass.end_layers();
  context_.emplace(pass.take(), *block_);
}

void BlockHead::build_output() {
  PassBuilder pass(dim());
  slot_outputs_ = pass.stream();
  const op::Normalise::Part read = {slot_outputs_, nullptr};
  pass.spread_logits(pass.join({&read, 1}), parts_.own_output->head.matrix,
                     parts_.own_output->vocabulary, parts_.config.layers.vocabulary_size);
  output_.emplace(pass.take(), parts_.machine);
}

double BlockHead::further_slot() const {
  if (parts_.markov == nullptr) return 0;
  std::int64_t n_weights = 0;
  const auto count = [&](const Linear& linear) {
    n_weights += std::int64_t{linear.matrix.k()} * linear.matrix.n_columns();
  };
  for (const DecoderLayer& layer : parts_.layers) for_each_linear(layer, count);
  if (parts_.own_output) {
    count(parts_.own_output->head);
  } else {
    n_weights += std::int64_t{dim()} * parts_.config.layers.vocabulary_size;
  }
  return std::min(1.0,
                  static_cast<double>(parts_.markov->n_weights()) / static_cast<double>(n_weights));
}

void BlockHead::read(std::span<const float> features, std::span<float> states) {
  fuse_->prepare_rows(static_cast<int>(states.size()) / dim());
  if (states.empty()) return;
  std::copy(features.begin(), features.end(), fuse_->row(features_, 0));
  fuse_->run({});
  std::copy_n(fuse_->row(state_, 0), states.size(), states.begin());
}

void BlockHead::remember(std::span<const Known> known) {
  const auto width = static_cast<std::size_t>(dim());
  std::size_t n_max = 0;
  for (const Known& one : known) n_max = std::max(n_max, one.states.size() / width);
  tokens_.assign(n_max, 0);  // a token's input is its state, so ids are dummies
  blocks_.clear();
  for (const Known& one : known) {
    blocks_.push_back({.sequence = one.sequence,
                       .tokens = std::span<const TokenId>(tokens_).first(one.states.size() / width),
                       .parents = {}});
  }
  context_->prepare(blocks_, {.kind = RowSet::Kind::none});
  std::int64_t row = 0;
  for (const Known& one : known) {
    std::copy(one.states.begin(), one.states.end(), context_->row(known_, row));
    row += static_cast<std::int64_t>(one.states.size() / width);
  }
  context_->run({});
  for (auto node = static_cast<int>(chain_.size()); chain_.size() < n_max; ++node) {
    chain_.push_back(node);
  }
  for (const Known& one : known) {
    one.sequence->keep(std::span<const int>(chain_).first(one.states.size() / width));
  }
}

// Writes the slots' embeddings to embeddings_: each block's anchor and masks.
void BlockHead::embed_slots(std::span<const Block> blocks) {
  const auto n_slots = static_cast<std::size_t>(parts_.config.n_slots);
  tokens_.clear();
  for (const Block& block : blocks) {
    tokens_.push_back(block.anchor);
    tokens_.insert(tokens_.end(), n_slots - 1, parts_.config.mask);
  }
  const auto width = static_cast<std::size_t>(dim());
  embeddings_.resize(tokens_.size() * width);
  if (parts_.embedding == nullptr) {
    parts_.target->embed(tokens_, embeddings_);
    return;
  }
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    decode_rows(*parts_.embedding, tokens_[i], 1, std::span(embeddings_).subspan(i * width, width));
  }
}

void BlockHead::draft(std::span<const Block> blocks, std::span<float> slot_outputs) {
  const auto n_slots = static_cast<std::size_t>(parts_.config.n_slots);
  const auto width = static_cast<std::size_t>(dim());
  embed_slots(blocks);
  blocks_.clear();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks_.push_back({.sequence = blocks[i].sequence,
                       .tokens = std::span<const TokenId>(tokens_).subspan(i * n_slots, n_slots),
                       .parents = {}});
  }
  block_->prepare(blocks_, {.kind = RowSet::Kind::none});
  if (blocks.empty()) return;
  std::copy(embeddings_.begin(), embeddings_.end(), block_->row(slots_, 0));
  outputs_.resize(embeddings_.size());
  const int layer[] = {parts_.config.layers.n_layers};
  block_->run({.feature_layers = layer, .features = outputs_.data()});
  // Without gives_next, the anchor's slot predicts nothing.
  const auto n_drafted = static_cast<std::size_t>(parts_.config.n_drafted());
  float* to = slot_outputs.data();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const float* const from = outputs_.data() + (i * n_slots + n_slots - n_drafted) * width;
    to = std::copy_n(from, n_drafted * width, to);
    blocks[i].sequence->keep({});
  }
}

void BlockHead::project(std::span<const float> slot_outputs, ForwardOutput& output) {
  if (!parts_.own_output) {
    parts_.shared_output->project(slot_outputs, output);
    return;
  }
  const auto n_rows = static_cast<int>(slot_outputs.size()) / dim();
  output_->prepare_rows(n_rows);
  float* const logits = output.logits.start_pass(n_rows, parts_.config.layers.vocabulary_size);
  output.feature_width = 0;
  if (n_rows == 0) return;
  std::copy(slot_outputs.begin(), slot_outputs.end(), output_->row(slot_outputs_, 0));
  output_->run({.logits = logits});
}

namespace {

DecoderLayer load_layer(WeightLoader& walk, const BlockHeadConfig& config,
                        const std::string& prefix, std::size_t index) {
  DecoderLayer layer = layer_of(walk, config.layers, prefix);
  const auto head_norm = [&](const char* name) {
    return Norm{.weight = walk.vector(prefix + name, config.layers.head_dim),
                .epsilon = config.layers.norm_epsilon};
  };
  layer.attention.query_norm = head_norm("self_attn.q_norm.weight");
  layer.attention.key_norm = head_norm("self_attn.k_norm.weight");
  layer.attention.window = config.attention[index].window;
  layer.attention.reads_whole_block = config.attention[index].reads_whole_block;
  return layer;
}

// Loads all of it except the ids of the draft vocabulary, which has n_drafted of them.
MarkovHead::Parts load_markov(WeightLoader& walk, const BlockHeadConfig& config,
                              const std::string& prefix, int n_drafted) {
  using Form = BlockHeadConfig::Markov::Form;
  const int dim = config.layers.dim;
  const int rank = config.markov.rank;
  const int vocabulary_size = config.layers.vocabulary_size;
  const std::string name = prefix + "markov_head.";
  MarkovHead::Parts parts{
      .form = config.markov,
      .dim = dim,
      .vocabulary_size = vocabulary_size,
      .before = &walk.tensor(name + "markov_w1.weight", {vocabulary_size, rank}),
      .joint = {},
      .after = walk.linear(name + "markov_w2", n_drafted, rank, Bias::never),
      .vocabulary = {},
      .confidence = {},
  };
  if (config.markov.form == Form::gated) {
    parts.joint = walk.linear(name + "gate_proj", rank, dim + rank, Bias::always);
  } else if (config.markov.form == Form::recurrent) {
    parts.joint = walk.linear(name + "joint_proj", 3 * rank, 2 * rank + dim, Bias::always);
  }
  if (config.markov.has_confidence) {
    const int width = config.markov.confidence_reads_token ? dim + rank : dim;
    const TensorView& weight = walk.tensor(prefix + "confidence_head.proj.weight", {1, width});
    parts.confidence.resize(static_cast<std::size_t>(width));
    decode_rows(weight, 0, 1, parts.confidence);
    const std::vector<float> bias = walk.vector(prefix + "confidence_head.proj.bias", 1);
    parts.confidence_bias = bias.empty() ? 0 : bias.front();  // empty before the weights are read
  }
  return parts;
}

}  // namespace

std::unique_ptr<BlockHead> load_block_head(const std::filesystem::path& given,
                                           LanguageModel& target, BlockHeadKind kind,
                                           const LoadOptions& options) {
  const std::filesystem::path path = without_hub_cache(given);
  if (!std::filesystem::exists(path / "config.json")) {
    throw Error(kOperation, path.string(), "a directory with config.json and model.safetensors",
                std::filesystem::exists(path) ? "no config.json" : "nothing there");
  }
  const WeightOptions weight_options = make_weight_options(options);
  BlockHead::Parts parts;
  parts.config = read_block_head_config(path, target.config(), kind);
  const ModelConfig& config = parts.config.layers;
  parts.target = &target;
  parts.source = open_safetensors_directory(path);
  WeightLoader loader(*parts.source, weight_options);
  const std::string prefix = loader.has("model.fc.weight") ? "model." : "";
  const auto n_features = static_cast<int>(parts.config.feature_layers.size());
  const std::string embedding = prefix + "embed_tokens.weight";
  const std::string output = "lm_head.weight";
  const bool own_embedding = parts.config.own_matrices && loader.has(embedding);
  const bool own_output = parts.config.own_matrices && loader.has(output);
  std::vector<TokenId> vocabulary;
  if (own_output || kind == BlockHeadKind::dspark) {
    vocabulary = read_draft_vocabulary(*parts.source, config.vocabulary_size, kOperation);
  }
  struct Weights {
    Linear fc;
    Norm state_norm;
    std::vector<DecoderLayer> layers;
    Norm final_norm;
    Linear output;
    MarkovHead::Parts markov;
  };
  Weights weights = loader.run([&](WeightLoader& walk) {
    Weights read{.fc = walk.linear(prefix + "fc", config.dim, n_features * config.dim, Bias::never),
                 .state_norm = norm_of(walk, prefix + "hidden_norm.weight", config),
                 .layers = {},
                 .final_norm = norm_of(walk, prefix + "norm.weight", config),
                 .output = {},
                 .markov = {}};
    for (std::size_t i = 0; i < parts.config.attention.size(); ++i) {
      read.layers.push_back(
          load_layer(walk, parts.config, fmt::format("{}layers.{}.", prefix, i), i));
    }
    if (own_output) {
      read.output =
          walk.linear("lm_head", static_cast<int>(vocabulary.size()), config.dim, Bias::never);
    }
    if (kind == BlockHeadKind::dspark) {
      read.markov = load_markov(walk, parts.config, prefix, static_cast<int>(vocabulary.size()));
    }
    // Copies of the target's matrices, and tables of ids.
    for (const std::string& name : {embedding, output, std::string("d2t"), std::string("t2d")}) {
      walk.ignore(name);
    }
    walk.require_all_read_below("");
    return read;
  });
  parts.fc = std::move(weights.fc);
  parts.state_norm = std::move(weights.state_norm);
  parts.layers = std::move(weights.layers);
  parts.final_norm = std::move(weights.final_norm);
  if (own_embedding) {
    parts.embedding = &loader.tensor(embedding, {config.vocabulary_size, config.dim});
  }
  parts.machine = {.table = weight_options.table,
                   .kv = kv_kind(options, loader.all_f32()),
                   .max_cache_bytes = max_cache_bytes(options),
                   .n_threads = weight_options.n_threads};
  if (kind == BlockHeadKind::dspark) {
    weights.markov.vocabulary = vocabulary;
    parts.markov = std::make_unique<MarkovHead>(std::move(weights.markov), parts.machine);
  }
  if (own_output) {
    parts.own_output = BlockHead::OwnOutput{.head = std::move(weights.output),
                                            .vocabulary = std::move(vocabulary)};
  } else {
    parts.shared_output.emplace(target, weight_options);
  }
  return std::make_unique<BlockHead>(std::move(parts));
}

}  // namespace outrider
