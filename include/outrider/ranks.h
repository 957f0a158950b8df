// SPDX-License-Identifier: Apache-2.0
// One model over several machines: each process holds a part of it, started by mpirun or srun
// (docs/scale.md). The first process, rank 0, generates as one that holds the whole model, with the
// same bits. The others run its commands.
//
//   const Launch launch = detect_launch();
//   auto ranks = Ranks::start(launch, 60);
//   ModelOptions options{.ranks = ranks};
//   if (!ranks->leads()) {
//     follow(path, options);
//   } else {
//     auto model = Model::load(path, options);
//     ...
//   }                      // the model is destroyed here
//   ranks->finish();
#ifndef OUTRIDER_RANKS_H_
#define OUTRIDER_RANKS_H_

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "outrider/model.h"

namespace outrider {

class Communicator;

// The launcher's information in the environment.
struct Launch {
  std::string launcher = {};  // "Open MPI", "PMIx", "PMI"; empty: none, or one of a single process
  int rank = 0;
  int n_ranks = 1;
  bool is_alone() const { return n_ranks == 1; }
};

// Reads OMPI_COMM_WORLD_SIZE, PMI_SIZE and PMIX_RANK, with the variables that belong to them.
// PMIX_RANK counts only if SLURM_STEP_NUM_TASKS or SLURM_NTASKS says that there are several tasks.
// The variables of Slurm alone do not count: without PMI and PMIx its tasks cannot find one
// another. OUTRIDER_RANKS=off: no launch, whatever else is set.
Launch detect_launch();

// This process as one of several ranks. Not thread-safe, except for failure().
class Ranks {
 public:
  // Loads the MPI module, which a process without ranks never does, and connects to the others.
  // timeout_seconds: how long a rank may be silent within a pass. Throws Error if the build has no
  // such module or the library does not start, and UsageError if the launcher belongs to another
  // MPI.
  static std::shared_ptr<Ranks> start(const Launch& launch, double timeout_seconds);
  // For tests, and for a program's own network.
  explicit Ranks(std::shared_ptr<Communicator> communicator);
  ~Ranks();

  int rank() const;
  int n_ranks() const;
  bool leads() const { return rank() == 0; }

  // While *stop is set (for example by a signal handler), this process waits as little as possible:
  // not at all for ranks that load, and on rank 0 for 5 seconds for another rank within a pass.
  // Then LostRank is thrown on all ranks and names this one as the rank that gave up. Within a pass
  // the other ranks continue as long as rank 0 does. `stop` must outlive this. Call it before the
  // model is loaded. Without it a rank waits for an hour for others to load, and for
  // timeout_seconds in a pass.
  void stop_waiting_when(const std::atomic<bool>* stop);
  // Announces that this process cannot continue: the others' current or next call throws LostRank
  // with this message.
  void give_up(std::string_view why) noexcept;
  // Called after the last use of the model. Rank 0 waits for the others, a few seconds at most, and
  // they wait for rank 0. After a failure other than the loss of rank 0, they wait for a day at
  // most. A rank that was stopped waits for a few seconds.
  void finish() noexcept;
  // Why the other ranks are lost; empty: no failure is known.
  std::string failure() const;
  // Whether rank 0 is lost; then no other rank reports it.
  bool has_lost_leader() const;

  // For internal use.
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }

 private:
  std::shared_ptr<Communicator> communicator_;
};

// For every rank but 0: loads its part of the model and runs the commands of rank 0 until rank 0
// has ended. options.ranks must be set. Throws what Model::load throws, and LostRank.
void follow(const std::filesystem::path& path, const ModelOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_RANKS_H_
