// SPDX-License-Identifier: Apache-2.0
// The measurements of drafting on this machine, kept between runs of the program.
#ifndef OUTRIDER_APPS_PROFILE_FILE_H_
#define OUTRIDER_APPS_PROFILE_FILE_H_

#include <filesystem>

#include "apps/flags/model_flags.h"
#include "outrider/batch.h"
#include "outrider/generate.h"

namespace outrider::cli {

// One file for each machine, model and way of loading and running it, with all drafters used with
// that model. A missing file or an error in it does not stop the program: passes are then measured
// again. Reading errors are printed on standard error, writing errors only if the user named the
// file.
class ProfileFile {
 public:
  // plans: whether drafts are planned at all; if not, nothing is read or written.
  ProfileFile(const ModelFlags& flags, bool plans);
  // For the drafter of these flags.
  explicit ProfileFile(const ModelFlags& flags);

  // Before the first text.
  void prepare(Generator& generator) const;
  void prepare(Batch& batch) const;
  // After the last one.
  void save(const Generator& generator) const;
  void save(const Batch& batch) const;

  // The file's path, in a folder that is created if possible; empty: no file.
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
