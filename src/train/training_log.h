// The record of a run: one JSON object a line, and a picture of it.
#ifndef OUTRIDER_TRAIN_TRAINING_LOG_H_
#define OUTRIDER_TRAIN_TRAINING_LOG_H_

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace outrider::train {

// Appends lines to a file. A line of a step carries {"step": n, ...}. Not thread-safe.
class TrainingLog {
 public:
  // Keeps the lines of steps up to n_steps_done, drops later ones and an unfinished last line (a
  // killed run leaves both). Throws Error if the file cannot be written.
  TrainingLog(std::filesystem::path file, std::int64_t n_steps_done);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  void append(std::string_view json_line);  // without its newline; reaches the file at once

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// Draws loss over steps (and held-out loss, where it was measured) as SVG by gnuplot. False if
// there is no gnuplot or it fails; the run does not depend on it.
bool plot_training_log(const std::filesystem::path& log, const std::filesystem::path& svg);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_TRAINING_LOG_H_
