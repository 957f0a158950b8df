// SPDX-License-Identifier: Apache-2.0
#include "measure/comparison/comparison_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/checksum.h"
#include "base/files/atomic_file.h"

namespace outrider {
namespace {

// Members of a sample, with the numbers behind them.
template <typename AnySample, typename Visit>
void visit_numbers(AnySample& sample, Visit visit) {
  visit("request_seconds", sample.request_seconds);
  visit("first_token_seconds", sample.first_token_seconds);
  visit("prefill_seconds", sample.prefill_seconds);
  visit("decode_seconds", sample.decode_seconds);
  visit("draft_seconds", sample.draft_seconds);
  visit("target_seconds", sample.target_seconds);
  visit("verify_seconds", sample.verify_seconds);
  visit("prompt_tokens", sample.prompt_tokens);
  visit("emitted", sample.emitted);
  visit("target_passes", sample.target_passes);
  visit("drafter_passes", sample.drafter_passes);
  visit("drafted", sample.drafted);
  visit("first_difference", sample.first_difference);
}

OrderedJson sample_json(const MethodSample& sample) {
  OrderedJson value;
  visit_numbers(sample, [&value](const char* name, auto number) { value[name] = number; });
  value["ids_digest"] = fmt::format("{:016x}", sample.ids_digest);
  OrderedJson outcomes = OrderedJson::array();
  for (const DraftOutcome& outcome : sample.outcomes) {
    outcomes.push_back({outcome.levels, outcome.nodes, outcome.accepted, outcome.n});
  }
  value["outcomes"] = std::move(outcomes);
  return value;
}

MethodSample read_sample(const OrderedJson& value) {
  MethodSample sample;
  visit_numbers(sample,
                [&value](const char* name, auto& number) { value.at(name).get_to(number); });
  const auto digest = value.at("ids_digest").get<std::string>();
  constexpr int kHexadecimal = 16;
  std::from_chars(digest.data(), digest.data() + digest.size(), sample.ids_digest, kHexadecimal);
  const OrderedJson& outcomes = value.at("outcomes");
  sample.outcomes.reserve(outcomes.size());
  for (const OrderedJson& outcome : outcomes) {
    sample.outcomes.push_back({.levels = outcome.at(0).get<int>(),
                               .nodes = outcome.at(1).get<int>(),
                               .accepted = outcome.at(2).get<int>(),
                               .n = outcome.at(3).get<std::int64_t>()});
  }
  return sample;
}

OrderedJson spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

Spread read_spread(const OrderedJson& value) {
  return {.median = value.at("median").get<double>(),
          .min = value.at("min").get<double>(),
          .max = value.at("max").get<double>()};
}

OrderedJson number_json(double number) {
  return std::isfinite(number) ? OrderedJson(number) : OrderedJson(nullptr);
}

OrderedJson estimate_json(const Estimate& estimate) {
  return {{"value", number_json(estimate.value)},
          {"low", number_json(estimate.low)},
          {"high", number_json(estimate.high)}};
}

OrderedJson machine_json(const MachineDescription& machine) {
  return {{"processor", machine.processor},
          {"processors", machine.n_processors},
          {"memory_bytes", machine.memory_bytes},
          {"system", machine.system}};
}

OrderedJson model_json(const MethodComparison& comparison) {
  const ModelSummary& model = comparison.model;
  OrderedJson value = {{"architecture", model.architecture},
                       {"parameters", model.n_parameters},
                       {"weights", model.weights},
                       {"weight_bytes", model.weight_bytes},
                       {"kv", model.kv},
                       {"kernels", model.kernels},
                       {"threads", model.threads},
                       {"ranks", model.n_ranks()}};
  if (model.n_ranks() > 1) value["rank_threads"] = model.rank_threads;
  OrderedJson files = OrderedJson::array();
  for (const ModelFile& file : comparison.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}});
  }
  value["files"] = std::move(files);
  return value;
}

OrderedJson methods_json(const MethodComparison& comparison) {
  OrderedJson methods = OrderedJson::array();
  for (const ComparedMethod& method : comparison.options.methods) {
    const SpeculationOptions& speculation = method.speculation;
    methods.push_back({{"name", method.name},
                       {"drafter", speculation.drafter},
                       {"tree", speculation.tree},
                       {"verify", speculation.verify},
                       {"rule", speculation.rule},
                       {"adaptive", speculation.adaptive}});
  }
  return methods;
}

std::string prompts_digest(std::span<const ComparedPrompt> prompts) {
  std::uint64_t sum = 0;
  const auto add = [&sum](const std::string& text) {
    sum = checksum(std::as_bytes(std::span(text)), sum);
  };
  for (const ComparedPrompt& prompt : prompts) {
    add(prompt.set);
    add(prompt.id);
    add(prompt.category);
    for (const std::string& turn : prompt.turns) add(turn);
  }
  return fmt::format("{:016x}", sum);
}

OrderedJson prompts_json(std::span<const ComparedPrompt> prompts) {
  OrderedJson list = OrderedJson::array();
  for (const ComparedPrompt& prompt : prompts) {
    list.push_back({{"set", prompt.set},
                    {"id", prompt.id},
                    {"category", prompt.category},
                    {"topic", prompt.topic},
                    {"turns", prompt.turns.size()}});
  }
  return list;
}

}  // namespace

std::string json_text(const OrderedJson& value, int indentation) {
  return value.dump(indentation, ' ', false, OrderedJson::error_handler_t::replace);
}

