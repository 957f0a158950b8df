// SPDX-License-Identifier: Apache-2.0
#include "train/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "outrider/error.h"
#include "train/batches/corpus.h"
#include "train/objective.h"
#include "train/output/checkpoint.h"
#include "train/output/training_log.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;

// Two groups: matrices decay, vectors do not. (Loshchilov and Hutter 2019 decay all; leaving out
// norms and biases has been common since GPT-2.)
std::unique_ptr<torch::optim::AdamW> make_optimizer(torch::nn::Module& trained,
                                                    const OptimizerOptions& options) {
  std::vector<torch::Tensor> matrices;
  std::vector<torch::Tensor> vectors;
  for (const torch::Tensor& parameter : trained.parameters()) {
    (parameter.dim() >= 2 ? matrices : vectors).push_back(parameter);
  }
  const auto with_decay = [&](double decay) {
    auto group = std::make_unique<torch::optim::AdamWOptions>(options.beta2);
    group->betas({options.beta1, options.beta2}).eps(options.epsilon).weight_decay(decay);
    return group;
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  if (!matrices.empty()) groups.emplace_back(matrices, with_decay(options.weight_decay));
  if (!vectors.empty()) groups.emplace_back(vectors, with_decay(0));
  return std::make_unique<torch::optim::AdamW>(std::move(groups));
}

void set_rate(torch::optim::AdamW& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

void write_settings(const fs::path& file, const RunSettings& settings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : settings) json[name] = value;
  write_file_atomically(file, json.dump(2) + "\n");
}

// Null for a file that does not exist or is empty.
nlohmann::json read_settings(const fs::path& file) {
  std::ifstream in(file);
  return nlohmann::json::parse(in, nullptr, false);
}

std::optional<std::string> setting_of(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_string()) return std::nullopt;
  return json[name].get<std::string>();
}

// Written on a fresh start, compared on resuming. Returns the run's earlier learning rate if it
// differs.
std::string settle(const fs::path& file, const RunSettings& settings, bool is_there) {
  if (!is_there) {
    write_settings(file, settings);
    return {};
  }
  const nlohmann::json json = read_settings(file);
  if (!json.is_object()) throw Error("resume training", file.string(), "its settings", "none");
  std::string other_rate;
  for (const auto& [name, value] : settings) {
    const std::string before = setting_of(json, name).value_or("none");
    if (before != value && name == kLearningRate) {
      other_rate = before;
    } else if (before != value) {
      throw Error("resume training", name, fmt::format("\"{}\", as the run was begun", before),
                  fmt::format("\"{}\"", value));
    }
  }
  // Settings added by a flag must also have been given before.
  for (const auto& [name, value] : json.items()) {
    const bool is_said = std::any_of(settings.begin(), settings.end(),
                                     [&](const auto& setting) { return setting.first == name; });
    if (is_said) continue;
    throw Error("resume training", name,
                fmt::format("\"{}\", as the run was begun", setting_of(json, name).value_or("")),
                "\"none\"");
  }
  return other_rate;
}

void take_up_rate(const fs::path& file, const RunSettings& settings, const std::string& before,
                  const RunHooks& hooks) {
  write_settings(file, settings);
  for (const auto& [name, value] : settings) {
    if (name == kLearningRate && hooks.on_new_rate) hooks.on_new_rate(before, value);
  }
}

void require_finite(double value, const char* what, std::int64_t step) {
  if (std::isfinite(value)) return;
  throw Error("train", fmt::format("{} at step {}", what, step + 1), "a finite number",
              fmt::format("{}; the last checkpoint stands (--resume goes on from it, and a lower "
                          "--learning-rate may help)",
                          value));
}

double clip(const torch::nn::Module& trained, const OptimizerOptions& options) {
  const std::vector<torch::Tensor> parameters = trained.parameters();
  double squares = 0;
  for (const torch::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) {
      squares += parameter.grad().to(torch::kFloat64).square().sum().item<double>();
    }
  }
  const double norm = std::sqrt(squares);
  if (options.clip_value > 0) torch::nn::utils::clip_grad_value_(parameters, options.clip_value);
  if (options.clip_norm > 0 && norm > options.clip_norm) {
    for (const torch::Tensor& parameter : parameters) {
      if (parameter.grad().defined()) parameter.grad().mul_(options.clip_norm / norm);
    }
  }
  return norm;
}

// Adds a micro-batch's gradients to those of the parameters; returns its loss.
Loss learn(Objective& objective, const RunOptions& options, std::int64_t number) {
  torch::manual_seed(mix(options.seed, static_cast<std::uint64_t>(number), 1));
  Loss loss = objective.loss(number);
  require_finite(loss.value.item<double>(), "loss", number / options.accumulation);
  (loss.value / options.accumulation).backward();
  return loss;
}

