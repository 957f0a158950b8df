// SPDX-License-Identifier: Apache-2.0
// The training loop: accumulate, clip, step, log, save. A run killed at any moment resumes with the
// same bits as an uninterrupted run.
#ifndef OUTRIDER_TRAIN_TRAINING_RUN_H_
#define OUTRIDER_TRAIN_TRAINING_RUN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/output/metric.h"
#include "train/schedule.h"

namespace outrider::train {

class Objective;

struct OptimizerOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices; vectors (norms, biases) have none
  double clip_norm = 1.0;     // of all gradients together; 0: not clipped
  double clip_value = 0;      // of each gradient's elements; 0: not clipped
};

// All settings that affect a run's results, in words. They are written beside the checkpoint and
// compared when a run resumes.
using RunSettings = std::vector<std::pair<std::string, std::string>>;

// The one setting that a resumed run may change, for example after the run diverged.
inline constexpr const char* kLearningRate = "learning-rate";

struct RunOptions {
  std::filesystem::path directory;  // gets training/checkpoint.pt, log.jsonl, settings.json
  RunSettings settings;
  Schedule schedule;
  OptimizerOptions optimizer;
  std::uint64_t seed = 0;
  int accumulation = 1;  // micro-batches a step
  std::int64_t checkpoint_interval = 500;
  std::int64_t evaluation_interval = 0;  // 0: at the end only
  std::int64_t export_interval = 0;      // the same
  bool resume = false;
};

struct StepReport {
  std::int64_t step = 0;  // steps done
  std::int64_t n_steps = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  std::int64_t n_tokens = 0;  // of this step
  double seconds = 0;         // of this step
  std::vector<Metric> metrics;
  std::vector<Metric> held_out;  // at evaluations
};

struct RunHooks {
  std::function<void(const StepReport&)> on_step = {};
  std::function<bool()> should_stop = {};  // called between steps; true: save and return
  // Called when a resumed run uses another learning rate than before.
  std::function<void(const std::string& before, const std::string& now)> on_new_rate = {};
};

struct RunOutcome {
  std::int64_t n_steps_done = 0;
  std::int64_t first_step = 0;  // the step at which a resumed run began
  bool finished = false;        // false: stopped by should_stop
};

// Trains to the last step of the schedule and exports to the directory. Files of the run are in
// directory/training: checkpoint.pt (parameters, optimiser, step: replaced as a whole), log.jsonl
// (a line a step, cut back to the checkpoint on resuming), settings.json.
//
// Before a checkpoint or the result is written, the parameters are tried on the next batch, so
// saved parameters have a finite loss and gradient.
//
// Throws Error: the directory has a run and resume is not set; a resumed run has other settings
// besides the learning rate; a loss, a gradient, a parameter or a held-out metric is not finite;
// files cannot be written. The last good checkpoint then remains.
RunOutcome run_training(Objective& objective, const RunOptions& options, const RunHooks& hooks);

// The setting `name` with which the run in that directory began; nullopt if there is no run or it
// does not record the setting.
std::optional<std::string> begun_setting(const std::filesystem::path& directory,
                                         const std::string& name);

std::int64_t n_trained_parameters(Objective& objective);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_TRAINING_RUN_H_
