// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/bench_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "apps/bench/bench_progress.h"
#include "apps/bench/bench_text.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"

namespace outrider::cli {
namespace {

constexpr int kCostCells = 32;  // characters of the widest bar

// The object that --json prints. Durations are in seconds.
std::string to_json(const PassCosts& costs, const Model& model, const PassesFlags& flags) {
  Json object = describe(model);
  object["context"] = flags.options.context;
  object["nodes"] = flags.nodes;
  object["rounds"] = flags.options.rounds;
  Json passes = Json::array();
  for (const PassCost& pass : costs.passes) {
    Json entry;
    entry["rows"] = pass.rows;
    put_seconds(entry, pass.seconds);
    entry["ratio"] = pass.ratio;
    if (pass.experts > 0) entry["experts_per_layer"] = pass.experts;
    passes.push_back(std::move(entry));
  }
  object["passes"] = std::move(passes);
  if (costs.prefill) {
    Json prefill;
    prefill["tokens"] = costs.prefill->tokens;
    put_seconds(prefill, costs.prefill->seconds);
    prefill["tokens_per_second"] = costs.prefill->tokens_per_second();
    object["prefill"] = std::move(prefill);
  }
  // The measured bandwidth is that of the processor's memory. A model on another device does not
  // read it.
  if (!model.summary().device.empty()) return dump(object);
  const Spread& bandwidth = costs.bandwidth_bytes_per_second;
  object["bandwidth_bytes_per_second"] = bandwidth.median;
  object["bandwidth_min_bytes_per_second"] = bandwidth.min;
  object["bandwidth_max_bytes_per_second"] = bandwidth.max;
  object["one_stream_bytes_per_second"] = costs.one_stream_bytes_per_second.median;
  object["bandwidth_share"] = costs.bandwidth_share;
  return dump(object);
}

std::string range_of(const Spread& seconds) {  // "74.1 ms to 80.2 ms"
  return fmt::format("{} to {}", show_duration(seconds.min), show_duration(seconds.max));
}

// The table for people: one line for each number of rows, with a bar as long as its cost.
std::string to_table(const PassCosts& costs, const Model& model, const PassOptions& options) {
  std::string text = describe_line(model, options.context) + "\n";
  const bool has_experts = costs.passes.front().experts > 0;
  text +=
      fmt::format("{:>5}  {:>9}  {:>7}  {:<{}}  {}{}\n", "rows", "a pass", "cost", "", kCostCells,
                  has_experts ? "experts  " : "", fmt::format("in {} rounds", options.rounds));
  double most = 0;
  for (const PassCost& pass : costs.passes) most = std::max(most, pass.ratio);
  for (const PassCost& pass : costs.passes) {
    const int filled = std::max(1, static_cast<int>(std::lround(pass.ratio / most * kCostCells)));
    text += fmt::format(
        "{:>5}  {:>9}  {:>6.2f}x  {:=<{}}{:{}}  {}{}\n", pass.rows,
        show_duration(pass.seconds.median), pass.ratio, "", filled, "", kCostCells - filled,
        has_experts ? fmt::format("{:>7.1f}  ", pass.experts) : "", range_of(pass.seconds));
  }
  if (costs.prefill) {
    text += fmt::format("\nprompt of {} tokens: {}, {:.1f} tokens/s ({})\n", costs.prefill->tokens,
                        show_duration(costs.prefill->seconds.median),
                        costs.prefill->tokens_per_second(), range_of(costs.prefill->seconds));
  }
  if (!model.summary().device.empty()) return text;
  const Spread& bandwidth = costs.bandwidth_bytes_per_second;
  text += fmt::format(
      "\nmemory reads at {:.1f} GB/s ({:.1f} to {:.1f}; in one stream a thread {:.1f}); one row "
      "reaches {:.0f}%\n",
      bandwidth.median * 1e-9, bandwidth.min * 1e-9, bandwidth.max * 1e-9,
      costs.one_stream_bytes_per_second.median * 1e-9, costs.bandwidth_share * 100);
  return text;
}

}  // namespace

void add_passes_flags(CLI::App& app, PassesFlags& flags) {
  constexpr const char* kGroup = "What a pass costs";
  PassOptions& options = flags.options;
  app.add_flag(
         "--passes", flags.chosen,
         "Time passes of the model over drafts of different sizes. Also says what memory they take")
      ->group(kGroup);
  add_integers(
      app, "--rows", options.rows, 1,
      "Rows of a pass (default: 1,2,4,8,16,32,64). The draft and its root, ascending up to 256")
      ->group(kGroup);
  add_choice(app, "--nodes", flags.nodes, {"chain", "star"},
             "How these hang together: each behind the one before, or all behind the first "
             "(default: chain)")
      ->group(kGroup);
  add_integer(app, "--prefill", options.prefill, 1, "Also time a prompt of N tokens")
      ->group(kGroup);
}

int run_passes(const ModelFlags& model_flags, const PassesFlags& flags, bool json) {
  PassOptions options = flags.options;
  options.nodes = flags.nodes == "star" ? PassNodes::star : PassNodes::chain;
  check_passes(options);

  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  PassCosts costs;
  {
    BenchProgress progress(interrupt);
    options.progress = [&progress](std::string_view step, double share) {
      progress.show(step, share);
    };
    costs = measure_passes(*model, options);
  }
  interrupt.throw_if_raised();
  Output output;
  output.write(json ? to_json(costs, *model, flags) : to_table(costs, *model, options));
  output.check();
  return 0;
}

}  // namespace outrider::cli
