#include "bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "bench_text.h"
#include "flag_values.h"
#include "outrider/error.h"
#include "terminal.h"

namespace outrider::cli {
namespace {

// A middling text.
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

std::string show_weights(const ModelShape& shape, const std::string& weights) {
  const std::string type = weights.empty() ? "bf16" : weights;
  double n_bytes = (shape.attention_weights() + shape.mlp_weights() + shape.head_weights()) *
                   bytes_per_weight(type);
  std::string types = type;
  if (weights.empty() && !shape.stored.empty()) {
    n_bytes = 0;
    types.clear();
    for (const WeightShare& share : shape.stored) {
      n_bytes += share.n_bytes;
      types += (types.empty() ? "" : " ") + share.type;
    }
  }
  return fmt::format("{}: {:.3g} billion parameters, products of {}, {:.3g} GB", shape.name,
                     shape.n_parameters() * 1e-9, types, n_bytes * 1e-9);
}

std::string show_shape_of_draft(const PlannedRound& round) {
  const bool is_chain = std::all_of(round.level_sizes.begin(), round.level_sizes.end(),
                                    [](int size) { return size == 1; });
  if (round.n_nodes == 0) return "none pays";
  return is_chain ? fmt::format("{}", round.n_nodes)
                  : fmt::format("{} in {}", round.n_nodes, round.level_sizes.size());
}

// The formula, with the numbers of the first device.
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
  std::string text =
      fmt::format("\nOn {}, {} ({:.4g} GB/s, {:.4g} bf16 and {:.4g} int8 Tops/s):\n", device.name,
                  device.source, device.bandwidth_bytes_per_second * 1e-9,
                  device.bf16_ops_per_second * 1e-12, device.int8_ops_per_second * 1e-12);
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
  if (options.acceptance.size() == 1) {
    text += fmt::format("  tau = (1 - {0:g}^{1}) / (1 - {0:g}) = {2:.3f}\n",
                        options.acceptance.front(), round.n_nodes + 1, round.tau);
  } else {
    text += fmt::format("  tau = {:.3f}, of the tree that {} shares by rank plan\n", round.tau,
                        options.acceptance.size());
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
                      "best", "c(rows) waits for");
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

Json to_json(const ModelShape& shape) {
  Json object;
  object["name"] = shape.name;
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
  object["target"] = to_json(pair.target);
  object["drafter"] = pair.drafter ? to_json(*pair.drafter) : Json(nullptr);
  object["weights"] = options.weights.empty() ? "as stored" : options.weights;
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
               "What drafts would gain on other devices, by the roofline of public shapes and data "
               "sheets; takes --weights (q4_k, q8_0, fp8, ...), --context (default: 1024) and "
               "--tree chain:N or auto (default)")
      ->group(kGroup);
  add_filled_texts(app, "--model-shape", flags.shapes, "NAME,...", "a shape's name or a path",
                   "The target and, behind a comma, a drafter: llama-70b, qwen2.5-7b, ..., or a "
                   "model's path")
      ->delimiter(',')
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->group(kGroup);
  add_filled_texts(app, "--device", flags.devices, "NAME,...", "a device's name",
                   "h200, h100, l4, ... (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(kGroup);
  add_reals(app, "--acceptance", flags.acceptance,
            {.least = 0,
             .least_included = true,
             .most = 1,
             .most_included = true,
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
  if (flags.shapes.empty() || flags.shapes.size() > 2) {
    throw UsageError("read flags", "--model-shape", "a target and perhaps a drafter",
                     flags.shapes.empty() ? "none" : "more than two");
  }
  SpeedPlanOptions options;
  options.acceptance = flags.acceptance;
  options.length = planned_length(run.trees);
  options.weights = run.weights;
  options.context = run.says_context ? run.context : kDefaultPlanContext;
  options.batch = flags.batch;
  PlannedPair pair;
  pair.target = find_shape(flags.shapes[0]);
  if (flags.shapes.size() > 1) pair.drafter = find_shape(flags.shapes[1]);

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
