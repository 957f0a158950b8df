// A place where a better drafter may turn up while texts are being generated.
#ifndef OUTRIDER_ENGINE_DRAFTER_UPDATES_H_
#define OUTRIDER_ENGINE_DRAFTER_UPDATES_H_

#include <array>
#include <cstdint>
#include <memory>

#include "outrider/model.h"
#include "speculate/drafter.h"
#include "speculate/drafter_plan.h"

namespace outrider {

// Watches the files of one model. Not thread-safe.
class DrafterUpdates {
 public:
  // To be made before the drafter itself is loaded: if that stands in the same place, what is there
  // now is no news.
  DrafterUpdates(PlannedUpdates plan, ModelOptions options);

  // The drafter there, if its files are others than at the last look; else null. Throws Error, once
  // for the same files, if they do not load or their vocabulary is not the target's.
  std::unique_ptr<Drafter> take(const Model& target);

 private:
  // What tells a file from the one that a rename put in its place: its number and its time of
  // writing; all zero where there is none.
  struct FileMark {
    std::uint64_t inode = 0;
    std::int64_t n_bytes = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const FileMark&) const = default;
  };
  // config.json, the weights or their index, tokenizer.json; of a .gguf file, itself.
  using Marks = std::array<FileMark, 4>;
  Marks look() const;

  PlannedUpdates plan_;
  ModelOptions options_;
  Marks seen_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTER_UPDATES_H_
