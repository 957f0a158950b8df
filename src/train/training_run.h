// The one training loop: accumulate, clip, step, log, save; killed at any moment, it goes on with
// the bits it would have had.
#ifndef OUTRIDER_TRAIN_TRAINING_RUN_H_
#define OUTRIDER_TRAIN_TRAINING_RUN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/metric.h"
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

// Everything that a run's course depends on, in words: written beside the checkpoint and compared
// on resuming.
using RunSettings = std::vector<std::pair<std::string, std::string>>;

// The one of them that a resumed run may change, if the run that is to go on diverged.
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
  std::function<bool()> should_stop = {};  // asked between steps: then saves and returns
  // The run goes on with another learning rate than it had.
  std::function<void(const std::string& before, const std::string& now)> on_new_rate = {};
};

struct RunOutcome {
  std::int64_t n_steps_done = 0;
  std::int64_t first_step = 0;  // where a resumed run took up
  bool finished = false;        // or stopped by should_stop
};

// Trains to the last step of the schedule and exports to the directory. Files of the run stand
// under directory/training: checkpoint.pt (parameters, optimiser, step: replaced whole), log.jsonl
// (a line a step, cut back to the checkpoint on resuming), settings.json.
//
// Before a checkpoint or the result is written, the parameters are tried on the batch that would
// come next: what is saved has a finite loss and gradient.
//
// Throws Error: a run is there and resume is not set; resume with other settings than the learning
// rate; a loss, a gradient, a parameter or a held-out figure that is no finite number; files that
// cannot be written. The last good checkpoint stands then.
RunOutcome run_training(Objective& objective, const RunOptions& options, const RunHooks& hooks);

// What the run in that directory was begun with under that name, if there is a run that says so.
std::optional<std::string> begun_setting(const std::filesystem::path& directory,
                                         const std::string& name);

std::int64_t n_trained_parameters(Objective& objective);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_TRAINING_RUN_H_
