// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/seq2seq_shape.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/flag_values.h"
#include "apps/cli/warnings.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct DefaultShape {
  int layers = 4;
  int dim = 64;
  int heads = 4;
  int head_dim = 32;
  int hidden = 256;
};
constexpr DefaultShape kDefaultShape;

// The padding of a batch's shorter texts, which also precedes every answer: if each byte has a
// token, no text contains it.
TokenId padding_of(const Tokenizer& tokenizer) {
  const auto named = nlohmann::json::parse(tokenizer.special_tokens());
  for (const char* name : {"pad_token", "unk_token"}) {
    if (!named.contains(name) || !named[name].is_string()) continue;
    const std::optional<TokenId> id = tokenizer.find(named[name].get<std::string>());
    if (id) return *id;
  }
  if (tokenizer.bos_token() != kNoToken) return tokenizer.bos_token();
  throw Error("train seq2seq", "tokenizer",
              "one that names a token for padding (pad_token, unk_token or bos_token)", "none");
}

// The config.json of a model with this tokenizer's tokens. Some models have more rows than tokens.
train::T5Config read_model_of(const std::string& directory, const Tokenizer& tokenizer) {
  const train::T5Config config = train::read_t5_config(directory);
  if (config.vocabulary_size < tokenizer.vocabulary_size()) {
    throw Error("train seq2seq", fmt::format("vocab_size of {}", directory),
                fmt::format("at least {}, the tokenizer's tokens", tokenizer.vocabulary_size()),
                fmt::format("{}", config.vocabulary_size));
  }
  // (train::read_pairs() refuses pairs if the tokenizer names no end token.)
  if (tokenizer.eos_token() != kNoToken && config.end != tokenizer.eos_token()) {
    throw Error("train seq2seq", fmt::format("eos_token_id of {}", directory),
                fmt::format("{}, the tokenizer's end token", tokenizer.eos_token()),
                fmt::format("{}", config.end));
  }
  return config;
}

void require_agreement(const Seq2SeqShapeFlags& flags, const train::T5Config& config) {
  const auto require = [&flags](const char* name, int given, int of_model) {
    if (given == 0 || given == of_model) return;
    throw UsageError("read flags", name,
                     fmt::format("{}, as the model of --init has ({})", of_model, flags.init),
                     fmt::format("{}", given));
  };
  require("layers", flags.layers, config.n_encoder_layers);
  require("decoder-layers", flags.decoder_layers > 0 ? flags.decoder_layers : flags.layers,
          config.n_decoder_layers);
  require("dim", flags.dim, config.dim);
  require("heads", flags.heads, config.n_heads);
  require("head-dim", flags.head_dim, config.head_dim);
  require("hidden", flags.hidden, config.hidden_dim);
}

}  // namespace

void add_seq2seq_shape(CLI::App& command, Seq2SeqShapeFlags& flags) {
  constexpr const char* kGroup = "Shape of the model (T5 v1.1)";
  const auto add = [&](const char* name, int& value, int least, const char* words, int standard) {
    add_integer(command, name, value, least, fmt::format("{} (default: {})", words, standard))
        ->group(kGroup);
  };
  add("--layers", flags.layers, 1, "Layers of the encoder, and of the decoder",
      kDefaultShape.layers);
  add_integer(command, "--decoder-layers", flags.decoder_layers, 1,
              "Layers of the decoder (default: as many as --layers)")
      ->group(kGroup);
  add("--dim", flags.dim, 2, "Width", kDefaultShape.dim);
  add("--heads", flags.heads, 1, "Attention heads", kDefaultShape.heads);
  add("--head-dim", flags.head_dim, 1, "Width of a head; all together need not be --dim",
      kDefaultShape.head_dim);
  add("--hidden", flags.hidden, 1, "Width of the feed-forward layer", kDefaultShape.hidden);
  add_path(command, "--init", flags.init, "DIR",
           "Start from the weights of this model instead of random ones. Shape and special tokens "
           "are its config.json's, and flags of the shape may say no other")
      ->group(kGroup);
}

train::T5Config config_of(const Seq2SeqShapeFlags& flags, const std::string& teacher,
                          const Tokenizer& tokenizer) {
  train::T5Config config;
  if (teacher.empty()) {
    config.vocabulary_size = tokenizer.vocabulary_size();
    config.end = tokenizer.eos_token();
  } else {
    // A student has its teacher's rows, including those without a token.
    const train::T5Config its = read_model_of(teacher, tokenizer);
    config.vocabulary_size = its.vocabulary_size;
    config.padding = its.padding;
    config.start = its.start;
    config.end = its.end;
  }
  if (!flags.init.empty()) {
    config = read_model_of(flags.init, tokenizer);
    require_agreement(flags, config);
    return config;
  }
  if (teacher.empty()) config.start = config.padding = padding_of(tokenizer);
  const auto or_default = [](int given, int standard) { return given > 0 ? given : standard; };
  config.dim = or_default(flags.dim, kDefaultShape.dim);
  config.n_heads = or_default(flags.heads, kDefaultShape.heads);
  config.head_dim = or_default(flags.head_dim, kDefaultShape.head_dim);
  config.hidden_dim = or_default(flags.hidden, kDefaultShape.hidden);
  config.n_encoder_layers = or_default(flags.layers, kDefaultShape.layers);
  config.n_decoder_layers = or_default(flags.decoder_layers, config.n_encoder_layers);
  return config;
}

std::vector<TokenId> rows_without_token(const Tokenizer& tokenizer, int n_rows) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < n_rows; ++id) {
    if (!tokenizer.has(id)) ids.push_back(id);
  }
  return ids;
}

}  // namespace outrider::cli
