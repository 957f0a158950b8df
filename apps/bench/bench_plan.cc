// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/bench/bench_text.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/terminal.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

// A medium context.
constexpr int kDefaultPlanContext = 1024;

struct PlannedPair {
  ModelShape target;
  std::optional<ModelShape> drafter;
};

struct PlannedOnDevice {
  Device device;
  SpeedPlan plan;
};

// "auto", "chain:5" or "chain:length=5"; -1: auto.
int planned_length(const std::vector<std::string>& trees) {
  if (trees.empty()) return -1;
  std::string_view tree = trees.front();
  const auto fail = [&] {
    throw UsageError("read flags", "--tree",
                     fmt::format("one of auto, chain:N, N from 0 to {}", kLongestPlannedChain),
                     trees.size() > 1 ? "several" : trees.front());
  };
  if (trees.size() > 1) fail();
  if (tree == "auto") return -1;
  for (const std::string_view prefix : {"chain:length=", "chain:"}) {
    if (!tree.starts_with(prefix)) continue;
    tree.remove_prefix(prefix.size());
    int length = 0;
    const auto [end, error] = std::from_chars(tree.data(), tree.data() + tree.size(), length);
    const bool is_whole = error == std::errc() && end == tree.data() + tree.size();
    if (!is_whole || length < 0 || length > kLongestPlannedChain) fail();
    return length;
  }
  fail();
  return -1;
}

// "TARGET" or "TARGET,DRAFTER".
PlannedPair planned_pair(const std::string& shapes) {
  const std::size_t comma = shapes.find(',');
  const bool has_drafter = comma != std::string::npos;
  const std::string target = shapes.substr(0, comma);
  const std::string drafter = has_drafter ? shapes.substr(comma + 1) : "";
  const bool is_pair = has_drafter && !drafter.empty() && drafter.find(',') == std::string::npos;
  if (target.empty() || (has_drafter && !is_pair)) {
    throw UsageError("read flags", "--model-shape",
                     "a target and perhaps, behind a comma, a drafter",
                     shapes.empty() ? "none" : shapes);
  }
  PlannedPair pair;
  pair.target = find_shape(target);
  if (has_drafter) pair.drafter = find_shape(drafter);
  return pair;
}

// The planned weights of all products.
struct PlannedWeights {
  std::string types;
  double n_bytes = 0;
};

PlannedWeights planned_weights(const ModelShape& shape, const std::string& asked) {
  PlannedWeights weights;
  if (asked.empty() && !shape.stored.empty()) {
    for (const WeightShare& share : shape.stored) {
      weights.n_bytes += share.n_bytes;
      weights.types += (weights.types.empty() ? "" : " ") + share.type;
    }
    return weights;
  }
  weights.types = asked.empty() ? "bf16" : asked;
  weights.n_bytes = (shape.attention_weights() + shape.mlp_weights() + shape.head_weights()) *
                    bytes_per_weight(weights.types);
  return weights;
}

std::string show_weights(const ModelShape& shape, const std::string& asked) {
  const PlannedWeights weights = planned_weights(shape, asked);
  return fmt::format("{}: {:.3g} billion parameters, products of {}, {:.3g} GB", shape.name,
                     shape.n_parameters() * 1e-9, weights.types, weights.n_bytes * 1e-9);
}

bool is_chain(const PlannedRound& round) {
  return std::all_of(round.level_sizes.begin(), round.level_sizes.end(),
                     [](int size) { return size == 1; });
}

std::string show_shape_of_draft(const PlannedRound& round) {
  if (round.n_nodes == 0) return "none pays";
  return is_chain(round) ? fmt::format("{}", round.n_nodes)
                         : fmt::format("{} in {}", round.n_nodes, round.level_sizes.size());
}

