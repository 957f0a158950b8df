#include "one_process.h"

#include <fmt/format.h>

#include "entry.h"
#include "outrider/error.h"
#include "outrider/ranks.h"

namespace outrider::cli {

bool is_follower() { return detect_launch().rank > 0; }

void require_one_process(std::string_view what) {
  const Launch launch = detect_launch();
  if (launch.is_alone()) return;
  // With another status than 0 mpirun might end the first one before it has said why.
  if (launch.rank > 0) throw QuietExit{0};
  throw UsageError("start ranks", what,
                   "one process (generate, serve and bench run on several ranks)",
                   fmt::format("{} by {}", launch.n_ranks, launch.launcher));
}

}  // namespace outrider::cli