OrderedJson settings_json(const MethodComparison& comparison) {
  const CompareOptions& options = comparison.options;
  OrderedJson settings;
  settings["version"] = comparison.version;
  settings["methods"] = methods_json(comparison);
  settings["temperatures"] = options.temperatures;
  settings["max_tokens"] = options.max_tokens;
  settings["repeats"] = options.repeats;
  settings["seed"] = options.seed;
  settings["chat"] = comparison.is_chat;
  settings["prompts"] = {{"count", options.prompts.size()},
                         {"digest", prompts_digest(options.prompts)}};
  settings["model"] = model_json(comparison);
  settings["machine"] = machine_json(comparison.machine);
  return settings;
}

OrderedJson round_json(const ComparedRound& round) {
  OrderedJson value = {
      {"prompt", round.prompt}, {"temperature", round.temperature}, {"repeat", round.repeat}};
  if (!round.problem.empty()) value["problem"] = round.problem;
  OrderedJson samples = OrderedJson::array();
  for (const MethodSample& sample : round.samples) samples.push_back(sample_json(sample));
  value["samples"] = std::move(samples);
  return value;
}

ComparedRound read_round(const OrderedJson& value) {
  ComparedRound round{.prompt = value.at("prompt").get<std::size_t>(),
                      .temperature = value.at("temperature").get<double>(),
                      .repeat = value.at("repeat").get<int>(),
                      .samples = {},
                      .problem = value.value("problem", std::string())};
  for (const OrderedJson& sample : value.at("samples")) {
    round.samples.push_back(read_sample(sample));
  }
  return round;
}

OrderedJson passes_json(const PassCosts& passes, int context) {
  OrderedJson list = OrderedJson::array();
  for (const PassCost& pass : passes.passes) {
    list.push_back(
        {{"rows", pass.rows}, {"ratio", pass.ratio}, {"seconds", spread_json(pass.seconds)}});
  }
  return {{"context", context}, {"passes", std::move(list)}};
}

PassCosts read_passes(const OrderedJson& value) {
  PassCosts costs;
  for (const OrderedJson& pass : value.at("passes")) {
    costs.passes.push_back({.rows = pass.at("rows").get<int>(),
                            .seconds = read_spread(pass.at("seconds")),
                            .ratio = pass.at("ratio").get<double>()});
  }
  return costs;
}

OrderedJson figures_json(const MethodFigures& figures, const MethodComparison& comparison) {
  OrderedJson value;
  value["method"] = comparison.options.methods[figures.method].name;
  value["temperature"] = figures.temperature;
  value["category"] = figures.category;
  value["prompts"] = figures.n_prompts;
  value["speedup"] = estimate_json(figures.speedup);
  value["request_speedup"] = estimate_json(figures.request_speedup);
  value["first_token_ratio"] = estimate_json(figures.first_token_ratio);
  value["tokens_per_second"] = estimate_json(figures.tokens_per_second);
  value["tau"] = estimate_json(figures.tau);
  value["draft_share"] = estimate_json(figures.draft_share);
  value["target_share"] = estimate_json(figures.target_share);
  value["verify_share"] = estimate_json(figures.verify_share);
  value["rest_share"] = estimate_json(figures.rest_share);
  value["accepted_lengths"] = figures.accepted_lengths;
  OrderedJson places = OrderedJson::array();
  for (const PlaceFigures& place : figures.places) {
    OrderedJson entry = {{"reached", place.n_reached}, {"stood", place.n_stood}};
    entry["acceptance"] = estimate_json(place.acceptance);
    places.push_back(std::move(entry));
  }
  value["places"] = std::move(places);
  value["has_alphas"] = figures.has_alphas;
  value["promises_same_text"] = figures.promises_same_text;
  value["same_texts"] = figures.n_same;
  if (!figures.bounds) return value;
  const MethodBounds& bounds = *figures.bounds;
  value["level_cost"] = estimate_json(bounds.level_cost);
  value["oracle_length"] = estimate_json(bounds.oracle);
  value["perfect_drafter"] = estimate_json(bounds.perfect);
  value["perfect_length"] =
      bounds.perfect_length < 0 ? OrderedJson(nullptr) : OrderedJson(bounds.perfect_length);
  value["free_drafting"] = estimate_json(bounds.free);
  value["oracle_share"] = estimate_json(bounds.oracle_share);
  return value;
}

std::string comparison_json(const MethodComparison& comparison,
                            std::span<const MethodFigures> figures) {
  OrderedJson value;
  value["format"] = "outrider-bench-methods";
  value["format_version"] = 1;
  value["complete"] = comparison.is_complete();
  value["settings"] = settings_json(comparison);
  if (comparison.passes) {
    value["passes"] = passes_json(*comparison.passes, comparison.pass_context);
  }
  value["prompts"] = prompts_json(comparison.options.prompts);
  OrderedJson list = OrderedJson::array();
  for (const MethodFigures& one : figures) list.push_back(figures_json(one, comparison));
  value["figures"] = std::move(list);
  OrderedJson rounds = OrderedJson::array();
  for (const ComparedRound& round : comparison.rounds) rounds.push_back(round_json(round));
  value["rounds"] = std::move(rounds);
  return json_text(value, 1) + "\n";
}

void write_report(const std::filesystem::path& file, const std::string& text) {
  write_file_atomically(file, text);
}

}  // namespace outrider
