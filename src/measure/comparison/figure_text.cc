// SPDX-License-Identifier: Apache-2.0
#include "measure/comparison/figure_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

namespace outrider {
namespace {

constexpr double kGiga = 1e9;

// The method's name, which holds specs (base/spec.h), without the folders of paths:
// "model:/a/b/c.gguf@auto" -> "model:c.gguf@auto".
std::string without_folders(std::string_view name) {
  constexpr std::string_view kPunctuation = ":,+@=";  // after each of these a path may begin
  std::string label;
  std::size_t begin = 0;  // the beginning of the part of `label` that a slash would remove
  for (std::size_t index = 0; index < name.size(); ++index) {
    const char c = name[index];
    // A slash at the end of a path is part of the folder's name.
    const bool ends_part =
        index + 1 == name.size() || kPunctuation.find(name[index + 1]) != std::string_view::npos;
    if (c == '/' && !ends_part) {
      label.resize(begin);
      continue;
    }
    if (c == '/') continue;
    label += c;
    if (kPunctuation.find(c) != std::string_view::npos) begin = label.size();
  }
  return label;
}

}  // namespace

std::string show_value(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : kNoFigure;
}

std::string show_estimate(const Estimate& estimate, int digits) {
  const std::string value = show_value(estimate.value, digits);
  if (!std::isfinite(estimate.low) || !std::isfinite(estimate.high)) return value;
  return fmt::format("{} ({} to {})", value, show_value(estimate.low, digits),
                     show_value(estimate.high, digits));
}

std::string show_share(const Estimate& share) {
  constexpr double kPercent = 100;
  if (!std::isfinite(share.value)) return kNoFigure;
  std::string text = show_value(share.value * kPercent, 0) + "%";
  if (std::isfinite(share.low) && std::isfinite(share.high)) {
    text += fmt::format(" ({} to {})", show_value(share.low * kPercent, 0),
                        show_value(share.high * kPercent, 0));
  }
  return text;
}

std::string show_length(int length) { return length < 0 ? kNoFigure : fmt::format("{}", length); }

std::string show_same_texts(const MethodFigures& figures) {
  if (!figures.promises_same_text) return "not comparable";
  return fmt::format("{} of {}", figures.n_same, figures.n_prompts);
}

std::string show_category(const std::string& category) {
  return category.empty() ? "all" : category;
}

std::vector<std::string> method_labels(const CompareOptions& options) {
  std::vector<std::string> labels;
  labels.reserve(options.methods.size());
  std::set<std::string> different;
  for (const ComparedMethod& method : options.methods) {
    labels.push_back(without_folders(method.name));
    different.insert(labels.back());
  }
  if (different.size() == labels.size()) return labels;
  for (std::size_t method = 0; method < labels.size(); ++method) {
    labels[method] = options.methods[method].name;
  }
  return labels;
}

std::string counted(std::size_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::vector<std::string> comparison_facts(const MethodComparison& comparison) {
  const CompareOptions& options = comparison.options;
  const ModelSummary& model = comparison.model;
  const MachineDescription& machine = comparison.machine;
  std::vector<std::string> facts;
  const std::string threads =
      model.n_ranks() == 1 ? counted(static_cast<std::size_t>(model.threads), "thread")
                           : fmt::format("{} ranks of {} threads (bytes are those of rank 0)",
                                         model.n_ranks(), fmt::join(model.rank_threads, " and "));
  facts.push_back(fmt::format(
      "Model {}: weights {} ({:.2f} GB), cache {}, kernels {}, {}.",
      comparison.files.empty() ? std::string() : comparison.files.front().path, model.weights,
      static_cast<double>(model.weight_bytes) / kGiga, model.kv, model.kernels, threads));
  facts.push_back(fmt::format("Machine: {}, {}, {:.0f} GB of memory, {}. Outrider {}.",
                              machine.processor.empty() ? "unknown processor" : machine.processor,
                              counted(static_cast<std::size_t>(machine.n_processors), "processor"),
                              static_cast<double>(machine.memory_bytes) / kGiga, machine.system,
                              comparison.version));
  facts.push_back(fmt::format(
      "{} as {}, at most {} tokens a turn, temperature{} {}, {} of each, seed {}.",
      counted(options.prompts.size(), "prompt"),
      comparison.is_chat ? "conversations by the model's chat template" : "texts to go on with",
      options.max_tokens, options.temperatures.size() == 1 ? "" : "s",
      fmt::join(options.temperatures, " and "),
      counted(static_cast<std::size_t>(options.repeats), "round"), options.seed));
  if (comparison.passes) {
    // On a quiet machine the times of a pass lie within a tenth of their median
    // (docs/performance.md). If the longest takes 1.5 times the shortest, other programs must have
    // run.
    constexpr double kDisturbed = 1.5;
    constexpr double kMilli = 1e3;
    const Spread& pass = comparison.passes->passes.front().seconds;  // of one row (PassCosts)
    if (pass.max > kDisturbed * pass.min) {
      facts.push_back(fmt::format(
          "The machine was not quiet: a pass of one row took {:.1f} to {:.1f} ms. Seconds "
          "and bounds mean little.",
          pass.min * kMilli, pass.max * kMilli));
    }
  }
  if (!comparison.is_complete()) {
    const std::size_t n_all = options.prompts.size() * options.temperatures.size() *
                              static_cast<std::size_t>(options.repeats);
    facts.push_back(fmt::format("The run was cut off: {} of {} are here.", comparison.rounds.size(),
                                counted(n_all, "round")));
  }
  return facts;
}

std::vector<std::string> bound_formulas() {
  // A literal of several parts stands in parentheses: clang-tidy would suspect a missing comma
  // (bugprone-suspicious-missing-comma).
  return {
      ("c(n): a pass of the target over n rows divided by one over a single row, measured on this "
       "machine. d: a drafted level divided by a pass of plain decoding."),
      ("Round r drafted n_r tokens, of which a_r stood; it gave a_r + 1 tokens. Judging and all "
       "else is free in the bounds."),
      ("oracle length = sum (a_r + 1) / sum (c(a_r + 1) + a_r d): each round drafts exactly what "
       "was accepted."),
      "perfect drafter = max over L of (L + 1) / (c(L + 1) + L d): all that is drafted stands.",
      "free drafting = sum (a_r + 1) / sum c(n_r + 1): the drafts as they were, with d = 0.",
      "of oracle = measured speed-up / oracle length."};
}

}  // namespace outrider