// The formula with the first device's numbers.
std::string show_formula(const PlannedPair& pair, const PlannedOnDevice& first,
                         const SpeedPlanOptions& options) {
  const PlannedRound& round = first.plan.asked;
  const Device& device = first.device;
  const PassSeconds wide = pass_seconds(pair.target,
                                        {.weights = options.weights,
                                         .rows = round.n_nodes + 1,
                                         .context = options.context,
                                         .batch = options.batch},
                                        device);
  const auto shown = [](double seconds) { return show_duration(seconds); };
  std::string text = fmt::format(
      "\nOn {}, {} ({:.4g} GB/s, Tops/s: bf16 {:.4g}, fp8 {}, int8 {:.4g}):\n", device.name,
      device.source, device.bandwidth_bytes_per_second * 1e-9, device.bf16_ops_per_second * 1e-12,
      device.fp8_ops_per_second > 0 ? fmt::format("{:.4g}", device.fp8_ops_per_second * 1e-12)
                                    : "none",
      device.int8_ops_per_second * 1e-12);
  text += fmt::format(
      "  c(n) = products max(bytes/bandwidth, 2 weights n/peak) + attention max(bytes, ops)\n"
      "         + rows + logits + fixed\n"
      "  c(1) = {} + {} + {} + {} + {} = {}\n",
      shown(first.plan.plain.products), shown(first.plan.plain.attention),
      shown(first.plan.plain.rows), shown(first.plan.plain.logits),
      device.fixed_seconds > 0 ? shown(device.fixed_seconds) : "? (fixed: not known)",
      shown(first.plan.plain.total()));
  text += fmt::format("  c({}) = {} + {} + {} + {} = {}; {:.3g} GB of weights, {:.3g} Tops\n",
                      round.n_nodes + 1, shown(wide.products), shown(wide.attention),
                      shown(wide.rows), shown(wide.logits), shown(wide.total()),
                      wide.weight_bytes * 1e-9, wide.product_ops * 1e-12);
  const double share = options.acceptance.front();
  if (!is_chain(round)) {
    text += fmt::format("  tau = {:.3f}, of the tree that {} shares by rank plan\n", round.tau,
                        options.acceptance.size());
  } else if (share == 1) {
    text += fmt::format("  tau = {} + 1, as every token stands\n", round.n_nodes);
  } else {
    text += fmt::format("  tau = (1 - {0:g}^{1}) / (1 - {0:g}) = {2:.3f}\n", share,
                        round.n_nodes + 1, round.tau);
  }
  text +=
      fmt::format("  speed-up = tau c(1) / (draft + c({})) = {:.3f} * {} / ({} + {}) = {:.2f}\n",
                  round.n_nodes + 1, round.tau, shown(first.plan.plain.total()),
                  shown(round.draft_seconds), shown(round.pass_seconds), round.speedup);
  if (pair.target.n_experts > 0) {
    const double n_rows = static_cast<double>(round.n_nodes + 1) * options.batch;
    text += fmt::format("  experts read = {0} (1 - (1 - {1}/{0})^{2:g}) = {3:.2f} of a layer\n",
                        pair.target.n_experts, pair.target.n_active, n_rows,
                        expected_experts(pair.target, n_rows));
  }
  return text;
}

std::string to_table(const PlannedPair& pair, const std::vector<PlannedOnDevice>& devices,
                     const SpeedPlanOptions& options) {
  std::string text = show_weights(pair.target, options.weights) + "\n";
  text += pair.drafter ? "drafted for by " + show_weights(*pair.drafter, options.weights) + "\n"
                       : "drafts that cost nothing (name a drafter behind a comma)\n";
  std::string shares;
  for (const double share : options.acceptance) {
    shares += fmt::format("{}{:g}", shares.empty() ? "" : ", ", share);
  }
  text += fmt::format("acceptance {}; context {}, batch {}; on paper, nothing was run\n\n", shares,
                      options.context, options.batch);
  text += fmt::format("{:<10}  {:>8}  {:>5}  {:>8}  {:>6}  {:>5}  {:>8}  {:>8}  {:>9}  {}\n",
                      "device", "c(1)", "rows", "c(rows)", "cost", "tau", "draft", "speed-up",
                      "best", "waits for");
  for (const PlannedOnDevice& one : devices) {
    const PlannedRound& round = one.plan.asked;
    const double plain = one.plan.plain.total();
    text += fmt::format(
        "{:<10}  {:>8}  {:>5}  {:>8}  {:>5.2f}x  {:>5.2f}  {:>8}  {:>7.2f}x  {:>9}  {}\n",
        one.device.name, show_duration(plain), round.n_nodes + 1, show_duration(round.pass_seconds),
        round.pass_seconds / plain, round.tau, show_duration(round.draft_seconds), round.speedup,
        show_shape_of_draft(one.plan.best), round.waits_for_memory ? "memory" : "arithmetic");
  }
  return text + show_formula(pair, devices.front(), options);
}

Json to_json(const ModelShape& shape, const std::string& asked_weights) {
  const PlannedWeights weights = planned_weights(shape, asked_weights);
  Json object;
  object["name"] = shape.name;
  object["weights"] = weights.types;
  object["weight_bytes"] = weights.n_bytes;
  object["parameters"] = shape.n_parameters();
  object["layers"] = shape.n_layers;
  object["dim"] = shape.dim;
  object["heads"] = shape.n_heads;
  object["kv_heads"] = shape.n_kv_heads;
  object["head_dim"] = shape.head_dim;
  object["hidden_dim"] = shape.hidden_dim;
  object["vocabulary"] = shape.vocabulary_size;
  object["experts"] = shape.n_experts;
  return object;
}

