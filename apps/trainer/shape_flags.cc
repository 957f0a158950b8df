// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/shape_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

constexpr const char* kShape = "Shape of the model";
constexpr int kDefaultContext = 2048;

}  // namespace

void add_shape_flags(CLI::App& command, ShapeFlags& flags) {
  add_integer(command, "--layers", flags.layers, 1,
              fmt::format("Decoder layers (default: {})", flags.layers))
      ->group(kShape);
  add_integer(command, "--dim", flags.dim, 2, fmt::format("Width (default: {})", flags.dim))
      ->group(kShape);
  add_integer(command, "--heads", flags.heads, 1, "Attention heads (default: dim / 64, at least 1)")
      ->group(kShape);
  add_integer(command, "--kv-heads", flags.kv_heads, 1,
              "Heads of keys and values (default: as many as heads)")
      ->group(kShape);
  add_integer(command, "--hidden", flags.hidden, 1,
              "Width of the feed-forward layer (default: 8/3 of dim, a multiple of 32)")
      ->group(kShape);
  add_integer(command, "--context", flags.context, 2,
              fmt::format("Longest text the model is for (default: {})", kDefaultContext))
      ->group(kShape);
  add_real(command, "--rope-theta", flags.rope_theta,
           {0, false, std::numeric_limits<double>::infinity(), false, "a number above 0"},
           "Base of the rotary positions (default: 10000)")
      ->group(kShape);
  command.add_flag("--untied", flags.untied, "An output matrix apart from the embedding")
      ->group(kShape);
  show_usual(command, {"--layers", "--dim", "--heads", "--context"});
}

ModelConfig config_of(const ShapeFlags& flags, const Tokenizer& tokenizer) {
  constexpr const char* kOperation = "read flags";
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = tokenizer.vocabulary_size();
  config.context_length = flags.context > 0 ? flags.context : kDefaultContext;
  config.n_layers = flags.layers;
  config.dim = flags.dim;
  config.n_heads = flags.heads > 0 ? flags.heads : std::max(1, flags.dim / 64);
  config.n_kv_heads = flags.kv_heads > 0 ? flags.kv_heads : config.n_heads;
  if (flags.dim % config.n_heads != 0 || flags.dim / config.n_heads % 2 != 0) {
    throw UsageError(kOperation, "heads", fmt::format("heads of an even width in {}", flags.dim),
                     fmt::format("{} heads", config.n_heads));
  }
  if (config.n_heads % config.n_kv_heads != 0) {
    throw UsageError(kOperation, "kv-heads", fmt::format("a divisor of {} heads", config.n_heads),
                     fmt::format("{}", config.n_kv_heads));
  }
  config.head_dim = flags.dim / config.n_heads;
  config.hidden_dim = flags.hidden > 0 ? flags.hidden : (flags.dim * 8 / 3 + 31) / 32 * 32;
  config.rope.theta = flags.rope_theta;
  config.tied_head = !flags.untied;
  config.bos_token = tokenizer.bos_token();
  if (tokenizer.eos_token() != kNoToken) config.end_tokens = {tokenizer.eos_token()};
  check_config(config, kOperation, "shape");
  return config;
}

train::RunSettings settings_of(const ShapeFlags& flags) {
  return {{"layers", fmt::format("{}", flags.layers)},
          {"dim", fmt::format("{}", flags.dim)},
          {"heads", fmt::format("{}", flags.heads)},
          {"kv-heads", fmt::format("{}", flags.kv_heads)},
          {"hidden", fmt::format("{}", flags.hidden)},
          {"context", fmt::format("{}", flags.context)},
          {"rope-theta", fmt::format("{}", flags.rope_theta)},
          {"untied", flags.untied ? "yes" : "no"}};
}

}  // namespace outrider::cli
