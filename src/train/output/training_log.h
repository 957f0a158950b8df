// SPDX-License-Identifier: Apache-2.0
// The log of a run: one JSON object a line, and a plot of it.
#ifndef OUTRIDER_TRAIN_OUTPUT_TRAINING_LOG_H_
#define OUTRIDER_TRAIN_OUTPUT_TRAINING_LOG_H_

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace outrider::train {

// Appends lines to a file. The line of a step contains {"step": n, ...}. Not thread-safe.
class TrainingLog {
 public:
  // Keeps the lines of steps up to n_steps_done. Drops later lines and an unfinished last line (a
  // killed run may leave both). Throws Error if the file cannot be written.
  TrainingLog(std::filesystem::path file, std::int64_t n_steps_done);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  void append(std::string_view json_line);  // without its newline; written to the file at once

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// Plots loss over steps (and held-out loss, where measured) as SVG with gnuplot. Returns false if
// gnuplot is missing or fails; the run does not depend on it.
bool plot_training_log(const std::filesystem::path& log, const std::filesystem::path& svg);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OUTPUT_TRAINING_LOG_H_