Json to_json(const PlannedRound& round) {
  Json object;
  object["nodes"] = round.n_nodes;
  object["level_sizes"] = round.level_sizes;
  object["tau"] = round.tau;
  object["draft_seconds"] = round.draft_seconds;
  object["pass_seconds"] = round.pass_seconds;
  object["waits_for"] = round.waits_for_memory ? "memory" : "arithmetic";
  object["speedup"] = round.speedup;
  return object;
}

std::string to_json(const PlannedPair& pair, const std::vector<PlannedOnDevice>& devices,
                    const SpeedPlanOptions& options) {
  Json object;
  object["target"] = to_json(pair.target, options.weights);
  object["drafter"] = pair.drafter ? to_json(*pair.drafter, options.weights) : Json(nullptr);
  object["acceptance"] = options.acceptance;
  object["context"] = options.context;
  object["batch"] = options.batch;
  object["devices"] = Json::array();
  for (const PlannedOnDevice& one : devices) {
    Json entry;
    entry["name"] = one.device.name;
    entry["source"] = one.device.source;
    entry["bandwidth_bytes_per_second"] = one.device.bandwidth_bytes_per_second;
    entry["bf16_ops_per_second"] = one.device.bf16_ops_per_second;
    entry["fp8_ops_per_second"] =
        one.device.fp8_ops_per_second > 0 ? Json(one.device.fp8_ops_per_second) : Json();
    entry["int8_ops_per_second"] = one.device.int8_ops_per_second;
    entry["fixed_seconds"] = one.device.fixed_seconds > 0 ? Json(one.device.fixed_seconds) : Json();
    const PassSeconds& plain = one.plan.plain;
    entry["plain"] = {{"seconds", plain.total()},
                      {"products", plain.products},
                      {"attention", plain.attention},
                      {"rows", plain.rows},
                      {"logits", plain.logits}};
    entry["asked"] = to_json(one.plan.asked);
    entry["best"] = to_json(one.plan.best);
    object["devices"].push_back(std::move(entry));
  }
  return dump(object);
}

}  // namespace

void add_plan_flags(CLI::App& app, PlanFlags& flags) {
  constexpr const char* kGroup = "On paper";
  app.add_flag("--plan", flags.chosen,
               "Predict what drafts gain on other devices. By the roofline of public shapes and "
               "data sheets; takes --weights (q4_k, q8_0, fp8, ...), --context (default: 1024) and "
               "--tree chain:N or auto (default)")
      ->group(kGroup);
  add_filled_text(app, "--model-shape", flags.shapes, "NAME[,NAME]", "a shape's name or a path",
                  "Target and drafter: shapes (llama-70b, qwen2.5-7b, ...) or paths")
      ->group(kGroup);
  add_filled_texts(
      app, "--device", flags.devices, "NAME,...", "a device's name",
      "With --plan, h200, h100, l4, ... (default: all). Else where passes run: a device "
      "that outrider devices lists (vulkan:0), or vulkan, the first that is no software "
      "(default: the processor)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kGroup);
  add_reals(app, "--acceptance", flags.acceptance,
            {.min = 0,
             .min_included = true,
             .max = 1,
             .max_included = true,
             .words = "a number in [0, 1]"},
            "The probability that a drafted token stands; several: by the rank of a child, for "
            "trees (default: 0.7)")
      ->group(kGroup);
  add_integer(app, "--batch", flags.batch, 1, "Texts in one pass (default: 1)")->group(kGroup);
  app.add_flag("--check", flags.checks,
               "With --plan and --model: measure this machine and set the formula beside passes of "
               "the model")
      ->group(kGroup);
}

int run_plan(const PlanFlags& flags, const PlanRun& run) {
  SpeedPlanOptions options;
  options.acceptance = flags.acceptance;
  options.length = planned_length(run.trees);
  options.weights = run.weights;
  options.context = run.says_context ? run.context : kDefaultPlanContext;
  options.batch = flags.batch;
  const PlannedPair pair = planned_pair(flags.shapes);
  std::vector<PlannedOnDevice> devices;
  for (const std::string& name : flags.devices.empty() ? known_devices() : flags.devices) {
    PlannedOnDevice& one = devices.emplace_back();
    one.device = find_device(name);
    one.plan =
        plan_speedup(pair.target, pair.drafter ? &*pair.drafter : nullptr, one.device, options);
  }
  Output output;
  output.write(run.json ? to_json(pair, devices, options) : to_table(pair, devices, options));
  output.check();
  return 0;
}

}  // namespace outrider::cli
