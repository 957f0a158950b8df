// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/one_process.h"

#include <fmt/format.h>

#include "apps/cli/entry.h"
#include "outrider/error.h"
#include "outrider/ranks.h"

namespace outrider::cli {

void take_place_among_ranks() { speak_after_the_first(detect_launch().rank); }

void require_one_process(std::string_view what) {
  const Launch launch = detect_launch();
  if (launch.is_alone()) return;
  throw UsageError("start ranks", what,
                   "one process (generate, serve and bench run on several ranks)",
                   fmt::format("{} by {}", launch.n_ranks, launch.launcher));
}

}  // namespace outrider::cli
