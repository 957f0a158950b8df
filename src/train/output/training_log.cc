// SPDX-License-Identifier: Apache-2.0
#include "train/output/training_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/gnuplot.h"
#include "outrider/error.h"

namespace outrider::train {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw Error("write training log", path.string(), std::generic_category().message(error));
}

}  // namespace

TrainingLog::TrainingLog(std::filesystem::path file, std::int64_t n_steps_done)
    : path_(std::move(file)) {
  std::string kept;
  std::ifstream before(path_);
  for (std::string line; std::getline(before, line);) {
    if (before.eof()) break;  // no newline follows: the line was being written
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    if (json["step"].get<std::int64_t>() <= n_steps_done) kept += line + "\n";
  }
  before.close();
  write_file_atomically(path_, kept);
  file_ = std::fopen(path_.c_str(), "ae");
  if (file_ == nullptr) fail(path_, errno);
}

TrainingLog::~TrainingLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void TrainingLog::append(std::string_view json_line) {
  const std::string line = fmt::format("{}\n", json_line);
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0) {
    fail(path_, errno);
  }
}

bool plot_training_log(const std::filesystem::path& log, const std::filesystem::path& svg) {
  std::vector<std::pair<double, double>> losses;
  std::vector<std::pair<double, double>> held_out;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto is_number = [&](const char* name) {
      return json.contains(name) && json[name].is_number();
    };
    if (!json.is_object() || !is_number("step")) continue;
    const double step = json["step"].get<double>();
    if (is_number("loss")) losses.emplace_back(step, json["loss"].get<double>());
    if (is_number("held_out_loss")) {
      held_out.emplace_back(step, json["held_out_loss"].get<double>());
    }
  }
  if (losses.empty()) return false;
  // Means over a 200th of the run give a curve instead of a cloud.
  const std::size_t bin = std::max<std::size_t>(1, losses.size() / 200);
  std::string script =
      "set xlabel 'step'\nset ylabel 'loss (nats a token)'\nset grid\nset key top right\n";
  script += "$loss << EOD\n";
  for (std::size_t first = 0; first < losses.size(); first += bin) {
    const std::size_t last = std::min(first + bin, losses.size());
    double sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += losses[i].second;
    script +=
        fmt::format("{} {}\n", losses[last - 1].first, sum / static_cast<double>(last - first));
  }
  script += "EOD\n$held_out << EOD\n";
  for (const auto& [step, loss] : held_out) script += fmt::format("{} {}\n", step, loss);
  script += "EOD\nplot $loss with lines linewidth 2 linecolor '#2166ac' title 'training'";
  if (!held_out.empty()) {
    script += ", $held_out with linespoints pointtype 7 linecolor '#b2182b' title 'held out'";
  }
  script += "\n";
  return draw_with_gnuplot(svg, 800, 500, script);
}

}  // namespace outrider::train
