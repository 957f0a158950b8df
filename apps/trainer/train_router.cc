// SPDX-License-Identifier: Apache-2.0
// outrider train router: the learned deferral of a cascade.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/trainer/run_flags.h"
#include "apps/trainer/train_commands.h"
#include "base/files/atomic_file.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tokenizer/same_vocabulary.h"
#include "train/device.h"
#include "train/fit_router.h"

namespace outrider::cli {
namespace {

struct RouterFlags {
  std::string target;
  std::string drafter;
  TextFlags text;
  std::string out;
  std::optional<double> price;  // none: the balanced price
  int tokens = 100'000;
  int length = 256;
  int threads = 0;
};

// Sequences per pass: enough for wide products, few enough for two models' logits to fit in memory.
constexpr int kSequences = 4;

std::vector<train::RouterSample> collect(const RouterFlags& flags, const std::string& what,
                                         const std::vector<std::string>& files,
                                         train::Teacher& target, train::Teacher& drafter,
                                         const Tokenizer& tokenizer) {
  const auto batches = text_batches(files, flags.text, tokenizer,
                                    {.n_sequences = kSequences, .length = flags.length, .seed = 0});
  // No token is used twice.
  const std::int64_t tokens = std::min<std::int64_t>(flags.tokens, batches->n_tokens());
  const std::int64_t n_batches =
      std::max<std::int64_t>(1, tokens / (kSequences * std::int64_t{flags.length}));
  const bool shows = is_terminal(STDERR_FILENO);
  const Interrupt interrupt;
  std::int64_t n_done = 0;
  auto samples = train::collect_router_samples(target, drafter, *batches, 0, n_batches, [&] {
    interrupt.throw_if_raised();
    ++n_done;
    if (!shows) return;
    fmt::print(stderr, "\r\x1b[K{}: {} of {} tokens", what, n_done * kSequences * flags.length,
               n_batches * kSequences * flags.length);
    std::fflush(stderr);
  });
  if (shows) std::fputs("\r\x1b[K", stderr);
  return samples;
}

std::string row(const char* name, const train::RouterOutcome& outcome) {
  return fmt::format("  {:<16}{:>9.4f}{:>12.4f}{:>10.3f}\n", name, outcome.loss, outcome.rejection,
                     outcome.deferral_rate);
}

// Compares the router with the models that it chooses between.
std::string table(const std::vector<train::RouterSample>& samples, const RouterWeights& router) {
  RouterWeights never;
  never.threshold = 1;
  RouterWeights always;
  always.threshold = 0;
  return fmt::format("  {:<16}{:>9}{:>12}{:>10}\n", "", "loss", "rejections", "deferred") +
         row("drafter alone", judge_router(samples, never)) +
         row("router", judge_router(samples, router)) +
         row("target alone", judge_router(samples, always));
}

int run_router(const RouterFlags& flags) {
  if (flags.text.text.empty()) throw UsageError("read flags", "text", "at least one file", "none");
  const int n_threads = train::set_training_threads(flags.threads);
  std::vector<std::filesystem::path> read(flags.text.text.begin(), flags.text.text.end());
  read.insert(read.end(), flags.text.held_out.begin(), flags.text.held_out.end());
  add_files_of_model(flags.target, read);
  add_files_of_model(flags.drafter, read);
  require_not_read(flags.out, read);
  AtomicFile out(flags.out);  // opened first, so that an error shows before the work
  const auto tokenizer = load_tokenizer(flags.target);
  require_same_vocabulary(*tokenizer, *load_tokenizer(flags.drafter), "load drafter",
                          flags.drafter);
  train::Teacher target(flags.target, n_threads);
  train::Teacher drafter(flags.drafter, n_threads);
  const auto samples = collect(flags, "text", flags.text.text, target, drafter, *tokenizer);
  const double price = flags.price.value_or(train::balanced_price(samples));
  const RouterWeights router = train::fit_router(samples, price);

  nlohmann::ordered_json weights;
  for (std::size_t i = 0; i < kRouterFeatures.size(); ++i) {
    weights[std::string(kRouterFeatures[i])] = router.weights[i];
  }
  const nlohmann::ordered_json json = {{"format", "outrider-router"},
                                       {"version", 1},
                                       {"bias", router.bias},
                                       {"weights", weights},
                                       {"threshold", router.threshold}};
  out.write(json.dump(2) + "\n");
  out.commit();

  Output output;
  output.write(
      fmt::format("Price of a rejection: {:.3g} nats\nOn {} tokens of text it was "
                  "fitted to:\n{}",
                  price, samples.size(), table(samples, router)));
  if (!flags.text.held_out.empty()) {
    const auto held_out =
        collect(flags, "held out", flags.text.held_out, target, drafter, *tokenizer);
    output.write(
        fmt::format("On {} tokens held out:\n{}", held_out.size(), table(held_out, router)));
  }
  output.write(fmt::format("{}: written (--rule router:path={})\n", flags.out, flags.out));
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_train_router(CLI::App& program, Run& run) {
  auto flags = std::make_shared<RouterFlags>();
  CLI::App* command = program.add_subcommand(
      "router",
      "Fit the rule that decides where a cascade leaves the drafter's text to the target");
  constexpr const char* kData = "Data";
  add_path(*command, "--target", flags->target, "PATH",
           "The large model: a Hugging Face directory or a .gguf file")
      ->required()
      ->group(kData);
  add_path(*command, "--drafter", flags->drafter, "PATH", "The small one, of the same vocabulary")
      ->required()
      ->group(kData);
  add_text_flags(*command, flags->text, "");
  add_integer(*command, "--tokens", flags->tokens, 1,
              fmt::format("Tokens to look at (default: {})", flags->tokens))
      ->group(kData);
  add_integer(*command, "--length", flags->length, 2,
              fmt::format("Tokens read in one piece (default: {})", flags->length))
      ->group(kData);
  add_path(*command, "-o,--out", flags->out, "FILE", "The router, JSON")->required();
  add_real(*command, "--price", flags->price,
           {0, true, std::numeric_limits<double>::infinity(), false, "a number, 0 or more"},
           "Of a rejected token, in nats: the higher, the more is left to the drafter "
           "(default: that at which neither model alone costs less)");
  add_integer(*command, "--threads", flags->threads, 0,
              "Threads; 0 takes every processor (default: 0)");
  command->footer(
      "Examples:\n"
      "  outrider train router --target LARGE --drafter SMALL --text held.txt --out router.json\n"
      "  outrider generate --model LARGE --draft SMALL --rule router:path=router.json --prompt "
      "\"Once upon a time\"\n");
  run = [flags] { return run_router(*flags); };
  return command;
}

}  // namespace outrider::cli
