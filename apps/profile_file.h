// What drafting learnt on this machine, from one run of the program to the next.
#ifndef OUTRIDER_APPS_PROFILE_FILE_H_
#define OUTRIDER_APPS_PROFILE_FILE_H_

#include <filesystem>

#include "model_flags.h"
#include "outrider/generate.h"

namespace outrider::cli {

// One file for each machine, model, and way to hold and run it. A file that is not there, or cannot
// be read or written, is no reason to end: passes are measured anew, and a line on standard error
// says why.
class ProfileFile {
 public:
  // For the drafters of these flags; nothing is read or written where their drafts are not planned.
  explicit ProfileFile(const ModelFlags& flags);

  // Before the first text.
  void prepare(Generator& generator) const;
  // After the last one.
  void save(const Generator& generator) const;

 private:
  bool plans_ = false;
  bool is_named_ = false;       // by the user
  std::filesystem::path path_;  // empty: none
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_PROFILE_FILE_H_
