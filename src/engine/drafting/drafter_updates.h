// SPDX-License-Identifier: Apache-2.0
// A place where a better drafter may appear while texts are generated.
#ifndef OUTRIDER_ENGINE_DRAFTING_DRAFTER_UPDATES_H_
#define OUTRIDER_ENGINE_DRAFTING_DRAFTER_UPDATES_H_

#include <array>
#include <cstdint>
#include <memory>

#include "outrider/model.h"
#include "speculate/drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Watches the files of one model. Not thread-safe.
class DrafterUpdates {
 public:
  // Construct it before loading the drafter itself: if both use the same place, the present files
  // do not count as new.
  DrafterUpdates(PlannedUpdates plan, ModelOptions options);

  // Loads the drafter if its files have changed since the last look; else returns null. Throws
  // Error, once for the same files, if they do not load or have another vocabulary than the target.
  std::unique_ptr<Drafter> take(const Model& target);

 private:
  // Distinguishes a file from one renamed into its place, by inode and modification time; all zero
  // if there is no file.
  struct FileMark {
    std::uint64_t inode = 0;
    std::int64_t n_bytes = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const FileMark&) const = default;
  };
  // config.json, the weights or their index, tokenizer.json; for a .gguf file, the file itself.
  using Marks = std::array<FileMark, 4>;
  Marks look() const;

  PlannedUpdates plan_;
  ModelOptions options_;
  Marks seen_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_DRAFTER_UPDATES_H_
