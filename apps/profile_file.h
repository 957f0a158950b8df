// What drafting learnt on this machine, from one run of the program to the next.
#ifndef OUTRIDER_APPS_PROFILE_FILE_H_
#define OUTRIDER_APPS_PROFILE_FILE_H_

#include <filesystem>

#include "model_flags.h"
#include "outrider/batch.h"
#include "outrider/generate.h"

namespace outrider::cli {

// One file for each machine, model, and way to hold and run it, with all drafters that were used
// with it. A file that is not there, or cannot be read or written, is no reason to end: passes are
// measured anew, and a line on standard error says why.
class ProfileFile {
 public:
  // plans: whether drafts are planned at all; nothing is read or written where they are not.
  ProfileFile(const ModelFlags& flags, bool plans);
  // For the drafter of these flags.
  explicit ProfileFile(const ModelFlags& flags);

  // Before the first text.
  void prepare(Generator& generator) const;
  void prepare(Batch& batch) const;
  // After the last one.
  void save(const Generator& generator) const;
  void save(const Batch& batch) const;

  // Where it is, in a folder that is there as far as that can be brought about; empty: nowhere.
  std::filesystem::path place() const;

 private:
  template <typename Learner>
  void prepare_any(Learner& learner) const;
  template <typename Learner>
  void save_any(const Learner& learner) const;

  bool plans_ = false;
  bool is_named_ = false;       // by the user
  std::filesystem::path path_;  // empty: none
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_PROFILE_FILE_H_