// A step may leave parameters from which no further step is possible. The next loss would show it,
// but too late for a checkpoint before it.
void require_sound(Objective& objective, const RunOptions& options, std::int64_t n_steps_done) {
  for (const torch::Tensor& parameter : objective.trained().parameters()) {
    const auto sum = parameter.detach().to(torch::kFloat64).abs().sum().item<double>();
    require_finite(sum, "weights", n_steps_done - 1);
  }
  objective.trained().zero_grad();
  learn(objective, options, n_steps_done * options.accumulation);
  require_finite(clip(objective.trained(), options.optimizer), "gradient", n_steps_done);
  objective.trained().zero_grad();
}

nlohmann::ordered_json line_of(const StepReport& report) {
  nlohmann::ordered_json line = {{"step", report.step},
                                 {"loss", report.loss},
                                 {"learning_rate", report.learning_rate},
                                 {"gradient_norm", report.gradient_norm},
                                 {"tokens", report.n_tokens},
                                 {"seconds", report.seconds}};
  for (const auto& [name, value] : report.metrics) line[name] = value;
  for (const auto& [name, value] : report.held_out) line["held_out_" + name] = value;
  return line;
}

}  // namespace

RunOutcome run_training(Objective& objective, const RunOptions& options, const RunHooks& hooks) {
  using Clock = std::chrono::steady_clock;
  const fs::path folder = options.directory / "training";
  const fs::path checkpoint = folder / "checkpoint.pt";
  const bool is_there = fs::exists(folder / "settings.json");
  if (is_there && !options.resume) {
    throw Error("train", options.directory.string(), "a directory without a training run",
                "one (--resume goes on with it)");
  }
  fs::create_directories(folder);
  const std::string rate_before = settle(folder / "settings.json", options.settings, is_there);

  torch::nn::Module& trained = objective.trained();
  const auto optimizer = make_optimizer(trained, options.optimizer);
  RunOutcome outcome;
  if (is_named(checkpoint)) outcome.first_step = load_checkpoint(checkpoint, trained, *optimizer);
  TrainingLog log(folder / "log.jsonl", outcome.first_step);

  const std::int64_t n_steps = options.schedule.n_steps;
  std::int64_t step = outcome.first_step;
  if (!rate_before.empty() && step < n_steps) {
    take_up_rate(folder / "settings.json", options.settings, rate_before, hooks);
  }
  for (; step < n_steps; ++step) {
    if (hooks.should_stop && hooks.should_stop()) break;
    const auto began = Clock::now();
    StepReport report{.step = step + 1,
                      .n_steps = n_steps,
                      .learning_rate = options.schedule.rate(step),
                      .metrics = {},
                      .held_out = {}};
    set_rate(*optimizer, report.learning_rate);
    optimizer->zero_grad();
    for (int micro = 0; micro < options.accumulation; ++micro) {
      const std::int64_t number = step * options.accumulation + micro;
      const Loss loss = learn(objective, options, number);
      report.loss += loss.value.item<double>() / options.accumulation;
      report.n_tokens += loss.n_tokens;
      report.metrics.resize(loss.metrics.size());
      for (std::size_t i = 0; i < loss.metrics.size(); ++i) {
        report.metrics[i].first = loss.metrics[i].first;
        report.metrics[i].second += loss.metrics[i].second / options.accumulation;
      }
    }
    report.gradient_norm = clip(trained, options.optimizer);
    require_finite(report.gradient_norm, "gradient", step);
    optimizer->step();

    const bool last = step + 1 == n_steps;
    if (last ||
        (options.evaluation_interval > 0 && (step + 1) % options.evaluation_interval == 0)) {
      const torch::NoGradGuard no_grad;
      report.held_out = objective.evaluate();
      for (const auto& [name, value] : report.held_out) {
        require_finite(value, ("held-out " + name).c_str(), step);
      }
    }
    report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    log.append(line_of(report).dump());
    const bool saves = last || (step + 1) % options.checkpoint_interval == 0;
    const bool exports =
        !last && options.export_interval > 0 && (step + 1) % options.export_interval == 0;
    if (saves || exports) require_sound(objective, options, step + 1);
    if (saves) save_checkpoint(checkpoint, trained, *optimizer, step + 1);
    if (exports) objective.export_to(options.directory);
    if (hooks.on_step) hooks.on_step(report);
  }
  outcome.n_steps_done = step;
  outcome.finished = step == n_steps;
  if (outcome.finished) {
    objective.export_to(options.directory);
  } else {
    if (step > outcome.first_step) require_sound(objective, options, step);
    save_checkpoint(checkpoint, trained, *optimizer, step);
  }
  plot_training_log(folder / "log.jsonl", folder / "loss.svg");
  return outcome;
}

std::optional<std::string> begun_setting(const fs::path& directory, const std::string& name) {
  return setting_of(read_settings(directory / "training" / "settings.json"), name);
}

std::int64_t n_trained_parameters(Objective& objective) {
  std::int64_t n = 0;
  for (const torch::Tensor& parameter : objective.trained().parameters()) n += parameter.numel();
  return n;
}

}  // namespace outrider::train
