// SPDX-License-Identifier: Apache-2.0
// outrider train dflash and dspark: heads that draft a block in one pass.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/trainer/head_flags.h"
#include "apps/trainer/train_commands.h"
#include "train/objectives/block_head.h"

namespace outrider::cli {
namespace {

using train::BlockHeadOptions;

struct BlockFlags {
  HeadFlags head;
  BlockHeadKind kind = BlockHeadKind::dflash;
  int layers = 5;
  int block = 16;
  int anchors = 32;
  int mask = -1;  // -1: block_mask_of() chooses
  std::string weights = "decay";
  double gamma = 7;
  std::string markov = "vanilla";
  int rank = 256;
};

// The end-of-text token: no block begins with it in use, and its embedding is trained.
TokenId block_mask_of(const BlockFlags& flags, const ModelConfig& target) {
  if (flags.mask >= 0) return flags.mask;
  return target.end_tokens.empty() ? 0 : target.end_tokens.front();
}

int run_block(const BlockFlags& flags) {
  const bool is_dspark = flags.kind == BlockHeadKind::dspark;
  const train::HeadRun run = head_run_of(flags.head);
  const ModelConfig& target = run.target->config();
  BlockHeadOptions options{.run = run,
                           .kind = flags.kind,
                           .n_layers = flags.layers,
                           .n_slots = flags.block,
                           .n_anchors = flags.anchors,
                           .mask = block_mask_of(flags, target),
                           .weights = flags.weights == "decay" ? BlockHeadOptions::Weights::decay
                                                               : BlockHeadOptions::Weights::d_pace,
                           .gamma = flags.gamma,
                           .markov_rank = flags.rank};
  train::RunSettings settings = settings_of(flags.head, run);
  settings.insert(settings.begin(), {{"command", is_dspark ? "dspark" : "dflash"},
                                     {"layers", fmt::format("{}", flags.layers)},
                                     {"block", fmt::format("{}", flags.block)},
                                     {"anchors", fmt::format("{}", flags.anchors)},
                                     {"mask-token", fmt::format("{}", options.mask)},
                                     {"weights", flags.weights},
                                     {"gamma", fmt::format("{}", flags.gamma)}});
  if (is_dspark) {
    options.markov = train::markov_form_named(flags.markov);
    settings.insert(settings.end(),
                    {{"markov", flags.markov}, {"rank", fmt::format("{}", flags.rank)}});
  }
  const auto objective = train::make_block_head(options);
  return run_head(*objective, flags.head, run, std::move(settings),
                  static_cast<int>(train::block_feature_layers(target.n_layers).size()));
}

// The flags of both commands.
void add_block_flags(CLI::App& command, BlockFlags& flags) {
  constexpr const char* kHead = "Head";
  add_integer(command, "--layers", flags.layers, 1,
              fmt::format("Decoder layers, each of the target's shape (default: {})", flags.layers))
      ->group(kHead);
  add_integer(
      command, "--block", flags.block, 2,
      fmt::format("Places of a block: the newest token and masks (default: {})", flags.block))
      ->group(kHead);
  add_integer(command, "--mask-token", flags.mask, 0,
              "What the places behind the newest token read (default: the target's end token)")
      ->group(kHead);
  constexpr const char* kLoss = "Loss";
  add_integer(
      command, "--anchors", flags.anchors, 1,
      fmt::format("Blocks drawn from each sequence of a batch (default: {})", flags.anchors))
      ->group(kLoss);
  add_choice(command, "--weights", flags.weights, {"decay", "d-pace"},
             "How much the places of a block count (default: decay). Less the further on they are, "
             "or by what getting them right adds to the accepted length")
      ->group(kLoss);
  add_real(command, "--gamma", flags.gamma,
           {0, false, std::numeric_limits<double>::infinity(), false, "a number above 0"},
           fmt::format("decay: the kth drafted place counts exp(-(k - 1) / gamma) (default: {})",
                       flags.gamma))
      ->group(kLoss);
  add_head_flags(command, flags.head);
  show_usual(command, {"--layers", "--block", "--weights"});
}

std::shared_ptr<BlockFlags> block_flags(BlockHeadKind kind) {
  auto flags = std::make_shared<BlockFlags>();
  flags->kind = kind;
  // The published recipes, for targets of billions of parameters, except for the batch size.
  flags->head.run.learning_rate = 6e-4;
  flags->head.run.weight_decay = 0;
  flags->head.run.batch = 4;
  return flags;
}

}  // namespace

CLI::App* add_train_dflash(CLI::App& program, Run& run) {
  const auto flags = block_flags(BlockHeadKind::dflash);
  CLI::App* command = program.add_subcommand(
      "dflash", "Train a DFlash head: a few layers that draft a block of tokens in one pass");
  add_block_flags(*command, *flags);
  command->footer(
      "Examples:\n"
      "  outrider train dflash --target stories260K --text stories.txt --separator "
      "\"<|endoftext|>\" --layers 1 --block 8 --gamma 4 --learning-rate 2e-3 --steps 2000 "
      "--out head\n"
      "  outrider train dflash ... --data generated --weights d-pace\n"
      "  outrider generate --model stories260K --drafter dflash:head --prompt \"Once\"\n");
  run = [flags] { return run_block(*flags); };
  return command;
}

CLI::App* add_train_dspark(CLI::App& program, Run& run) {
  const auto flags = block_flags(BlockHeadKind::dspark);
  flags->block = 7;
  flags->gamma = 4;
  CLI::App* command = program.add_subcommand(
      "dspark",
      "Train a DSpark head: DFlash's layers, a Markov head that makes the tokens of a block follow "
      "one another, and an estimate of which will be accepted");
  constexpr const char* kMarkov = "Markov head";
  add_block_flags(*command, *flags);
  add_choice(*command, "--markov", flags->markov, {"vanilla", "gated", "rnn"},
             "What corrects a place of a block (default: vanilla). The token before it alone, that "
             "token gated by what the place gives, or a recurrent state along the block")
      ->group(kMarkov);
  add_integer(*command, "--rank", flags->rank, 1,
              fmt::format("Of its matrices, vocabulary times rank each (default: {})", flags->rank))
      ->group(kMarkov);
  show_usual(*command, {"--markov", "--rank"});
  command->footer(
      "Examples:\n"
      "  outrider train dspark --target stories260K --text stories.txt --separator "
      "\"<|endoftext|>\" --layers 1 --rank 32 --learning-rate 2e-3 --steps 2000 --out head\n"
      "  outrider train dspark ... --markov gated --data generated --temperature 1\n"
      "  outrider generate --model stories260K --drafter dspark:head --prompt \"Once\"\n");
  run = [flags] { return run_block(*flags); };
  return command;
}

}  // namespace outrider::cli
