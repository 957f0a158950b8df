// One model over several machines: processes that hold a part of it each, started by mpirun or srun
// (docs/scale.md). The first of them, rank 0, generates like a process that has all of it, and with
// the same bits; the others follow.
//
//   const Launch launch = detect_launch();
//   auto ranks = Ranks::start(launch, 60);
//   ModelOptions options{.ranks = ranks};
//   if (!ranks->leads()) {
//     follow(path, options);
//   } else {
//     auto model = Model::load(path, options);
//     ...
//   }                      // the model is gone by now
//   ranks->finish();
#ifndef OUTRIDER_RANKS_H_
#define OUTRIDER_RANKS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "outrider/model.h"

namespace outrider {

class Communicator;

// What a launcher has put into the environment.
struct Launch {
  std::string launcher = {};  // "Open MPI", "PMIx", "PMI"; empty: none, or one of a single process
  int rank = 0;
  int n_ranks = 1;
  bool is_alone() const { return n_ranks == 1; }
};

// Reads OMPI_COMM_WORLD_SIZE, PMI_SIZE and PMIX_RANK with what goes with them. PMIX_RANK counts
// where SLURM_STEP_NUM_TASKS or SLURM_NTASKS says that there are several; these alone do not: tasks
// of Slurm that it gives neither PMI nor PMIx cannot find one another. OUTRIDER_RANKS=off: no
// launch, whatever else is set.
Launch detect_launch();

// This process as one of several. Not thread-safe, but for failure().
class Ranks {
 public:
  // Loads the MPI module, which no other process loads, and meets the others. timeout_seconds: how
  // long one of them may be silent within a pass. Throws Error where the build has no such module
  // or the library does not start, UsageError where the launcher is another MPI's.
  static std::shared_ptr<Ranks> start(const Launch& launch, double timeout_seconds);
  // For tests, and for networks of the caller's own.
  explicit Ranks(std::shared_ptr<Communicator> communicator);
  ~Ranks();

  int rank() const;
  int n_ranks() const;
  bool leads() const { return rank() == 0; }

  // Of a process that cannot go on: the others' next or present call throws LostRank with these
  // words.
  void give_up(std::string_view why) noexcept;
  // Rank 0 waits for the others, a few seconds at most, and they for rank 0: behind a failure, if
  // rank 0 is not what is lost, for a day at most. Behind the last use of the model.
  void finish() noexcept;
  // Why the others cannot be counted on; empty: nothing is known against it.
  std::string failure() const;
  // Whether that is the loss of rank 0: then nobody else says so.
  bool has_lost_leader() const;

  // For the engine's own use.
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }

 private:
  std::shared_ptr<Communicator> communicator_;
};

// Of every rank but 0: loads its part of the model and runs it as rank 0 says, until that is done
// with it. options.ranks is set. Throws what Model::load throws, and LostRank.
void follow(const std::filesystem::path& path, const ModelOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_RANKS_H_
